// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath capture`: the packets of one connection, into a file, for a bounded time.

use crate::one_flow;
use anyhow::{Context, Result, bail};
use clap::Args;
use fatpath_capture::{Writer, Written};
use fatpath_clock::{monotonic_ns, unix_ns};
use fatpath_daemon::{Instance, InstanceOptions};
use fatpath_sniffer::{Keep, OpenError, Sniffer};
use indicatif::{ProgressBar, ProgressStyle};
use std::fs::{File, OpenOptions, remove_file};
use std::io::{BufWriter, IsTerminal, stderr};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};

pub const HELP: &str = "\
FLOW is a connection of this host as `fatpath flows` lists it: its two ends, or
the remote end alone when only one flow has it, or the flow's cookie. A flow of
another network namespace is not seen: run the command there, by `ip netns exec`
or `fatpath lab exec`.

Headers are kept, payload is not, unless --snaplen asks for it. The capture ends
after --seconds, at --size or at Ctrl-C, whichever comes first; then `fatpath
analyse` analyses the file.

Examples:
  fatpath capture 10.5.128.74:443 --seconds 10 --out flow.pcapng
  fatpath capture 10.5.0.1:40112 10.5.128.74:443 --out flow.pcapng
  fatpath capture 81923 --seconds 60 --out flow.pcapng --no-summary
  fatpath analyse flow.pcapng --flow 1 --plot figures";

#[derive(Args)]
pub struct Arguments {
    /// Local and remote ADDRESS:PORT, or the remote one, or the flow's cookie
    #[arg(value_name = "FLOW", num_args = 1..=2, required = true)]
    flow: Vec<String>,
    /// How long to capture
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// File to write, pcapng; it must not exist
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Size of the file at which the capture ends, MiB
    #[arg(long, value_name = "MIB", default_value_t = 256, value_parser = clap::value_parser!(u64).range(1..=65_536))]
    size: u64,
    /// Bytes of each packet to keep, from the IP header on, also payload [default: only headers]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(40..=262_144))]
    snaplen: Option<u32>,
    /// Print no analysis at the end
    #[arg(long)]
    no_summary: bool,
    /// Print the analysis as JSON
    #[arg(long, conflicts_with = "no_summary")]
    json: bool,
    #[command(flatten)]
    instance: InstanceOptions,
}

/// How long to wait for a packet before looking at the clock.
const WAIT: Duration = Duration::from_millis(50);

/// What was captured.
struct Captured {
    packets: u64,
    dropped: u64,
    elsewhere: u64,
    is_full: bool,
    lasted: Duration,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let instance = Instance::new(&arguments.instance, None)?;
    let ends = one_flow::ends(&arguments.flow, &instance)?;
    let keep = arguments.snaplen.map_or(Keep::Headers, Keep::Bytes);
    let sniffer = Sniffer::open(ends, keep).map_err(with_remedy)?;
    let name = arguments.out.display().to_string();
    let file = create(&arguments.out).with_context(|| name.clone())?;
    let captured = capture(sniffer, file, ends, arguments).with_context(|| name.clone())?;
    if captured.packets == 0 {
        remove_file(&arguments.out).with_context(|| name.clone())?;
        bail!(
            "no packet of {} and {} passed in {} s: `fatpath flows` lists the flows of this host; those of another \
             network namespace are seen only there",
            ends[0],
            ends[1],
            arguments.seconds
        );
    }
    say(&captured, &name, keep, arguments.size);
    match arguments.no_summary {
        true => Ok(ExitCode::SUCCESS),
        false => fatpath_analyse::run(&fatpath_analyse::Arguments::of(
            arguments.out.clone(),
            arguments.json,
        )),
    }
}

fn with_remedy(error: OpenError) -> anyhow::Error {
    let remedy = match error {
        OpenError::NotPermitted => {
            "run it as root, or give a copy of fatpath the capability CAP_NET_RAW; for the page, give fatpath.service the \
             drop-in of docs/daemon.md"
        }
        _ => return error.into(),
    };
    anyhow::Error::from(error).context(remedy)
}

/// Who was with whom is nobody else's business.
fn create(path: &Path) -> std::io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

fn capture(
    mut sniffer: Sniffer,
    file: File,
    ends: [std::net::SocketAddr; 2],
    arguments: &Arguments,
) -> Result<Captured> {
    let what = match arguments.snaplen {
        None => "IP and TCP headers only, no payload".to_owned(),
        Some(bytes) => format!("up to {bytes} bytes of each packet, payload among them"),
    };
    let comment = format!("one TCP connection, {} and {}: {what}", ends[0], ends[1]);
    let written = Written {
        application: concat!("fatpath ", env!("FATPATH_VERSION")),
        comment: &comment,
        interface: "any",
        snaplen: arguments.snaplen.unwrap_or(0),
    };
    let mut writer = Writer::new(BufWriter::new(file), &written)?;
    let (most_bytes, mut packets) = (arguments.size << 20, 0);
    let progress = Progress::start(arguments.seconds);
    let stop = stop_at_signals()?;
    let begun = Instant::now();
    let end = begun + Duration::from_secs(arguments.seconds);
    let (mut stopped_ns, mut is_full) = (i64::MAX, false);
    while !is_full {
        if stopped_ns == i64::MAX && (stop.load(Ordering::Relaxed) || Instant::now() >= end) {
            stopped_ns = now_ns();
        }
        match sniffer.next(WAIT)? {
            // What the kernel saw before the end is taken, too.
            Some(packet) if packet.time_ns <= stopped_ns => {
                writer.packet(packet.time_ns, packet.wire_bytes, packet.data)?;
                packets += 1;
                is_full = writer.bytes() >= most_bytes;
            }
            None if stopped_ns == i64::MAX => {}
            _ => break,
        }
        progress.show(packets);
    }
    let lasted = begun.elapsed();
    let dropped = sniffer.dropped();
    writer.finish(now_ns(), dropped)?;
    Ok(Captured {
        packets,
        dropped,
        elsewhere: sniffer.elsewhere(),
        is_full,
        lasted,
    })
}

/// Of the clock that stamps packets.
fn now_ns() -> i64 {
    unix_ns(monotonic_ns()) as i64
}

/// What the file holds.
fn say(captured: &Captured, name: &str, keep: Keep, size_mib: u64) {
    let what = match keep {
        Keep::Headers => "headers only".to_owned(),
        Keep::Bytes(bytes) => format!("up to {bytes} bytes of each, payload among them"),
    };
    eprintln!("{name}: {} packets, {what}", captured.packets);
    if captured.is_full {
        eprintln!(
            "fatpath: warning: the capture ended after {:.1} s: the file reached its bound of {} MiB (--size)",
            captured.lasted.as_secs_f64(),
            size_mib
        );
    }
    if captured.dropped > 0 {
        let dropped = captured.dropped;
        eprintln!(
            "fatpath: warning: {dropped} packets were lost, because this machine was busy: figures are too low"
        );
    }
    if captured.elsewhere > 0 {
        let elsewhere = captured.elsewhere;
        eprintln!("{elsewhere} packets were seen on a second interface, too, and left out there");
    }
}

/// True once Ctrl-C or SIGTERM has come: the file is finished then.
fn stop_at_signals() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (mut interrupt, mut terminate) = {
        let _inside = runtime.enter();
        (
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
        )
    };
    thread::spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        });
        stopped.store(true, Ordering::Relaxed);
    });
    Ok(stop)
}

/// On a terminal.
struct Progress(Option<ProgressBar>);

impl Progress {
    fn start(seconds: u64) -> Progress {
        let style = ProgressStyle::with_template("{elapsed} of {msg} s, {pos} packets");
        Progress(stderr().is_terminal().then(|| {
            let bar = ProgressBar::no_length().with_style(style.expect("a valid template"));
            bar.with_message(seconds.to_string())
        }))
    }

    fn show(&self, packets: u64) {
        if let Some(bar) = &self.0 {
            bar.set_position(packets);
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath trace`: samples of chosen flows to Parquet files, and figures of them.
//!
//! The files are written here, with the caller's own rights: the daemon only hands samples out.

use crate::not_running::not_running;
use crate::observed::Observed;
use anyhow::{Context, Result, bail, ensure};
use clap::{Args, Subcommand};
use fatpath_api::{FlowsQuery, SampleLine};
use fatpath_clock::unix_ns;
use fatpath_daemon::Instance;
use fatpath_daemon::client::{Followed, follow_samples};
use fatpath_plot::{FlowOverTime, Format, picture};
use fatpath_record::{Bounds, Recorded, Recorder, Row, Traced, dated, read, recover};
use fatpath_units::show_count;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tokio::signal::unix::{SignalKind, signal};

pub const HELP: &str = "\
The policy's section [instruments] sets how often flows are sampled (interval,
default 100 ms). A file is finished when it is full, and when the trace ends; a
file that a crash left unfinished is finished by the next trace into the same
directory. When the daemon is restarted, the trace continues.

A table [[trace]] of the policy file lets the daemon write such files by itself
(docs/exports.md).

Examples:
  fatpath trace --out traces
  fatpath trace 10.5.128.0/24 --out traces --for 60
  fatpath trace 81923 --out traces
  fatpath trace plot traces/trace-2026-11-22T101500Z-0001.parquet --out cwnd.svg
  duckdb -c \"select remote_address, max(cwnd_pkts)
             from 'traces/*.parquet' group by all\"";

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct TraceArguments {
    #[command(subcommand)]
    pub command: Option<TraceCommand>,
    /// A flow's cookie, or the prefix of its peers [default: all flows]
    #[arg(value_name = "FLOW|PREFIX")]
    pub which: Option<String>,
    /// Directory of the files
    #[arg(long, value_name = "DIR", required = true)]
    pub out: Option<PathBuf>,
    /// Seconds after which the trace ends [default: until Ctrl-C]
    #[arg(long = "for", value_name = "SECONDS", value_parser = seconds)]
    pub for_s: Option<f64>,
    /// Size of a file, MiB
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=4096))]
    pub file_size: u64,
    /// Size of all files of this trace together, MiB; beyond it the oldest is deleted
    #[arg(long, value_name = "MIB", default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..))]
    pub total_size: u64,
    #[command(flatten)]
    pub of: Observed,
}

#[derive(Subcommand)]
pub enum TraceCommand {
    /// Draw a flow of a file: windows, round-trip time, rate, retransmissions
    Plot(PlotArguments),
}

#[derive(Args)]
pub struct PlotArguments {
    /// A finished file of a trace
    pub file: PathBuf,
    /// Picture, .png or .svg
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Cookie of the flow [default: the one with most samples]
    #[arg(long, value_name = "COOKIE")]
    pub flow: Option<u64>,
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text
        .parse()
        .map_err(|_| "give a number of seconds, such as 60")?;
    match seconds > 0.0 && seconds <= 1e8 {
        true => Ok(seconds),
        false => Err("give more than 0 and at most 1e8 seconds".to_owned()),
    }
}

pub fn run(arguments: &TraceArguments) -> Result<()> {
    match &arguments.command {
        Some(TraceCommand::Plot(arguments)) => plot(arguments),
        None => trace(arguments),
    }
}

fn trace(arguments: &TraceArguments) -> Result<()> {
    let out = arguments
        .out
        .as_deref()
        .context("give --out DIR: the directory for the files")?;
    let mut recorder = begin(arguments, out)?;
    let instance = arguments.of.instance()?;
    let flows = query(arguments.which.as_deref());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (mut counts, for_s) = (Counts::default(), arguments.for_s);
    let followed = runtime.block_on(async {
        let mut stop = Box::pin(stopped(for_s)?);
        let take = |line| counts.take(line, &mut recorder);
        follow(&instance, &flows, stop.as_mut(), take).await
    });
    // What was taken is kept, whatever came after.
    let recorded = recorder.finish().context("the last file")?;
    say(out, &counts, &recorded);
    followed
}

fn begin(arguments: &TraceArguments, out: &Path) -> Result<Recorder> {
    let bounds = Bounds {
        file_bytes: arguments.file_size << 20,
        total_bytes: arguments.total_size << 20,
        ..Bounds::default()
    };
    let name = dated("trace-", SystemTime::now());
    let recorder = Recorder::begin(out, &name, bounds)?;
    for recovered in recover(out)? {
        eprintln!("{recovered}");
    }
    Ok(recorder)
}

/// A number is a flow's cookie, everything else a prefix, which the daemon judges.
fn query(which: Option<&str>) -> FlowsQuery {
    let Some(which) = which else {
        return FlowsQuery::default();
    };
    if let Ok(cookie) = which.parse() {
        return FlowsQuery::flow(cookie);
    }
    FlowsQuery::prefix(match which.parse::<std::net::IpAddr>() {
        Ok(ip) if ip.is_ipv4() => format!("{ip}/32"),
        Ok(ip) => format!("{ip}/128"),
        Err(_) => which.to_owned(),
    })
}

/// Done at Ctrl-C, at SIGTERM, and when the time is up.
fn stopped(for_s: Option<f64>) -> Result<impl Future<Output = ()>> {
    let mut end = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let time = for_s.map_or(Duration::MAX, Duration::from_secs_f64);
    Ok(async move {
        tokio::select! {
            _ = end.recv() => {}
            _ = interrupt.recv() => {}
            () = tokio::time::sleep(time) => {}
        }
    })
}

/// A daemon that is restarted is followed again.
async fn follow(
    instance: &Instance,
    flows: &FlowsQuery,
    mut stop: impl Future<Output = ()> + Unpin,
    mut take: impl FnMut(SampleLine),
) -> Result<()> {
    let mut has_answered = false;
    loop {
        match follow_samples(&instance.socket(), flows, &mut stop, &mut take).await? {
            Some(Followed::Stopped) => return Ok(()),
            Some(Followed::DaemonEnded) => {
                eprintln!("the daemon ended; the trace continues when the daemon is started again");
                has_answered = true;
            }
            None if !has_answered => {
                bail!("{}", not_running(instance))
            }
            None => {}
        }
        tokio::select! {
            () = &mut stop => return Ok(()),
            () = tokio::time::sleep(Duration::from_secs(1)) => {}
        }
    }
}

/// What came, and what did not.
#[derive(Default)]
struct Counts {
    samples: u64,
    missed: u64,
}

impl Counts {
    fn take(&mut self, line: SampleLine, recorder: &mut Recorder) {
        match line {
            SampleLine::Lost(missed) => self.missed += missed,
            SampleLine::Sample(sample) => {
                self.samples += 1;
                // The daemon's host is this one: samples carry its CLOCK_MONOTONIC.
                let time_us = (unix_ns(sample.now_ns) / 1000) as i64;
                let row = Row {
                    time_us,
                    sample: *sample,
                };
                if let Some(said) = recorder.take(row) {
                    eprintln!("{said}");
                }
            }
        }
    }
}

fn say(out: &Path, counts: &Counts, recorded: &Recorded) {
    eprintln!(
        "{}: {} in {}",
        out.display(),
        show_count(recorded.written_rows, "sample"),
        show_count(recorded.finished - recorded.removed, "file")
    );
    if recorded.removed > 0 {
        eprintln!(
            "{} files, the oldest, were deleted to stay within --total-size",
            recorded.removed
        );
    }
    if recorded.lost_rows > 0 {
        eprintln!(
            "fatpath: warning: {} samples were lost to a full disk",
            recorded.lost_rows
        );
    }
    if counts.missed > 0 {
        eprintln!(
            "fatpath: warning: {} samples, counted over all flows, arrived faster than they were read, and are lost",
            counts.missed
        );
    }
}

fn plot(arguments: &PlotArguments) -> Result<()> {
    let format = Format::of(&arguments.out).context("--out must end in .png or .svg")?;
    let flows = read(&arguments.file)?;
    let count = flows.len();
    let flow = chosen(flows, arguments.flow)?;
    let figure = FlowOverTime {
        title: format!("{} to {}, {}", flow.local, flow.remote, flow.law),
        points: flow.points,
        congestion_s: flow.congestion_s,
    };
    let out = arguments.out.display();
    std::fs::write(&arguments.out, picture(&figure, format)?).with_context(|| out.to_string())?;
    println!("{out}: flow {}, of {count} in the file", flow.cookie);
    Ok(())
}

fn chosen(flows: Vec<Traced>, cookie: Option<u64>) -> Result<Traced> {
    ensure!(!flows.is_empty(), "the file has no samples");
    let is_it = |flow: &Traced| cookie.is_none_or(|cookie| flow.cookie == cookie);
    let found = flows.into_iter().filter(is_it);
    let found = found.max_by_key(|flow| flow.points.len());
    found.with_context(|| format!("the file has no flow {}", cookie.unwrap_or_default()))
}

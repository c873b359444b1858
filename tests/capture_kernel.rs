// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath analyse` beside the kernel that made the packets: why it retransmitted, by its own counters; the round-trip
//! time, by its own samples; and what was wrong, which the emulated path knows.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use fatpath_capture::{
    Analysis, Connection, Limits, Reader, Retransmission, Segment, Verdict, decode, flag,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::Command;
use std::thread::{self, sleep};
use std::time::{Duration, UNIX_EPOCH};
use support::causes::{BLACK_HOLE, CAUSES, Cause, HEALTHY};
use support::tcpdump::{Tcpdump, is_closed};
use support::{FATPATH, Lab, alone, until};

const PORT: u16 = 7001;
/// 1,382 segments of 1,448 bytes.
const BYTES: usize = 2_000_000;
const PATH: &str = "delay = '20ms'\nrate = '20mbit'\nqueue = '4MB'";

/// Scenarios that run at once: two processors emulate no more.
const AT_ONCE: usize = 4;

/// What happens while data is sent.
#[derive(Clone, Copy)]
enum During {
    Nothing,
    /// Everything is lost until the timer has expired so often.
    Blackout(u64),
    /// The way takes longer by much, for a while.
    Delay,
}

/// A transfer whose sender has to retransmit, and why.
#[derive(Clone, Copy)]
struct Scenario {
    name: &'static str,
    link: &'static str,
    /// Host, sysctl.
    sysctls: &'static [(&'static str, &'static str)],
    during: During,
}

const LOSSY: Scenario = Scenario {
    name: "",
    link: "",
    sysctls: &[],
    during: During::Nothing,
};

const SCENARIOS: [Scenario; 20] = [
    Scenario {
        name: "one-lost",
        link: "forward = { loss = { packets = [100] } }",
        ..LOSSY
    },
    Scenario {
        name: "three-lost",
        link: "forward = { loss = { packets = [100, 150, 220] } }",
        ..LOSSY
    },
    Scenario {
        name: "burst-lost",
        link: "forward = { loss = { packets = [200, 201, 202, 203, 204, 205, 206, 207, 208, 209] } }",
        ..LOSSY
    },
    Scenario {
        name: "one-in-hundred",
        link: "forward = { loss = '1%' }",
        ..LOSSY
    },
    Scenario {
        name: "one-in-twenty",
        link: "forward = { loss = '5%' }",
        ..LOSSY
    },
    Scenario {
        name: "bursts",
        link: "forward = { loss = { to_bad = '0.2%', to_good = '30%', loss_in_good = '0%', loss_in_bad = '100%' } }",
        ..LOSSY
    },
    Scenario {
        name: "last-lost",
        link: "forward = { loss = { packets = [1382] } }",
        ..LOSSY
    },
    Scenario {
        name: "last-three-lost",
        link: "forward = { loss = { packets = [1380, 1381, 1382] } }",
        ..LOSSY
    },
    Scenario {
        name: "last-and-its-probe-lost",
        link: "forward = { loss = { packets = [1382, 1383] } }",
        ..LOSSY
    },
    Scenario {
        name: "last-three-lost-no-probe",
        link: "forward = { loss = { packets = [1380, 1381, 1382] } }",
        sysctls: &[("a", "net.ipv4.tcp_early_retrans=0")],
        ..LOSSY
    },
    Scenario {
        name: "timeout",
        during: During::Blackout(1),
        ..LOSSY
    },
    Scenario {
        name: "three-timeouts",
        during: During::Blackout(3),
        ..LOSSY
    },
    Scenario {
        name: "timeout-no-frto",
        sysctls: &[("a", "net.ipv4.tcp_frto=0")],
        during: During::Blackout(2),
        ..LOSSY
    },
    Scenario {
        name: "spurious-timeout",
        during: During::Delay,
        ..LOSSY
    },
    Scenario {
        name: "reordered-little",
        link: "forward = { reorder = { share = '1%', by = 5 } }",
        ..LOSSY
    },
    Scenario {
        name: "reordered-much",
        link: "forward = { reorder = { share = '1%', by = 40, hold = '40ms' } }",
        ..LOSSY
    },
    Scenario {
        name: "duplicated",
        link: "forward = { duplicate = '1%', loss = '0.5%' }",
        ..LOSSY
    },
    Scenario {
        name: "acks-lost",
        link: "forward = { loss = '1%' }\nbackward = { loss = '10%' }",
        ..LOSSY
    },
    Scenario {
        name: "bbr",
        link: "forward = { loss = '1%' }",
        sysctls: &[("a", "net.ipv4.tcp_congestion_control=bbr")],
        ..LOSSY
    },
    Scenario {
        name: "no-timestamps",
        link: "forward = { loss = '1%' }",
        sysctls: &[("a", "net.ipv4.tcp_timestamps=0")],
        ..LOSSY
    },
];

fn has_tcpdump() -> bool {
    let is_there = Command::new("tcpdump").arg("--version").output().is_ok();
    if !is_there {
        println!("skipped: needs tcpdump (packaging/setup.sh tests)");
    }
    is_there
}

fn analysed(file: &Path) -> Value {
    let mut analyse = Command::new(FATPATH);
    let output = analyse.arg("analyse").arg(file).arg("--json").output();
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

impl Scenario {
    /// Segments by kind, ours and the kernel's.
    fn run(&self, number: usize) -> [BTreeMap<&'static str, u64>; 2] {
        let link = format!("{PATH}\n{}", self.link);
        let lab = Lab::up(&format!("kinds-{number}"), &link);
        for (host, sysctl) in self.sysctls {
            lab.output(host, &["sysctl", "-w", sysctl]);
        }
        let dump = Tcpdump::start(&lab, "a", PORT);
        let (sender, receiver) = lab.connection(PORT);
        thread::scope(|scope| {
            scope.spawn(|| send(sender, BYTES));
            scope.spawn(|| self.during.happen(&lab));
            read_all(receiver);
        });
        until("the end to be captured", || {
            is_closed(&dump.file).then_some(())
        });
        let file = dump.stop();
        [ours(&file), kernels(&lab)]
    }
}

impl During {
    fn happen(self, lab: &Lab) {
        let sent = || lab.counted("a", &["TCPOrigDataSent"]) > 300;
        if !matches!(self, During::Nothing) {
            until("data to be sent", || sent().then_some(()));
        }
        match self {
            During::Nothing => {}
            During::Blackout(times) => {
                lab.set("forward.loss=100%");
                let timeouts = || lab.counted("a", &["TCPTimeouts"]) >= times;
                until("timeouts", || timeouts().then_some(()));
                lab.set("forward.loss=0%");
            }
            During::Delay => {
                lab.set("forward.delay=1500ms");
                let timeouts = || lab.counted("a", &["TCPTimeouts"]) >= 1;
                until("a timeout", || timeouts().then_some(()));
                lab.set("forward.delay=20ms");
            }
        }
    }
}

fn send(mut sender: TcpStream, bytes: usize) {
    sender.write_all(&vec![7; bytes]).unwrap();
    sender.shutdown(Shutdown::Write).unwrap();
    assert_eq!(sender.read(&mut [0; 1]).unwrap(), 0);
}

fn read_all(mut receiver: TcpStream) {
    std::io::copy(&mut receiver, &mut std::io::sink()).unwrap();
}

/// Up to the receiver's FIN: there the sender's socket ends, and its kernel counts no report of a copy that comes later.
fn judged(file: &Path) -> (Vec<(Segment, Verdict)>, Connection) {
    let mut reader = Reader::new(File::open(file).unwrap()).unwrap();
    let mut analysis = Analysis::new(Limits::default());
    let mut judged = Vec::new();
    while let Some(frame) = reader.next_frame().unwrap() {
        let segment = decode(&frame).unwrap();
        let is_end = segment.source.socket().port() == PORT && segment.has(flag::FIN);
        judged.push((segment, analysis.take(&frame).unwrap()));
        if is_end {
            break;
        }
    }
    (judged, analysis.finish().0.remove(0))
}

/// Of all of the capture, as far as it has been written.
fn reports_of_copies(file: &Path) -> u64 {
    let mut reader = Reader::new(File::open(file).unwrap()).unwrap();
    let mut analysis = Analysis::new(Limits::default());
    while let Ok(Some(frame)) = reader.next_frame() {
        analysis.take(&frame);
    }
    let (connections, _) = analysis.finish();
    connections.first().map_or(0, |one| one.from_server.dsacks)
}

/// Of the sender's data; a super-packet is several segments.
fn ours(file: &Path) -> BTreeMap<&'static str, u64> {
    let (judged, connection) = judged(file);
    let mut kinds = BTreeMap::new();
    for (segment, verdict) in judged {
        let kind = match verdict.retransmission {
            Some(Retransmission::Fast) => "fast",
            Some(Retransmission::Timeout) => "timeout",
            Some(Retransmission::AfterTimeout) => "after timeout",
            Some(Retransmission::TailLossProbe) => "probe",
            Some(Retransmission::Unclear) => "unclear",
            None if verdict.is_syn_again && segment.source.socket().port() != PORT => "timeout",
            None => continue,
        };
        let full_bytes = match segment.options.timestamps {
            Some(_) => 1448,
            None => 1460,
        };
        let segments = u64::from(segment.payload_bytes.div_ceil(full_bytes).max(1));
        *kinds.entry(kind).or_default() += segments;
    }
    kinds.insert("reports of copies", connection.from_server.dsacks);
    kinds
}

/// Probes are what is left of all retransmissions: their own counter has those of new data, too.
fn kernels(lab: &Lab) -> BTreeMap<&'static str, u64> {
    let counted = |names: &[&str]| lab.counted("a", names);
    let fast = counted(&["TCPFastRetrans"]);
    let timeout = counted(&["TCPTimeouts"]);
    let after = counted(&["TCPSlowStartRetrans"]);
    let all = lab.counted_tcp("a", "RetransSegs");
    let copies = counted(&["TCPDSACKRecv", "TCPDSACKOfoRecv"]);
    let kinds = [
        ("fast", fast),
        ("timeout", timeout),
        ("after timeout", after),
        ("probe", all.saturating_sub(fast + timeout + after)),
    ];
    let mut kinds: BTreeMap<_, _> = kinds.into_iter().filter(|(_, count)| *count > 0).collect();
    kinds.insert("reports of copies", copies);
    kinds
}

/// `FATPATH_KINDS=NAME,NAME` chooses.
fn is_chosen(name: &str) -> bool {
    let names = std::env::var("FATPATH_KINDS").unwrap_or_default();
    names.is_empty() || names.split(',').any(|one| one == name)
}

/// Prints them: the figure `capture.kinds_exact` counts.
#[test]
#[ignore = "long"]
fn kinds_of_each_scenario_are_those_of_the_kernel() {
    if !has_tcpdump() {
        return;
    }
    let Some(_alone) = alone() else { return };
    let chosen: Vec<&Scenario> = SCENARIOS.iter().filter(|one| is_chosen(one.name)).collect();
    let mut wrong = Vec::new();
    for some in chosen.chunks(AT_ONCE) {
        let runs = thread::scope(|scope| {
            let numbered = some.iter().enumerate();
            let runs: Vec<_> = numbered
                .map(|(number, one)| scope.spawn(move || one.run(number)))
                .collect();
            let runs = runs.into_iter().map(|run| run.join().unwrap());
            runs.collect::<Vec<_>>()
        });
        for (scenario, [ours, kernels]) in some.iter().zip(runs) {
            let verdict = if ours == kernels { "right" } else { "wrong" };
            println!(
                "kinds: {verdict}, {}: {ours:?}, the kernel {kernels:?}",
                scenario.name
            );
            if ours != kernels {
                wrong.push(scenario.name);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// All is sent at once, and ACKs take so long that the timers send some again. The receiver has closed when that arrives; its
/// report comes behind its FIN, which leaves of the sender's socket a minisock in TIME-WAIT, which looks at no SACK.
#[test]
#[ignore = "long"]
fn the_kernel_counts_no_report_of_a_copy_behind_the_receivers_fin() {
    if !has_tcpdump() {
        return;
    }
    let Some(_alone) = alone() else { return };
    let lab = Lab::up("kinds-late", PATH);
    let dump = Tcpdump::start(&lab, "a", PORT);
    let (sender, receiver) = lab.connection(PORT);
    lab.set("backward.delay=1500ms");
    thread::scope(|scope| {
        scope.spawn(|| send(sender, 5 * 1448));
        read_all(receiver);
    });
    until("a report behind the end", || {
        (reports_of_copies(&dump.file) > 0).then_some(())
    });
    let file = dump.stop();
    let counted = kernels(&lab)["reports of copies"];
    assert_eq!(ours(&file)["reports of copies"], counted);
    assert!(reports_of_copies(&file) > counted);
}

/// Name, link, law. Long enough that how a transfer begins is little of it.
const ROUND_TRIPS: [(&str, &str, &str); 4] = [
    (
        "queue",
        "delay = '20ms'\nrate = '20mbit'\nqueue = '1bdp'",
        "cubic",
    ),
    (
        "short",
        "delay = '2ms'\nrate = '50mbit'\nqueue = '1bdp'",
        "reno",
    ),
    (
        "lossy",
        "delay = '25ms'\nrate = '50mbit'\nqueue = '1bdp'\nforward = { loss = '0.1%' }",
        "cubic",
    ),
    (
        "paced",
        "delay = '40ms'\nrate = '20mbit'\nqueue = '2bdp'",
        "bbr",
    ),
];
const ROUND_TRIPS_LAST: Duration = Duration::from_secs(8);
const SAMPLE_EVERY: Duration = Duration::from_millis(5);

/// Prints them: the figure `capture.rtt_error` compares.
#[test]
#[ignore = "long"]
fn round_trips_are_printed_beside_the_kernels() {
    if !has_tcpdump() {
        return;
    }
    let Some(_alone) = alone() else { return };
    for (name, link, law) in ROUND_TRIPS.into_iter().filter(|one| is_chosen(one.0)) {
        let lab = Lab::up(&format!("rtt-{name}"), link);
        let law = format!("net.ipv4.tcp_congestion_control={law}");
        lab.output("a", &["sysctl", "-w", &law]);
        let dump = Tcpdump::start(&lab, "a", PORT);
        let (sender, receiver) = lab.connection(PORT);
        let sampled = sampled_while_sending(sender, receiver);
        until("the end to be captured", || {
            is_closed(&dump.file).then_some(())
        });
        let smoothed = smoothed(&dump.stop());
        // As the capture has it at the moment of each sample.
        let at = |time_ns: i64| smoothed.partition_point(|(acked_ns, _)| *acked_ns <= time_ns);
        let pairs = sampled.iter().filter_map(|(time_ns, kernels_us)| {
            let (_, ours_ns) = smoothed.get(at(*time_ns).checked_sub(1)?)?;
            Some((ours_ns / 1000.0, f64::from(*kernels_us)))
        });
        let (ours, kernels): (Vec<f64>, Vec<f64>) = pairs.unzip();
        let samples = ours.len();
        let [ours, kernels] = [ours, kernels].map(median);
        println!("rtt: {name}: {ours:.0} the kernel {kernels:.0} of {samples} samples");
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Round trips of the sender's data, smoothed as the kernel does it (RFC 6298, section 2), when each was measured.
fn smoothed(file: &Path) -> Vec<(i64, f64)> {
    let mut series: Vec<(i64, f64)> = Vec::new();
    for (segment, verdict) in judged(file).0 {
        let is_of_data = segment.source.socket().port() == PORT;
        if let Some(rtt_ns) = verdict.rtt_ns.filter(|_| is_of_data) {
            let rtt_ns = rtt_ns as f64;
            let before = series.last().map_or(rtt_ns, |(_, before)| *before);
            series.push((segment.time_ns, before + (rtt_ns - before) / 8.0));
        }
    }
    series
}

/// `tcpi_rtt` and when it was read, ns since 1970.
fn sampled_while_sending(sender: TcpStream, receiver: TcpStream) -> Vec<(i64, u32)> {
    let watched = sender.try_clone().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| read_all(receiver));
        let sends = scope.spawn(|| {
            let mut sender = sender;
            let begun = std::time::Instant::now();
            while begun.elapsed() < ROUND_TRIPS_LAST {
                sender.write_all(&[7; 16_384]).unwrap();
            }
            sender.shutdown(Shutdown::Write).unwrap();
            assert_eq!(sender.read(&mut [0; 1]).unwrap(), 0);
        });
        let mut samples = Vec::new();
        while !sends.is_finished() {
            let since = UNIX_EPOCH.elapsed().unwrap();
            samples.push((since.as_nanos() as i64, rtt_us(&watched)));
            sleep(SAMPLE_EVERY);
        }
        samples
    })
}

#[allow(unsafe_code)]
fn rtt_us(socket: &TcpStream) -> u32 {
    // SAFETY: a structure of integers; the kernel writes no more than the length that it is told.
    unsafe {
        let mut info: libc::tcp_info = std::mem::zeroed();
        let mut length = size_of::<libc::tcp_info>() as u32;
        let answer = libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &raw mut length,
        );
        assert_eq!(answer, 0, "{}", std::io::Error::last_os_error());
        info.tcpi_rtt
    }
}

/// What a capture at the sender has to say of the causes of tests/why.rs: of those that only the hosts know, nothing.
fn wanted(cause: &Cause) -> BTreeSet<String> {
    let shown = [
        "FP-RWND",
        "FP-RWND-SCALE",
        "FP-READER",
        "FP-RTO",
        "FP-TAIL-LOSS",
        "FP-REORDERING",
        "FP-BUFFERBLOAT",
        "FP-DELACK",
        "FP-PMTU-BLACKHOLE",
    ];
    let wanted = cause.wanted.iter().filter(|id| shown.contains(*id));
    wanted.map(|id| (*id).to_owned()).collect()
}

/// Prints them: the figure `capture.findings` counts.
#[test]
#[ignore = "long"]
fn a_capture_shows_each_cause_that_it_can_and_no_other() {
    if !has_tcpdump() {
        return;
    }
    let Some(_alone) = alone() else { return };
    let mut wrong = Vec::new();
    let all = HEALTHY.iter().chain(&CAUSES).chain([&BLACK_HOLE]);
    // What a policy of fatpath causes needs its daemon, and no capture shows it.
    let all = all.filter(|cause| is_chosen(cause.name) && !cause.policy.contains("[[rule]]"));
    for cause in all {
        let lab = Lab::up("cap-why", cause.link);
        let dump = Tcpdump::start(&lab, "a", PORT);
        cause.happen(&lab);
        let report = analysed(&dump.stop());
        let connections = report["connections"].as_array().unwrap();
        let found = connections
            .iter()
            .flat_map(|one| one["findings"].as_array().unwrap());
        let found: BTreeSet<String> = found
            .map(|one| one["id"].as_str().unwrap().to_owned())
            .collect();
        let is_right = found == wanted(cause);
        println!(
            "findings: {}, {}: {found:?}, wanted {:?}",
            if is_right { "right" } else { "wrong" },
            cause.name,
            wanted(cause)
        );
        if !is_right {
            wrong.push(format!("{}: {report:#}", cause.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

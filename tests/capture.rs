// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath analyse` on captures of the kernel's own TCP over emulated paths that lose, reorder, copy and stop, beside
//! what tshark and the kernel's counters say of the same packets.
//!
//! Each difference to tshark must be one of those that docs/capture.md explains by definition.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use fatpath_capture::{Analysis, Limits, Reader, Retransmission, Segment, Verdict, decode};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use support::tcpdump::{Tcpdump, is_closed};
use support::{FATPATH, Lab, alone, until};

const PORT: u16 = 7001;
const BYTES: usize = 2_000_000;
const PATH: &str = "delay = '20ms'\nrate = '20mbit'\nqueue = '4MB'";
/// Of data in an Ethernet frame with timestamps.
const SEGMENT_BYTES: u32 = 1448;

/// What happened to one transfer from `a` to `b`, at both ends.
struct Captured {
    lab: Lab,
    /// Captures at the sender and at the receiver.
    files: [PathBuf; 2],
}

/// `between` runs while the transfer does; the receiver reads when it has ended if `waits`.
fn transfer(name: &str, link: &str, waits: bool, between: impl FnOnce(&Lab) + Send) -> Captured {
    let link = format!("{PATH}\n{link}");
    transfer_over(Lab::up(name, &link), waits, between)
}

fn transfer_over(lab: Lab, waits: bool, between: impl FnOnce(&Lab) + Send) -> Captured {
    let dumps = ["a", "b"].map(|host| Tcpdump::start(&lab, host, PORT));
    let (sender, receiver) = lab.connection(PORT);
    thread::scope(|scope| {
        let sends = scope.spawn(|| send(sender));
        let middle = scope.spawn(|| between(&lab));
        if waits {
            middle.join().unwrap();
        }
        read_all(receiver);
        sends.join().unwrap();
    });
    for dump in &dumps {
        until("the end to be captured", || {
            is_closed(&dump.file).then_some(())
        });
    }
    let files = dumps.map(Tcpdump::stop);
    Captured { lab, files }
}

fn send(mut sender: TcpStream) {
    sender.write_all(&vec![7; BYTES]).unwrap();
    sender.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(sender.read(&mut [0; 1]).unwrap(), 0);
}

fn read_all(mut receiver: TcpStream) {
    let mut all = Vec::new();
    assert_eq!(receiver.read_to_end(&mut all).unwrap(), BYTES);
}

/// What tshark and we both say of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Said {
    retransmission: bool,
    out_of_order: bool,
    duplicate_ack: bool,
    zero_window: bool,
}

impl Said {
    fn of(verdict: &Verdict) -> Said {
        Said {
            retransmission: verdict.retransmission.is_some() || verdict.is_syn_again,
            out_of_order: verdict.is_out_of_order,
            duplicate_ack: verdict.is_duplicate_ack,
            zero_window: verdict.is_zero_window,
        }
    }
}

fn judged(file: &Path) -> Vec<(Segment, Verdict)> {
    let mut reader = Reader::new(File::open(file).unwrap()).unwrap();
    let mut analysis = Analysis::new(Limits::default());
    let mut judged = Vec::new();
    while let Some(frame) = reader.next_frame().unwrap() {
        judged.push((decode(&frame).unwrap(), analysis.take(&frame).unwrap()));
    }
    assert_eq!(analysis.counts().connections, 1);
    judged
}

fn tsharks(file: &Path) -> Vec<Said> {
    let fields = [
        "retransmission",
        "out_of_order",
        "duplicate_ack",
        "zero_window",
    ];
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(file).args(["-T", "fields"]);
    for field in fields {
        tshark.args(["-e", &format!("tcp.analysis.{field}")]);
    }
    let output = tshark.output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let said = text.lines().map(|line| {
        let mut words = line.split('\t').map(|word| !word.is_empty());
        let mut next = || words.next().unwrap_or_default();
        Said {
            retransmission: next(),
            out_of_order: next(),
            duplicate_ack: next(),
            zero_window: next(),
        }
    });
    said.collect()
}

/// What tells who is right, whatever timestamps say: Linux counts the identification of a connection's packets up, so
/// that it is the order in which they were sent.
#[derive(Default)]
struct Judge {
    /// By port of the sender: one past its highest sequence number, and the identification of that segment.
    top: BTreeMap<u16, (u32, u16)>,
    seen: BTreeSet<(u16, u32, u16)>,
}

impl Judge {
    /// Why the two differ; each reason stands in docs/capture.md.
    fn reason(&self, segment: &Segment, ours: &Verdict, theirs: Said) -> Option<&'static str> {
        let (from, to) = ports(segment);
        let id = segment.ip_id.unwrap_or(0);
        let (top, top_id) = self.top.get(&from).copied().unwrap_or_default();
        let said = Said::of(ours);
        let only = |said: Said| {
            Said {
                retransmission: said.retransmission,
                ..Said::default()
            } == said
        };
        let late = |said: Said| {
            Said {
                out_of_order: true,
                ..Said::default()
            } == said
        };
        let was_sent_later = (id.wrapping_sub(top_id) as i16) > 0;
        let is_below = segment.seq.wrapping_sub(top) as i32 <= 0;
        if theirs.duplicate_ack && said == Said::default() {
            let peer = self.top.get(&to).map(|(end, _)| *end);
            return (peer == Some(segment.ack)).then_some("nothing is outstanding");
        }
        if only(said) && said.retransmission && late(theirs) && is_below {
            return was_sent_later.then_some("sent after what it fills the hole of");
        }
        if late(said) && only(theirs) && theirs.retransmission && is_below {
            return (!was_sent_later).then_some("sent before what overtook it");
        }
        if ours.is_copy && (only(theirs) && theirs.retransmission || late(theirs)) {
            let copied = self.seen.contains(&(from, segment.seq, id));
            return copied.then_some("the same packet again");
        }
        None
    }

    fn pass(&mut self, segment: &Segment) {
        let (from, _) = ports(segment);
        let id = segment.ip_id.unwrap_or(0);
        let end = segment.seq.wrapping_add(segment.sequence_bytes());
        let top = self.top.entry(from).or_insert((end, id));
        if end.wrapping_sub(top.0) as i32 > 0 {
            *top = (end, id);
        }
        self.seen.insert((from, segment.seq, id));
    }
}

fn ports(segment: &Segment) -> (u16, u16) {
    (
        segment.source.socket().port(),
        segment.destination.socket().port(),
    )
}

/// Compares frame by frame; answers how often each difference was explained.
fn compared(file: &Path) -> BTreeMap<&'static str, usize> {
    let (ours, theirs) = (judged(file), tsharks(file));
    assert_eq!(ours.len(), theirs.len());
    let mut judge = Judge::default();
    let mut reasons = BTreeMap::new();
    for (frame, ((segment, verdict), theirs)) in ours.iter().zip(theirs).enumerate() {
        if Said::of(verdict) != theirs {
            let reason = judge.reason(segment, verdict, theirs);
            let reason = reason.unwrap_or_else(|| {
                panic!("frame {}: {segment:?}\n{verdict:?}\n{theirs:?}", frame + 1)
            });
            *reasons.entry(reason).or_default() += 1;
        }
        judge.pass(segment);
    }
    reasons
}

/// Segments of the sender by the kind of their retransmission; a super-packet is several.
fn kinds(file: &Path) -> BTreeMap<&'static str, u64> {
    let mut kinds = BTreeMap::new();
    for (segment, verdict) in judged(file) {
        let counter = match verdict.retransmission {
            Some(Retransmission::Fast) => "TCPFastRetrans",
            Some(Retransmission::Timeout) => "TCPTimeouts",
            Some(Retransmission::AfterTimeout) => "TCPSlowStartRetrans",
            Some(Retransmission::TailLossProbe) => "TCPLossProbes",
            Some(Retransmission::Unclear) => "unclear",
            None if verdict.is_syn_again && ports(&segment).1 == PORT => "TCPTimeouts",
            None => continue,
        };
        let segments = segment.payload_bytes.div_ceil(SEGMENT_BYTES).max(1);
        *kinds.entry(counter).or_default() += u64::from(segments);
    }
    kinds
}

fn agrees_with_the_kernel(captured: &Captured) {
    let kinds = kinds(&captured.files[0]);
    for counter in ["TCPFastRetrans", "TCPTimeouts", "TCPSlowStartRetrans"] {
        assert_eq!(
            kinds.get(counter).copied().unwrap_or_default(),
            captured.lab.counted("a", &[counter]),
            "{counter}: {kinds:?}"
        );
    }
    // A probe may be new data, too, which is no retransmission.
    let probes = kinds.get("TCPLossProbes").copied().unwrap_or_default();
    assert!(
        probes <= captured.lab.counted("a", &["TCPLossProbes"]),
        "{kinds:?}"
    );
}

fn report(file: &Path) -> Value {
    let mut analyse = Command::new(FATPATH);
    let output = analyse
        .arg("analyse")
        .arg(file)
        .arg("--json")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let mut report: Value = serde_json::from_slice(&output.stdout).unwrap();
    report["connections"][0].take()
}

fn has_tools() -> bool {
    let is_there = |tool: &str| Command::new(tool).arg("--version").output().is_ok();
    for tool in ["tcpdump", "tshark"] {
        if !is_there(tool) {
            println!("skipped: needs {tool} (packaging/setup.sh tests)");
            return false;
        }
    }
    true
}

#[test]
fn every_difference_to_tshark_is_explained_and_kinds_are_those_of_the_kernel() {
    if !has_tools() {
        return;
    }
    let Some(_alone) = alone() else { return };
    thread::scope(|scope| {
        let lost = scope.spawn(|| transfer("cap-lost", "forward = { loss = '1%' }", false, |_| {}));
        let link = "forward = { reorder = { share = '1%', by = 5 } }";
        let late = scope.spawn(|| transfer("cap-late", link, false, |_| {}));
        let link = "forward = { duplicate = '1%' }";
        let copied = scope.spawn(|| transfer("cap-copied", link, false, |_| {}));
        let stopped = scope.spawn(|| transfer("cap-stopped", "", false, stop_for_a_while));
        let closed = scope.spawn(|| transfer("cap-closed", "", true, wait_for_probes));
        check_lost(&lost.join().unwrap());
        check_late(&late.join().unwrap());
        check_copied(&copied.join().unwrap());
        check_stopped(&stopped.join().unwrap());
        check_closed(&closed.join().unwrap());
    });
}

fn stop_for_a_while(lab: &Lab) {
    let sent = || lab.counted("a", &["TCPOrigDataSent"]) > 300;
    until("data to be sent", || sent().then_some(()));
    lab.set("forward.loss=100%");
    let timeouts = || lab.counted("a", &["TCPTimeouts"]) >= 2;
    until("timeouts", || timeouts().then_some(()));
    lab.set("forward.loss=0%");
}

fn wait_for_probes(lab: &Lab) {
    let is_closed = || lab.counted("b", &["TCPToZeroWindowAdv"]) >= 1;
    until("a closed window", || is_closed().then_some(()));
    let probes = || lab.counted("a", &["TCPWinProbe"]) >= 2;
    until("probes of it", || probes().then_some(()));
}

fn check_lost(captured: &Captured) {
    for file in &captured.files {
        compared(file);
    }
    agrees_with_the_kernel(captured);
    let [sent, received] = captured.files.each_ref().map(|file| report(file));
    assert_eq!([&sent["near"], &received["near"]], ["client", "server"]);
    let again = |report: &Value| {
        report["from_client"]["retransmitted_packets"]
            .as_u64()
            .unwrap()
    };
    assert!(again(&sent) >= 3 && again(&received) >= 3, "{sent:#}");
    draws(&captured.files[0], captured.lab.scratch());
    writes_a_table(&captured.files[0], captured.lab.scratch());
    // No loss is on the way back, and each end's own half of the path is the whole.
    let rtt = sent["from_client"]["rtt"]["min_us"].as_f64().unwrap();
    assert!((40_000.0..60_000.0).contains(&rtt), "{rtt}");
    let rtt = received["from_server"]["rtt_by_timestamps"]["min_us"]
        .as_f64()
        .unwrap();
    assert!((39_000.0..60_000.0).contains(&rtt), "{rtt}");
}

/// All figures of the flow, and what is asked for of a part of it.
fn draws(file: &Path, dir: &Path) {
    let mut analyse = Command::new(FATPATH);
    analyse
        .arg("analyse")
        .arg(file)
        .args(["--flow", "1", "--xplot"]);
    analyse.args(["--time", "0..0.5", "--plot"]).arg(dir);
    assert!(analyse.output().unwrap().status.success());
    let read = |name: &str| std::fs::read(dir.join(name)).unwrap();
    for figure in ["time-sequence", "over-time"] {
        let name = format!("flow-1-from-client-{figure}");
        assert!(read(&format!("{name}.png")).starts_with(b"\x89PNG"));
        assert!(read(&format!("{name}.svg")).starts_with(b"<svg"));
    }
    let xplot = String::from_utf8(read("flow-1-from-client-time-sequence.xpl")).unwrap();
    assert!(xplot.starts_with("timeval unsigned\ntitle\n") && xplot.ends_with("\ngo\n"));
    assert!(
        xplot
            .lines()
            .filter(|line| line.starts_with("uarrow"))
            .count()
            > 10
    );
    assert!(read("flow-1.html").starts_with(b"<!doctype html>"));
    let svg = String::from_utf8(read("flow-1-from-client-time-sequence.svg")).unwrap();
    assert!(svg.contains("acknowledged up to here"), "a legend");
}

/// As Parquet, which begins and ends with its magic number.
fn writes_a_table(file: &Path, dir: &Path) {
    let table = dir.join("connections.parquet");
    let mut analyse = Command::new(FATPATH);
    analyse
        .arg("analyse")
        .arg(file)
        .arg("--parquet")
        .arg(&table);
    let output = analyse.output().unwrap();
    assert!(output.status.success() && output.stdout.is_empty());
    let bytes = std::fs::read(&table).unwrap();
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
    assert!(!dir.join("connections.parquet.part").exists());
}

fn check_late(captured: &Captured) {
    compared(&captured.files[0]);
    compared(&captured.files[1]);
    agrees_with_the_kernel(captured);
    let way = &report(&captured.files[1])["from_client"];
    assert!(way["out_of_order"].as_u64().unwrap() >= 3, "{way:#}");
    let extent = way["reordering_packets"].as_u64().unwrap();
    assert!((1..=5).contains(&extent), "{way:#}");
}

fn check_copied(captured: &Captured) {
    compared(&captured.files[0]);
    compared(&captured.files[1]);
    agrees_with_the_kernel(captured);
    let [sent, received] = captured.files.each_ref().map(|file| report(file));
    let copies = received["from_client"]["copies"].as_u64().unwrap();
    assert!(copies >= 3, "{received:#}");
    // The receiver answers with DSACKs, and no retransmission explains them.
    let way = &sent["from_client"];
    assert!(way["dsack_of_copies"].as_u64().unwrap() >= 3, "{sent:#}");
    assert_eq!(way["spurious_by_dsack"], 0, "{sent:#}");
}

fn check_stopped(captured: &Captured) {
    compared(&captured.files[0]);
    compared(&captured.files[1]);
    agrees_with_the_kernel(captured);
}

fn check_closed(captured: &Captured) {
    for file in &captured.files {
        compared(file);
        let report = report(file);
        assert!(report["from_server"]["zero_windows"].as_u64().unwrap() >= 1);
        // The last may have passed the window that opened.
        assert!(report["from_client"]["window_probes"].as_u64().unwrap() >= 1);
        assert_eq!(report["findings"][0]["id"], "FP-READER", "{report:#}");
    }
    agrees_with_the_kernel(captured);
}

/// `fatpath capture` on the sender's host, to the end of its transfer.
fn captured_live(lab: &Lab, more: &[&str]) -> (Vec<u8>, Value) {
    let (sender, receiver) = lab.connection(PORT);
    let (other, others_peer) = lab.connection(PORT + 1);
    let ends = [sender.local_addr(), sender.peer_addr()].map(|end| end.unwrap().to_string());
    let file = lab.scratch().join(format!("live-{}.pcapng", more.len()));
    let mut command = Command::new(FATPATH);
    command.arg("capture").args(&ends).arg("--out").arg(&file);
    command.args(["--seconds", "60", "--json"]).args(more);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = lab.on("a", || command.spawn().unwrap());
    // It is made when packets are being taken.
    until("the file", || file.exists().then_some(()));
    thread::scope(|scope| {
        for (sender, receiver) in [(sender, receiver), (other, others_peer)] {
            scope.spawn(|| send(sender));
            scope.spawn(|| read_all(receiver));
        }
    });
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let report = serde_json::from_slice(&output.stdout).unwrap();
    (std::fs::read(file).unwrap(), report)
}

#[test]
fn a_live_connection_is_captured_alone_and_without_its_payload() {
    let Some(_alone) = alone() else { return };
    let lab = Lab::up("cap-live", "delay = '1ms'\nrate = '1gbit'");
    let has_payload = |file: &[u8]| file.windows(20).any(|bytes| bytes == [7; 20]);
    let (file, report) = captured_live(&lab, &[]);
    assert_eq!(report["counts"]["connections"], 1, "{report:#}");
    let way = &report["connections"][0]["from_client"];
    assert!(
        way["payload_bytes"].as_u64().unwrap() >= BYTES as u64,
        "{report:#}"
    );
    assert_eq!(way["unseen_bytes"], 0, "{report:#}");
    assert_eq!(report["counts"]["cut_short"], 0, "{report:#}");
    assert!(!has_payload(&file));
    let comment = report["about"]["comments"][0].as_str().unwrap();
    assert!(comment.contains("no payload"), "{comment}");
    let (file, _) = captured_live(&lab, &["--snaplen", "200"]);
    assert!(has_payload(&file));
}

/// Segments of the connection that the emulator took from `host`, and that it gave to the other one.
fn passed(observation: &Path, host: &str) -> [u64; 2] {
    let mut observe = Command::new(FATPATH);
    observe.args(["lab", "observe", "--flows", "--csv", "-"]);
    let output = observe.arg(observation).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let header = lines.next().unwrap();
    let column = |name: &str| header.iter().position(|one| *one == name).unwrap();
    let columns = ["arrived_packets", "left_packets"].map(column);
    let (from, flow, port) = (column("from"), column("flow"), PORT.to_string());
    let own = lines.filter(|line| line[from] == host && line[flow].contains(&port));
    own.fold([0, 0], |sum, line| {
        [0, 1].map(|at| sum[at] + line[columns[at]].parse::<u64>().unwrap())
    })
}

fn compare(files: &[PathBuf; 2]) -> Value {
    let mut compare = Command::new(FATPATH);
    compare.arg("analyse").arg(&files[0]).arg("--compare");
    let output = compare.arg(&files[1]).arg("--json").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let mut report: Value = serde_json::from_slice(&output.stdout).unwrap();
    report["connections"][0].take()
}

#[test]
fn two_captures_tell_what_the_emulator_lost_and_how_long_it_took() {
    if !has_tools() {
        return;
    }
    let Some(_alone) = alone() else { return };
    let losses = "forward = { loss = '2%' }\nbackward = { loss = '2%' }";
    let link = format!("{PATH}\n{losses}");
    let captured = transfer_over(Lab::observed("cap-both", &link), false, |_| {});
    let files = captured.files;
    let _kept = captured.lab.into_scratch();
    let observation = files[0].with_file_name("observation");
    let one = compare(&files);
    assert_eq!(one["nearer_client"], 1, "{one:#}");
    for (host, way) in [("a", "from_client"), ("b", "from_server")] {
        let [arrived, left] = passed(&observation, host);
        let way = &one[way];
        let of = |name: &str| way[name].as_u64().unwrap();
        let lost = of("lost_segments") + of("lost_bare");
        // The last ACK may be lost when the other capture has its last frame.
        let lost = lost..=lost + of("not_judged");
        assert!(lost.contains(&(arrived - left)), "{arrived} {left} {way:#}");
        assert!(arrived > left + 3, "nothing was lost: {way:#}");
        assert!(of("not_judged") <= 2, "{way:#}");
        assert_eq!(of("added_segments") + of("added_bare"), 0, "{way:#}");
        let least = way["delay"]["min_us"].as_f64().unwrap();
        assert!((20_000.0..25_000.0).contains(&least), "{way:#}");
    }
    // The clock is one; what ACKs and data take differs by less than a segment at 20 Mb/s and the emulator's lateness.
    let offset_us = one["clock_offset_us"].as_f64().unwrap();
    assert!(offset_us.abs() < 2000.0, "{offset_us}");
    let median_us = one["from_client"]["delay"]["median_us"].as_f64().unwrap();
    assert!(median_us > 20_000.0, "{median_us}");
    let swapped = compare(&[files[1].clone(), files[0].clone()]);
    assert_eq!(swapped["nearer_client"], 2);
    for way in ["from_client", "from_server"] {
        let lost = ["lost_bytes", "lost_segments", "lost_bare"];
        assert_eq!(
            lost.map(|name| &swapped[way][name]),
            lost.map(|name| &one[way][name])
        );
    }
}

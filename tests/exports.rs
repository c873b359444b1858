// SPDX-License-Identifier: MIT OR Apache-2.0
//! What leaves the instruments: traces, figures of them, metrics, event lines, messages to a collector; of one
//! real transfer, during which the daemon is killed and started anew.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use serde_json::Value;
use std::ffi::OsStr;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::tcpdump::Tcpdump;
use support::{Daemon, Lab, alone, until, until_within};

/// The flows to `peer` have a rule, so that its figures are theirs alone.
fn policy(peer: &str) -> String {
    format!(
        "[instruments]\ninterval = '20ms'\n[instruments.derived]\n\
         AveBW = 'DataBytesOut * 8 / (now - StartTime)'\n\
         [[rule]]\nname = 'path'\ndestination = ['{peer}/32']\ncongestion_control = 'reno'\n"
    )
}

/// The body of `GET path`.
fn get(socket: &Path, path: &str) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\nHost: fatpath\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(" 200 "), "{head}");
    body.to_owned()
}

/// The value of a series: its name and labels as Prometheus writes them.
fn metric(text: &str, series: &str) -> f64 {
    let mut lines = text.lines().filter_map(|line| line.rsplit_once(' '));
    let found = lines.find(|(name, _)| *name == series);
    let (_, value) = found.unwrap_or_else(|| panic!("no {series} in\n{text}"));
    value.parse().unwrap()
}

/// Takes whatever is posted, and answers that all is well.
fn collector() -> (String, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let received = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&received);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut part = [0; 65536];
            let read = stream.read(&mut part).unwrap();
            kept.lock().unwrap().extend(&part[..read]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        }
    });
    (url, received)
}

fn trace(daemon: &Daemon, which: &str, out: &Path) -> Child {
    let out = out.to_str().unwrap();
    let mut command = daemon.command(&["trace", which, "--out", out]);
    command.stderr(Stdio::piped()).spawn().unwrap()
}

/// By SIGTERM, which ends a trace as Ctrl-C does; what it said.
fn end(trace: Child) -> String {
    let pid = rustix::process::Pid::from_child(&trace);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let output = trace.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    said
}

fn event_lines(daemon: &Daemon) -> Vec<Value> {
    let text = std::fs::read_to_string(daemon.path("events.jsonl")).unwrap_or_default();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn a_transfer_is_traced_measured_and_told() {
    let Some(_alone) = alone() else { return };
    let lab = Lab::up("exports", "rate = '50mbit'\ndelay = '10ms'\nqueue = '1bdp'");
    let (url, received) = collector();
    let peer = lab.address("b");
    let mut daemon = Daemon::idle(&policy(&peer));
    let events = daemon.path("events.jsonl");
    let events = events.to_str().unwrap();
    daemon.arguments = [
        "--event-log",
        events,
        "--otlp",
        &url,
        "--otlp-interval",
        "1",
    ]
    .map(str::to_owned)
    .into();
    daemon.restart();

    let traces = daemon.path("traces");
    let tracing = trace(&daemon, &peer, &traces);
    let has_tcpdump = Command::new("tcpdump").arg("--version").output().is_ok();
    let dump = has_tcpdump.then(|| Tcpdump::start(&lab, "a", 5201));
    let transfer = lab.transfer(6, &[]);
    std::thread::sleep(std::time::Duration::from_secs(2));
    daemon.kill_9();
    daemon.restart();
    let transferred = transfer.wait_with_output().unwrap();
    let transferred: Value = serde_json::from_slice(&transferred.stdout).unwrap();
    let bytes = transferred["end"]["sum_received"]["bytes"]
        .as_u64()
        .unwrap();

    // The second daemon counts the flow from where it found it.
    let socket = daemon.path("run/fatpath.sock");
    let acked = until("the transfer to be counted", || {
        let text = get(&socket, "/metrics");
        let ended = "fatpath_rule_flows_ended_total{rule=\"path\"}";
        (text.contains(ended) && metric(&text, ended) >= 2.0)
            .then(|| metric(&text, "fatpath_rule_acked_bytes_total{rule=\"path\"}"))
    });
    assert!(
        acked > bytes as f64 / 10.0 && acked < bytes as f64,
        "{acked} of {bytes}"
    );
    assert_eq!(
        metric(&get(&socket, "/metrics"), "fatpath_samples_lost_total"),
        0.0
    );

    let said = end(tracing);
    assert!(said.contains("the daemon ended"), "{said}");
    let files: Vec<_> = std::fs::read_dir(&traces)
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    assert_eq!(files.len(), 1, "{files:?}");
    let flows = fatpath_record::read(&files[0]).unwrap();
    let flow = flows.iter().max_by_key(|flow| flow.points.len()).unwrap();
    assert!(flow.points.len() > 100, "{} points", flow.points.len());
    assert!(flow.points.is_sorted_by(|a, b| a.t_s <= b.t_s));
    // Of both daemons' time.
    let (first, last) = (flow.points[0].t_s, flow.points.last().unwrap().t_s);
    assert!(first < 1.0 && last > 5.0, "{first} to {last} s");
    let top_mbps = flow
        .points
        .iter()
        .map(|point| point.rate_bps / 1e6)
        .fold(0.0, f64::max);
    assert!(
        (20.0..80.0).contains(&top_mbps),
        "{top_mbps} Mb/s over 50 Mb/s"
    );

    match dump {
        Some(dump) => lies_over_its_capture(&files[0], &dump.stop(), &daemon.path("plots")),
        None => println!("left out: a trace over a capture needs tcpdump"),
    }

    for picture in ["cwnd.png", "cwnd.svg"] {
        let picture = daemon.path(picture);
        let drawn = Command::new(support::FATPATH)
            .args(["trace", "plot", files[0].to_str().unwrap(), "--out"])
            .arg(&picture)
            .output()
            .unwrap();
        assert!(
            drawn.status.success(),
            "{}",
            String::from_utf8_lossy(&drawn.stderr)
        );
        assert!(picture.metadata().unwrap().len() > 10_000);
    }

    let lines = event_lines(&daemon);
    let of = |event: &str| {
        lines
            .iter()
            .filter(|line| line["event"] == event)
            .collect::<Vec<_>>()
    };
    assert!(!of("flow.begin").is_empty() && !of("derived.AveBW").is_empty());
    let ends = of("flow.end");
    let sender = ends
        .iter()
        .find(|line| line["destination_host"] == peer.as_str());
    let sender = sender.unwrap_or_else(|| panic!("{ends:?}"));
    assert_eq!(sender["program"], "fatpath");
    assert!(sender["timestamp"].as_str().unwrap().ends_with('Z'));
    assert!(sender["attributes"]["cookie"].is_u64());

    let received = received.lock().unwrap();
    let has = |text: &[u8]| received.windows(text.len()).any(|part| part == text);
    assert!(has(b"POST /v1/metrics") && has(b"fatpath.rule_acked_bytes"));
}

/// What the kernel said of the transfer is what the capture at its sender shows.
fn lies_over_its_capture(trace: &Path, capture: &Path, plots: &Path) {
    let analyse = |more: &[&OsStr]| {
        let mut command = Command::new(support::FATPATH);
        command.arg("analyse").arg(capture).arg("--json").args(more);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let listed = analyse(&["--sort".as_ref(), "bytes".as_ref()]);
    let flow = listed["connections"][0]["flow"].to_string();
    let laid = analyse(&[
        "--flow".as_ref(),
        flow.as_ref(),
        "--trace".as_ref(),
        trace.as_ref(),
        "--plot".as_ref(),
        plots.as_ref(),
    ]);
    let [one] = &laid["traced"].as_array().unwrap()[..] else {
        panic!("{laid:#}")
    };
    println!("beside: {one}");
    let near = |what: &str, most: f64| {
        let [kernel, apart] = ["kernel", "apart"].map(|of| one[what][of].as_f64().unwrap());
        assert!(apart <= kernel * most, "{what}: {one:#}");
        assert!(one[what]["samples"].as_u64() > Some(100), "{what}: {one:#}");
    };
    near("srtt_us", 0.05);
    near("in_flight_bytes", 0.1);
    near("cwnd_bytes", 0.2);
    let page = std::fs::read_to_string(plots.join(format!("flow-{flow}.html"))).unwrap();
    assert!(page.contains("congestion window, the kernel's"));
}

/// Short connections over loopback, both ends sampled: at least a begin and an end each.
fn connections(count: u32) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    for _ in 0..count {
        let here = TcpStream::connect(address).unwrap();
        drop((here, listener.accept().unwrap()));
    }
}

/// 16 MiB of samples are 27,000 or so.
#[test]
fn samples_that_nobody_reads_are_counted_and_flows_go_on() {
    let Some(_alone) = alone() else { return };
    let daemon = Daemon::start("[instruments]\ninterval = '20ms'\n");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut here = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let mut there = listener.accept().unwrap().0;
    let socket = daemon.path("run/fatpath.sock");
    let live_series = "fatpath_rule_flows{rule=\"(none)\"}";
    let live = || {
        let text = until("a flow to be counted", || {
            let text = get(&socket, "/metrics");
            text.contains(live_series).then_some(text)
        });
        metric(&text, live_series)
    };
    let counts = || daemon.json(&["status"])["kernel"]["instruments"].clone();
    let number = |counts: &Value, name: &str| counts[name].as_u64().unwrap();
    let (before, live_before) = (counts(), live());
    let pid = rustix::process::Pid::from_child(&daemon.child);
    let signal = |signal| rustix::process::kill_process(pid, signal).unwrap();
    signal(rustix::process::Signal::STOP);
    connections(12_000);
    signal(rustix::process::Signal::CONT);
    let lost = until("every sample to be counted", || {
        let after = counts();
        let new = |name| number(&after, name) - number(&before, name);
        let is_all = new("samples") + new("samples_lost") >= 4 * 12_000;
        is_all.then(|| number(&after, "samples_lost"))
    });
    assert!(lost > number(&before, "samples_lost"));
    let lost_by_metric = metric(&get(&socket, "/metrics"), "fatpath_samples_lost_total");
    assert_eq!(lost_by_metric, lost as f64);

    // The flow from before is followed, and those whose ends were lost do not stay. Walks find both: the rest after one
    // is up to 150 times what it took (follow.rs), which on a busy machine is more than a minute.
    let after_walks = Duration::from_secs(240);
    here.write_all(&[0; 100_000]).unwrap();
    there.read_exact(&mut [0; 100_000]).unwrap();
    let local = here.local_addr().unwrap().to_string();
    until_within(after_walks, "the flow to be followed", || {
        let flows = daemon.json(&["flows", "--variables"]);
        let mut flows = flows.as_array().unwrap().iter();
        let flow = flows.find(|flow| flow["flow"]["local"] == local.as_str())?;
        (flow["variables"]["HCThruOctetsAcked"].as_f64()? >= 100_000.0).then_some(())
    });
    until_within(after_walks, "the others to be taken for ended", || {
        (live() < live_before + 1000.0).then_some(())
    });
}

#[test]
fn without_a_daemon_a_trace_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let output = Command::new(support::FATPATH)
        .args(["trace", "--out"])
        .arg(dir.path().join("traces"))
        .arg("--run-dir")
        .arg(dir.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("the daemon is not running"), "{said}");
}

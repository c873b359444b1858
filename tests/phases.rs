// SPDX-License-Identifier: MIT OR Apache-2.0
//! Phases of programs, with a library that has MPI's names: what the probes see of a process, and what its flow gets.

#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use support::lent::Lent;
use support::{Daemon, Lab, alone, setting, until};
use tempfile::TempDir;

/// Compiled once a test: the daemon finds each by its path.
struct Programs(TempDir);

impl Programs {
    fn build() -> Programs {
        let dir = tempfile::tempdir().unwrap();
        let programs = Programs(dir);
        let (library, rank) = (programs.path("libmpi.so.40"), programs.path("rank"));
        compile(&["-shared", "-fPIC", "-o", &library, &source("libmpi.c")]);
        compile(&["-o", &rank, &source("rank.c"), &library, "-lpthread"]);
        programs
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    fn policy(&self, rule: &str) -> String {
        format!(
            "[phases.mpi]\nlibrary = \"{}/libmpi.so*\"\n{rule}",
            self.0.path().display()
        )
    }
}

fn source(name: &str) -> String {
    format!("{}/../../tests/phases/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn compile(arguments: &[&str]) {
    let output = Command::new("cc")
        .args(["-O1", "-Wall"])
        .args(arguments)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// A running `rank`.
struct Rank {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
    pid: u64,
}

impl Rank {
    fn start(mut command: Command) -> Rank {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut rank = Rank {
            orders: child.stdin.take().unwrap(),
            answers: BufReader::new(child.stdout.take().unwrap()),
            child,
            pid: 0,
        };
        let ready = rank.answer();
        rank.pid = ready.strip_prefix("ready ").unwrap().parse().unwrap();
        rank
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    fn order(&mut self, order: &str) {
        writeln!(self.orders, "{order}").unwrap();
        assert_eq!(self.answer(), "done", "{order}");
    }
}

impl Drop for Rank {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A rank on this host, whose flow nobody looks at.
fn local_rank(programs: &Programs, sink: &TcpListener) -> Rank {
    let port = sink.local_addr().unwrap().port().to_string();
    let mut command = Command::new(programs.path("rank"));
    command.args(["127.0.0.1", &port]);
    Rank::start(command)
}

fn has_probes(daemon: &Daemon, programs: &Programs) {
    let library = programs.path("libmpi.so.40");
    until("the library to be probed", || {
        let phases = daemon.json(&["phases"]);
        let mut found = phases["libraries"].as_array()?.iter();
        let found = found.find(|found| found["path"] == library.as_str())?;
        (found["functions"] == 2).then_some(())
    });
}

fn process(daemon: &Daemon, pid: u64) -> Option<Value> {
    let phases = daemon.json(&["phases"]);
    let processes = phases["processes"].as_array().unwrap();
    processes
        .iter()
        .find(|process| process["pid"] == pid)
        .cloned()
}

fn is_collective(daemon: &Daemon, pid: u64) -> bool {
    process(daemon, pid).unwrap()["is_collective"] == true
}

#[test]
fn a_flow_gets_what_its_processs_phase_gives() {
    let Some(_host) = alone() else { return };
    let programs = Programs::build();
    let daemon = Lent::with(&programs.policy(
        "[[rule]]\nname = \"mpi\"\ncongestion_control = { law = \"fp_aimd\", a = 1 }\npacing_rate = \"400mbit\"\n\
         phase.collective = { pacing_rate = \"16mbit\", initial_ssthresh = 12 }\n",
    ));
    let lab = Lab::up("phases", "rate = \"1gbit\"\ndelay = \"2ms\"");
    has_probes(&daemon, &programs);
    let address = lab.address("b");
    let sink = lab.on("b", || TcpListener::bind((address.as_str(), 0)).unwrap());
    let port = sink.local_addr().unwrap().port().to_string();
    let mut rank = Rank::start(lab.command("a", &[&programs.path("rank"), &address, &port]));
    let (mut drained, remote) = sink.accept().unwrap();
    std::thread::spawn(move || std::io::copy(&mut drained, &mut std::io::sink()));
    let flow = || {
        let local = remote.to_string();
        let of_rank = |flow: &Value| flow["local"] == local.as_str();
        until("the flow to be listed", || {
            daemon.flows().into_iter().find(of_rank)
        })
    };
    let rate = |flow: &Value| setting(flow, "pacing_rate_bps").1.as_u64().unwrap();
    let cwnd = |flow: &Value| flow["cwnd_pkts"].as_u64().unwrap();
    rank.order("send 4000000");
    let alone = until("a large window", || {
        Some(flow()).filter(|flow| cwnd(flow) > 40)
    });
    assert_eq!(rate(&alone), 400_000_000);

    rank.order("collective");
    rank.order("send 40000");
    let among = until("the pacing of the phase", || {
        Some(flow()).filter(|flow| rate(flow) == 16_000_000)
    });
    assert!(cwnd(&among) < 40, "{among:#}");
    assert!(paced_bps(&lab, &port) <= 16_000_000);

    rank.order("return");
    // One segment leaves, and the next look at the flow finds it changed.
    rank.order("send 1000");
    let back = until("the window to come back", || {
        Some(flow()).filter(|flow| rate(flow) == 400_000_000)
    });
    assert!(cwnd(&back) >= cwnd(&alone) / 2, "{back:#}");

    // A policy without phases is one for all of a flow's life.
    rank.order("collective");
    rank.order("send 1000");
    let policy = "[[rule]]\nname = \"mpi\"\ncongestion_control = \"fp_aimd\"\n";
    assert!(daemon.apply(policy).status.success());
    rank.order("send 1000");
    until("the flow to be unpaced", || {
        let max = setting_of(&flow(), "pacing_rate_bps");
        max.is_none().then_some(())
    });
}

fn setting_of(flow: &Value, name: &str) -> Option<Value> {
    let settings = flow["settings"].as_array().unwrap();
    settings.iter().find(|s| s["setting"] == name).cloned()
}

/// As `ss` has it of the rank's connection.
fn paced_bps(lab: &Lab, port: &str) -> u64 {
    let text = lab.output("a", &["ss", "-Htin", "dport", "=", &format!(":{port}")]);
    let (_, rate) = text.split_once("pacing_rate ").unwrap();
    let (rate, _) = rate.split_once("bps").unwrap();
    let (number, times) = match rate.split_at(rate.len() - 1) {
        (number, "K") => (number, 1e3),
        (number, "M") => (number, 1e6),
        _ => (rate, 1.0),
    };
    (number.parse::<f64>().unwrap() * times) as u64
}

#[test]
fn only_the_outermost_call_of_a_live_thread_is_a_phase() {
    let Some(_host) = alone() else { return };
    let programs = Programs::build();
    let daemon = Lent::with(&programs.policy(""));
    has_probes(&daemon, &programs);
    let sink = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut rank = local_rank(&programs, &sink);
    let pid = rank.pid;
    rank.order("collective");
    assert!(is_collective(&daemon, pid));
    rank.order("collective");
    rank.order("return");
    assert!(is_collective(&daemon, pid), "one of two has returned");
    rank.order("return");
    assert!(!is_collective(&daemon, pid));
    rank.order("point");
    assert!(!is_collective(&daemon, pid), "no collective");
    rank.order("return");

    rank.order("thread");
    until("the thread to be in a collective", || {
        is_collective(&daemon, pid).then_some(())
    });
    rank.order("collective");
    rank.order("return");
    assert!(is_collective(&daemon, pid), "the other thread still is");
    rank.order("join");
    until("the thread to have returned", || {
        (!is_collective(&daemon, pid)).then_some(())
    });

    // Left without a return: over at the next call.
    rank.order("collective");
    rank.order("jump");
    rank.order("collective");
    rank.order("return");
    assert!(!is_collective(&daemon, pid));

    // The child of a fork within is in no phase, and its process is not followed.
    rank.order("collective");
    rank.order("fork");
    let phases = daemon.json(&["phases"]);
    let others = phases["processes"].as_array().unwrap();
    assert!(
        others.iter().all(|process| process["pid"] == pid),
        "{others:?}"
    );
    let process = process(&daemon, pid).unwrap();
    assert!(process["calls"].as_u64().unwrap() >= 12, "{process}");
    assert!(process["collective_share"].as_f64().unwrap() > 0.0);
    let cost = phases["probe_us"].as_f64().unwrap();
    assert!(cost > 0.0, "{cost}");

    let child = format!("/proc/{pid}/task/{pid}/children");
    let children = std::fs::read_to_string(child).unwrap_or_default();
    rank.child.kill().unwrap();
    rank.child.wait().unwrap();
    until("the killed process to be forgotten", || {
        daemon.json(&["phases"])["processes"]
            .as_array()?
            .is_empty()
            .then_some(())
    });
    for child in children.split_whitespace() {
        let _ = Command::new("kill").args(["-9", child]).status();
    }
}

#[test]
fn files_that_are_no_such_library_harm_nobody() {
    let Some(_host) = alone() else { return };
    let programs = Programs::build();
    std::fs::write(programs.path("libmpi.so.1"), "no library").unwrap();
    compile(&[
        "-shared",
        "-o",
        &programs.path("libmpi.so.2"),
        "-x",
        "c",
        "/dev/null",
    ]);
    let daemon = Lent::with(&programs.policy(""));
    has_probes(&daemon, &programs);
    let phases = daemon.json(&["phases"]);
    let problem = |name: &str| {
        let path = programs.path(name);
        let mut libraries = phases["libraries"].as_array().unwrap().iter();
        let found = libraries.find(|library| library["path"] == path.as_str());
        found.unwrap()["problem"].as_str().unwrap().to_owned()
    };
    assert!(!problem("libmpi.so.1").is_empty());
    assert_eq!(problem("libmpi.so.2"), "it has none of the functions");

    // Another file in its place is probed, too, and a rank that has it followed.
    let library = programs.path("libmpi.so.40");
    std::fs::remove_file(&library).unwrap();
    compile(&["-shared", "-fPIC", "-o", &library, &source("libmpi.c")]);
    let sink = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut rank = local_rank(&programs, &sink);
    let pid = rank.pid;
    until("the new library to be probed", || {
        rank.order("collective");
        let seen = process(&daemon, pid).is_some();
        rank.order("return");
        seen.then_some(())
    });
    assert!(Path::new(&library).exists());
    drop(TcpStream::connect(sink.local_addr().unwrap()));
}

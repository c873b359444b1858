// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath send --rate`: datagrams without congestion control, where this host's gate and policy permit them.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use support::lent::Lent;
use support::mover::*;
use support::{FATPATH, Lab, alone, until};

/// It loses a twentieth of what goes from `a` to `b`.
const LINK: &str = "rate = '100mbit'\ndelay = '10ms'\nqueue = '1bdp'\nforward.loss = '5%'";

/// A lossy path, a daemon with a rule for it, and a file to send.
struct Beat {
    daemon: Lent,
    lab: Lab,
    folder: tempfile::TempDir,
}

impl Beat {
    fn new(name: &str, settings: &str) -> Beat {
        let lab = Lab::up(name, LINK);
        Beat {
            daemon: Lent::with(&policy(settings)),
            lab,
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn file(&self, bytes: usize) -> PathBuf {
        let file = self.folder.path().join("file");
        fs::write(&file, content(bytes)).unwrap();
        file
    }

    fn to(&self) -> PathBuf {
        self.folder.path().join("to")
    }

    fn apply(&self, settings: &str) {
        let output = self.daemon.apply(&policy(settings));
        assert!(output.status.success(), "{output:?}");
    }

    fn ask(&self, arguments: &[&str]) {
        let output = self.daemon.ask(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    }

    fn open_gate(&self, mark: &str) {
        let namespace = self.lab.namespace("a");
        self.ask(&["rude", "on", "--mark", mark, "--netns", &namespace]);
    }

    fn send(&self, file: &Path, options: &[&str], run_dir: &Path) -> Output {
        let place = format!("{}:{}", self.lab.namespace("b"), text(&self.to()));
        let send = [FATPATH, "send", text(file), &place];
        let mut command = self.lab.command("a", &send);
        command.args(["--rsh", "ip netns exec", "--remote-fatpath", FATPATH]);
        command.args(["--address", &self.lab.address("b"), "--json"]);
        command.args(options).arg("--run-dir").arg(run_dir);
        command.output().unwrap()
    }

    /// What it says when it is refused; nothing has arrived.
    fn refused(&self, file: &Path) -> String {
        self.refused_by(file, &self.daemon.path("run"))
    }

    fn refused_by(&self, file: &Path, run_dir: &Path) -> String {
        let output = self.send(file, &["--rate", "40mbit"], run_dir);
        assert!(!output.status.success(), "{output:?}");
        assert!(!self.to().exists());
        String::from_utf8(output.stderr).unwrap()
    }

    /// The policer of the other host, which counts.
    fn police(&self, arguments: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.lab.namespace("b")));
        command.args([FATPATH, "police"]).args(arguments.split(' '));
        let pins = format!("/sys/fs/bpf/fatpath-datagrams-{}", std::process::id());
        command.arg("--police-dir").arg(pins);
        command
    }

    fn tallies(&self) -> Value {
        let output = self.police("status --json").output().unwrap();
        let status: Value = serde_json::from_slice(&output.stdout).unwrap();
        status[0]["tallies"].clone()
    }
}

impl Drop for Beat {
    fn drop(&mut self) {
        let _ = self.police("wan --off").output();
    }
}

fn policy(settings: &str) -> String {
    format!("[[rule]]\nname = 'path'\ndestination = ['10.77.0.0/16']\n{settings}\n")
}

const ALLOWED: &str = "rude = 'allowed'\nrude_rate = '40mbit'";

#[test]
fn without_permission_nothing_is_sent_and_the_remedy_is_named() {
    let Some(_alone) = alone() else { return };
    let beat = Beat::new("rdno", ALLOWED);
    let file = beat.file(1000);
    let refused = |told: &str| {
        let said = beat.refused(&file);
        assert!(said.contains(told), "{told}: {said}");
    };
    refused("the gate is closed: as root, `fatpath rude on --mark dscp=N`");
    beat.open_gate("0x200");
    refused("a bit of TCP's header");
    beat.ask(&["rude", "off"]);
    beat.ask(&["rude", "on", "--mark", "dscp=44"]);
    refused("not open in the network namespace");
    beat.open_gate("dscp=44");
    for (settings, told) in [
        ("", "does not allow it: give it rude = \"allowed\""),
        ("rude = 'allowed'", "no number for rude_rate"),
        ("destination_ports = [1]\nrude = 'allowed'", "no rule"),
        ("source = ['10.77.0.0/16']\nrude = 'never'", "not known"),
        (
            "rude = 'allowed'\nrude_rate = '1mbit'\nrude_total_rate = '1mbit'",
            "rude_total_rate",
        ),
        (
            "rude = 'allowed'\nrude_rate = '1mbit'\nrude_users = ['nobody']",
            "rude_users",
        ),
    ] {
        beat.apply(settings);
        refused(told);
    }
    let none = beat.refused_by(&file, beat.folder.path());
    assert!(none.contains("daemon is not running"), "{none}");
}

#[test]
fn what_is_permitted_arrives_whole_and_every_datagram_is_marked() {
    let Some(_alone) = alone() else { return };
    let beat = Beat::new("rdyes", ALLOWED);
    beat.open_gate("dscp=44");
    let police = beat.police("wan --mode count --mark dscp=44").output();
    assert!(police.unwrap().status.success());
    let file = beat.file(10 << 20);
    let options = ["--rate", "1gbit", "--flows", "3"];
    let output = beat.send(&file, &options, &beat.daemon.path("run"));
    let report = report(&output);
    assert!(output.status.success(), "{report}");
    same(&file, &beat.to().join("file"));
    assert_eq!(report["is_rude"], true, "{report}");
    assert!(report["became_polite"].is_null(), "{report}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("allows 40 Mb/s"), "{said}");
    let rate_bps = report["rate_bps"].as_f64().unwrap();
    assert!(
        rate_bps < 40e6,
        "the rule's rate is the most, of all flows: {report}"
    );
    assert_eq!(report["flows"], 3);
    let tallies = beat.tallies();
    let marked = tallies["marked"]["pkts"].as_u64().unwrap();
    let sent = report["sent_pkts"].as_u64().unwrap();
    assert!(marked * 10 > sent * 8, "{tallies} of {sent}");
    // The path was asked before the permission was made use of.
    let unmarked = tallies["unmarked"]["bytes"].as_u64().unwrap();
    assert!(unmarked < 1 << 20, "{tallies}");
}

#[test]
fn closing_the_gate_makes_a_transfer_polite_and_it_goes_on() {
    const BYTES: usize = 40 << 20;
    let Some(_alone) = alone() else { return };
    let beat = Beat::new("rdoff", ALLOWED);
    beat.open_gate("dscp=44");
    let police = beat.police("wan --mode count --mark dscp=44").output();
    assert!(police.unwrap().status.success());
    let file = beat.file(BYTES);
    let (options, run_dir) = (["--rate", "40mbit"], beat.daemon.path("run"));
    let output = std::thread::scope(|scope| {
        let sender = scope.spawn(|| beat.send(&file, &options, &run_dir));
        until("some of it to arrive", || {
            assert!(!sender.is_finished());
            part_bytes(&beat.to()).filter(|(_, bytes)| *bytes >= BYTES as u64 / 8)
        });
        beat.ask(&["rude", "off"]);
        beat.lab.set("loss=0%"); // under which a polite sender would take long
        sender.join().unwrap()
    });
    let report = report(&output);
    assert!(output.status.success(), "{report}");
    same(&file, &beat.to().join("file"));
    assert_eq!(report["is_rude"], true, "{report}");
    let why = report["became_polite"]["why"].as_str().unwrap();
    assert!(why.contains("the gate is closed"), "{report}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said.matches("with congestion control").count(), 1, "{said}");
    let tallies = beat.tallies();
    let bytes = |what: &str| tallies[what]["bytes"].as_u64().unwrap();
    assert!(bytes("marked") > BYTES as u64 / 8, "{tallies}");
    assert!(bytes("unmarked") > BYTES as u64 / 8, "{tallies}");
}

#[test]
fn what_does_not_go_with_a_rate_is_refused() {
    let refused = |arguments: &[&str]| {
        let output = Command::new(FATPATH).args(arguments).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let received = refused(&["recv", "host:file", ".", "--rate", "1mbit"]);
    assert!(
        received.contains("give `fatpath send --rate` there"),
        "{received}"
    );
    let send = ["send", "/dev/null", "host:", "--rate", "1mbit"];
    for (options, told) in [
        (["--carrier", "tcp"], "leave out --carrier tcp"),
        (["--law", "fp_bbr"], "goes by a window"),
        (["--limit", "1mbit"], "cannot be used with"),
    ] {
        let said = refused(&[&send[..], &options].concat());
        assert!(said.contains(told), "{said}");
    }
}

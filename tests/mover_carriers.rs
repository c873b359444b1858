// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath send` and `recv` by TCP: where it is asked for, and where UDP is blocked.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use support::mover::*;
use support::{FATPATH, Lab, alone, until};

/// What a carrier did: which, and by how many connections.
fn carried(report: &Value) -> (&str, u64) {
    let carrier = report["carrier"].as_str().unwrap();
    (carrier, report["flows"].as_u64().unwrap())
}

#[test]
fn files_go_by_tcp_both_ways_by_one_connection_and_by_several() {
    let folder = tempfile::tempdir().unwrap();
    let (top, to) = (folder.path().join("top"), folder.path().join("to"));
    fs::create_dir_all(top.join("deep")).unwrap();
    fs::write(top.join("big"), content(40 << 20)).unwrap();
    fs::write(top.join("empty"), "").unwrap();
    for number in 0..300 {
        fs::write(top.join(format!("deep/{number}")), content(8 * number)).unwrap();
    }
    let tcp = ["--carrier", "tcp", "--flows"];
    let arguments = ["send", "-r", text(&top), &target(&to)];
    let first = done(mover(
        folder.path(),
        &[&arguments[..], &tcp, &["1"]].concat(),
    ));
    assert_eq!(carried(&first), ("tcp", 1), "{first}");
    same(&top, &to.join("top"));
    assert!(is_clean(&to));
    let again = done(mover(
        folder.path(),
        &[&arguments[..], &tcp, &["4"]].concat(),
    ));
    assert_eq!(again["moved_bytes"], 0, "{again}");
    let (back, place) = (folder.path().join("back"), target(&to.join("top")));
    let arguments = ["recv", "-r", &place, text(&back)];
    let several = done(mover(
        folder.path(),
        &[&arguments[..], &tcp, &["4"]].concat(),
    ));
    assert_eq!(carried(&several), ("tcp", 4), "{several}");
    same(&top, &back.join("top"));
    // A stream: what has arrived is kept no more.
    let file = folder.path().join("stream");
    let mut command = mover(
        folder.path(),
        &[&["send", "-", &target(&file)][..], &tcp, &["3"]].concat(),
    );
    command.stdin(fs::File::open(top.join("big")).unwrap());
    assert_eq!(carried(&done(command)), ("tcp", 3));
    same(&top.join("big"), &file);
}

/// The journal is the file layer's, whatever carries the data: what TCP brought is not sent again by UDP.
#[test]
fn what_a_killed_transfer_brought_by_tcp_goes_on_by_udp() {
    const BYTES: usize = 64 << 20;
    let folder = tempfile::tempdir().unwrap();
    let (file, to) = (folder.path().join("file"), folder.path().join("to"));
    fs::write(&file, content(BYTES)).unwrap();
    let arguments = ["send", text(&file), &target(&to)];
    let tcp = ["--carrier", "tcp", "--flows", "2", "--limit", "400mbit"];
    let mut sender = mover(folder.path(), &[&arguments[..], &tcp].concat())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until("half of it to arrive", || {
        assert!(is_running(&mut sender));
        part_bytes(&to).filter(|(_, bytes)| *bytes >= BYTES as u64 / 2)
    });
    sender.kill().unwrap();
    sender.wait().unwrap();
    let again = done(mover(folder.path(), &arguments));
    assert_eq!(carried(&again), ("udp", 1), "{again}");
    let moved = again["moved_bytes"].as_u64().unwrap();
    assert!(moved < BYTES as u64 / 2 + (8 << 20), "{again}");
    same(&file, &to.join("file"));
}

/// An end that fails says why, though its connections are gone sooner than its words arrive.
#[test]
fn an_end_that_fails_is_quoted() {
    let folder = tempfile::tempdir().unwrap();
    let (file, to) = (folder.path().join("file"), folder.path().join("to"));
    fs::write(&file, content(1000)).unwrap();
    fs::write(&to, "a file where the folder is to be").unwrap();
    let arguments = ["send", text(&file), &target(&to), "--carrier", "tcp"];
    let output = mover(folder.path(), &arguments).output().unwrap();
    let report = report(&output);
    let why = report["errors"][0]["message"].as_str().unwrap();
    assert!(
        why.contains("the other end: ") && !output.status.success(),
        "{why}"
    );
}

/// A host that sends no datagrams: the transfer goes by TCP, and says so; `--carrier udp` says what to open.
#[test]
fn where_udp_is_blocked_tcp_carries_the_data() {
    let Some(_alone) = alone() else { return };
    let lab = Lab::up("mover", "rate = '500mbit'\ndelay = '10ms'\nqueue = '1bdp'");
    let blocked = ["ip", "rule", "add", "ipproto", "udp", "prohibit"];
    lab.output("b", &blocked); // it answers no datagram
    let folder = tempfile::tempdir().unwrap();
    let (file, to) = (folder.path().join("file"), folder.path().join("to"));
    fs::write(&file, content(8 << 20)).unwrap();
    let sent = |options: &[&str]| sent_over(&lab, &file, &to, options);
    let (report, said) = sent(&[]);
    assert_eq!(carried(&report), ("tcp", 8), "{report}");
    assert!(said.contains("UDP does not get through"), "{said}");
    assert!(report["rtt_us"].as_u64().unwrap() > 19_000, "{report}");
    same(&file, &to.join("file"));
    let (report, _) = sent(&["--carrier", "udp"]);
    let why = report["errors"][0]["message"].as_str().unwrap();
    assert!(why.contains("--carrier auto"), "{why}");
}

/// Sends from one host of a lab to the other; gives the report, and what was said beside.
fn sent_over(lab: &Lab, file: &Path, to: &Path, options: &[&str]) -> (Value, String) {
    let place = format!("{}:{}", lab.namespace("b"), text(to));
    let address = lab.address("b");
    let send = [FATPATH, "send", text(file), &place];
    let mut command = lab.command("a", &send);
    command.args(["--rsh", "ip netns exec"]);
    command.args(["--remote-fatpath", FATPATH, "--address", &address, "--json"]);
    let output = command.args(options).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (report(&output), said)
}

/// Host `a` loses, both ways, what belongs to the TCP connections of these of its ports: something between forgot them.
fn forget(lab: &Lab, ports: &[String]) {
    for (port, what) in ports
        .iter()
        .flat_map(|port| [(port, "sport"), (port, "dport")])
    {
        let rule = [
            "ip",
            "rule",
            "add",
            "ipproto",
            "tcp",
            what,
            port,
            "blackhole",
        ];
        lab.output("a", &rule);
    }
}

/// The ports at host `a` of the transfer's connections.
fn ports_of_connections(lab: &Lab) -> Vec<String> {
    let listed = lab.output("a", &["ss", "-Htn", "state", "established"]);
    let locals = listed
        .lines()
        .filter_map(|line| line.split_whitespace().nth(2));
    locals
        .filter_map(|local| Some(local.rsplit_once(':')?.1.to_owned()))
        .collect()
}

/// Of four connections one falls silent while much is on its way: the others bring what it had. When all are silent, the
/// transfer ends, and the same command goes on.
#[test]
fn a_silent_connection_leaves_the_others_its_work() {
    const BYTES: usize = 48 << 20;
    let Some(_alone) = alone() else { return };
    let lab = Lab::up("silent", "rate = '100mbit'\ndelay = '10ms'\nqueue = '1bdp'");
    let folder = tempfile::tempdir().unwrap();
    let (file, to) = (folder.path().join("file"), folder.path().join("to"));
    fs::write(&file, content(BYTES)).unwrap();
    let options = ["--carrier", "tcp", "--flows", "4", "--timeout", "8s"];
    let sent = |share: u64, silent: usize| {
        std::thread::scope(|scope| {
            let sender = scope.spawn(|| sent_over(&lab, &file, &to, &options));
            until("some of it to arrive", || {
                assert!(!sender.is_finished());
                part_bytes(&to).filter(|(_, bytes)| *bytes >= BYTES as u64 / share)
            });
            let ports = ports_of_connections(&lab);
            assert_eq!(ports.len(), 4);
            forget(&lab, &ports[..silent]);
            sender.join().unwrap()
        })
    };
    let (report, _) = sent(8, 4);
    let why = report["errors"][0]["message"].to_string();
    assert!(why.contains("for 8 s"), "{report}");
    let (report, said) = sent(3, 1);
    assert_eq!(
        (&report["stored"], &report["silent_flows"]),
        (&1.into(), &1.into()),
        "{report}"
    );
    assert!(said.contains("1 of 4 connections"), "{said}");
    let moved = report["moved_bytes"].as_u64().unwrap();
    assert!(
        moved < BYTES as u64 * 15 / 16,
        "what had arrived is not sent again: {report}"
    );
    same(&file, &to.join("file"));
    assert!(is_clean(&to));
}

/// From one queue, so that a flow that is slow has less of it; each byte is hashed and written once.
#[test]
fn files_go_by_several_flows_of_udp() {
    let folder = tempfile::tempdir().unwrap();
    let (top, to) = (folder.path().join("top"), folder.path().join("to"));
    fs::create_dir(&top).unwrap();
    fs::write(top.join("big"), content(60 << 20)).unwrap();
    for number in 0..100 {
        fs::write(top.join(number.to_string()), content(8 * number)).unwrap();
    }
    let arguments = ["send", "-r", text(&top), &target(&to), "--flows", "4"];
    let sent = done(mover(folder.path(), &arguments));
    assert_eq!(carried(&sent), ("udp", 4), "{sent}");
    same(&top, &to.join("top"));
    let (back, place) = (folder.path().join("back"), target(&to.join("top")));
    let arguments = ["recv", "-r", &place, text(&back), "--flows", "3"];
    let received = done(mover(folder.path(), &arguments));
    assert_eq!(carried(&received), ("udp", 3), "{received}");
    same(&top, &back.join("top"));
}

/// Lost data leave after all else, by any of the flows, and the file is whole.
#[test]
fn what_is_lost_may_be_sent_last() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, content(40 << 20)).unwrap();
    for flows in ["1", "3"] {
        let to = folder.path().join(flows);
        let lost = ["--holes", "last", "--tcp", "drop=[20,25,300,301]"];
        let arguments = ["send", text(&file), &target(&to), "--flows", flows];
        let sent = done(mover(folder.path(), &[&arguments[..], &lost].concat()));
        assert_eq!(carried(&sent).0, "udp", "{sent}");
        assert!(sent["retransmits"].as_u64().unwrap() >= 4, "{sent}");
        same(&file, &to.join("file"));
    }
    let output = target(&folder.path().join("to-output"));
    for stream in [["send", "-", &output], ["recv", &output, "-"]] {
        let refused = mover(folder.path(), &[&stream[..], &["--holes", "last"]].concat());
        let refused = { refused }.output().unwrap();
        let told = String::from_utf8_lossy(&refused.stderr).into_owned();
        let told = told + &String::from_utf8_lossy(&refused.stdout);
        assert!(told.contains("leave out --holes last"), "{told}");
    }
}

/// Bytes of a datagram, as the report says.
fn datagram_bytes(report: &Value) -> u64 {
    let found = report["datagram_bytes"].as_u64();
    found.unwrap_or_else(|| panic!("{report}"))
}

/// A line of a smaller MTU than the devices at its ends: its routers tell, and then they do not.
#[test]
fn a_smaller_path_mtu_is_found_before_the_data_go() {
    let Some(_alone) = alone() else { return };
    let link = "path_mtu = 1400\nrate = '100mbit'\ndelay = '10ms'\nqueue = '4bdp'";
    let lab = Lab::up("tunnel", link);
    let folder = tempfile::tempdir().unwrap();
    let (file, to) = (folder.path().join("file"), folder.path().join("to"));
    fs::write(&file, content(8 << 20)).unwrap();
    for tells in [true, false] {
        if !tells {
            lab.output("a", &["ip", "rule", "add", "ipproto", "icmp", "blackhole"]);
        }
        let (report, said) = sent_over(&lab, &file, &to, &["--carrier", "udp", "-I"]);
        assert_eq!(report["stored"], 1, "{report} {said}");
        assert_eq!(datagram_bytes(&report), 1372, "{report}");
        assert!(report["train_bps"].is_number(), "{report}");
        let count = |name: &str| report[name].as_u64().unwrap();
        assert!(count("retransmits") < count("sent_pkts") / 20, "{report}");
        same(&file, &to.join("file"));
    }
}

/// Jumbo frames are used at once where all of the path carries them; when it carries fewer bytes from some time on, and nobody
/// says so, the transfer goes on with those.
#[test]
fn a_path_mtu_that_falls_is_followed() {
    const BYTES: usize = 24 << 20;
    let Some(_alone) = alone() else { return };
    let link = "mtu = 9000\nrate = '100mbit'\ndelay = '10ms'\nqueue = '4bdp'";
    let lab = Lab::up("jumbo", link);
    lab.output("a", &["ip", "rule", "add", "ipproto", "icmp", "blackhole"]);
    let folder = tempfile::tempdir().unwrap();
    let (file, to) = (folder.path().join("file"), folder.path().join("to"));
    fs::write(&file, content(BYTES)).unwrap();
    let options = ["--carrier", "udp", "-I", "--timeout", "8s"];
    let (report, said) = sent_over(&lab, &file, &to, &options);
    assert_eq!(report["stored"], 1, "{report} {said}");
    assert_eq!(datagram_bytes(&report), 8952, "{report}");
    let sent_pkts = report["sent_pkts"].as_u64().unwrap();
    assert!(sent_pkts < BYTES as u64 / 8000, "{report}");
    fs::remove_file(to.join("file")).unwrap();
    let (report, said) = std::thread::scope(|scope| {
        let sender = scope.spawn(|| sent_over(&lab, &file, &to, &options));
        until("some of it to arrive", || {
            assert!(!sender.is_finished());
            part_bytes(&to).filter(|(_, bytes)| *bytes >= BYTES as u64 / 8)
        });
        lab.set("path_mtu=1400");
        sender.join().unwrap()
    });
    assert_eq!(report["stored"], 1, "{report} {said}");
    let found = datagram_bytes(&report);
    assert!((1232..=1372).contains(&found), "{report}");
    same(&file, &to.join("file"));
}

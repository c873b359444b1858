// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath send` and `fatpath recv`: whole files or nothing, over a path that loses, and after kill -9 of either end.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use serde_json::Value;
use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use support::mover::*;
use support::{FATPATH, Lab, alone, until};

fn tree(folder: &Path) -> PathBuf {
    let top = folder.join("top");
    fs::create_dir_all(top.join("a/deep")).unwrap();
    fs::create_dir(top.join("empty folder")).unwrap();
    fs::write(top.join("big"), content(9 << 20)).unwrap();
    fs::write(top.join("empty"), "").unwrap();
    fs::write(top.join("a/tool"), "run").unwrap();
    fs::set_permissions(top.join("a/tool"), PermissionsExt::from_mode(0o750)).unwrap();
    symlink("/etc/passwd", top.join("link")).unwrap();
    for number in 0..500 {
        fs::write(top.join(format!("a/deep/{number}")), content(8 * number)).unwrap();
    }
    top
}

#[test]
fn a_tree_arrives_whole_both_ways_and_what_is_there_is_not_sent_again() {
    let folder = tempfile::tempdir().unwrap();
    let (top, to, back) = (
        tree(folder.path()),
        folder.path().join("to/new"),
        folder.path().join("back"),
    );
    let send = ["send", "-r", "-p", text(&top), &target(&to)];
    let planned = done(mover(folder.path(), &[&send[..], &["--dry-run"]].concat()));
    assert_eq!(
        (&planned["stored"], to.exists()),
        (&508.into(), false),
        "{planned}"
    );
    let first = done(mover(folder.path(), &send));
    assert_eq!(
        (&first["stored"], &first["failed"]),
        (&508.into(), &0.into()),
        "{first}"
    );
    let arrived = to.join("top");
    same(&top, &arrived);
    assert!(is_clean(&to));
    let of = |path: &Path| {
        let there = fs::metadata(path).unwrap();
        (there.mode(), there.mtime(), there.mtime_nsec())
    };
    for name in ["a/tool", "big", "a/deep/7", "a", "empty folder"] {
        assert_eq!(of(&arrived.join(name)), of(&top.join(name)), "{name}");
    }
    let again = done(mover(folder.path(), &send));
    assert_eq!(again["moved_bytes"], 0, "{again}");
    let place = |name: &str| format!("host:{}", text(&arrived.join(name)));
    let receive = [
        "recv",
        "-r",
        &place("a"),
        &place("big"),
        text(&back),
        "--exclude",
        "deep/?",
    ];
    done(mover(folder.path(), &receive));
    assert!(!back.join("a/deep/7").exists());
    for number in 0..10 {
        fs::remove_file(top.join(format!("a/deep/{number}"))).unwrap();
    }
    same(&top.join("a"), &back.join("a"));
    same(&top.join("big"), &back.join("big"));
}

/// Each of them is named, the others go on, and the exit status is 1.
#[test]
fn what_fails_is_named_and_the_others_arrive() {
    let folder = tempfile::tempdir().unwrap();
    let (top, to) = (tree(folder.path()), folder.path().join("to"));
    fs::create_dir_all(to.join("top/empty")).unwrap(); // a folder where a file is to be
    symlink("/tmp", to.join("top/a")).unwrap(); // a link out of the folder where a folder is to be
    let _socket = std::os::unix::net::UnixListener::bind(top.join("socket")).unwrap();
    let output = mover(folder.path(), &["send", "-r", text(&top), &target(&to)])
        .output()
        .unwrap();
    let report = report(&output);
    assert_eq!(output.status.code(), Some(1), "{report}");
    let why = |path: &str| {
        let failures = report["failures"].as_array().unwrap();
        let failure = failures.iter().find(|failure| failure["path"] == path);
        failure.unwrap_or_else(|| panic!("{path} of {report}"))["why"].to_string()
    };
    assert!(why("top/empty").contains("a folder of that name is there"));
    assert!(why("top/socket").contains("is no file, folder or symbolic link"));
    assert!(why("top/a").contains("a file of that name is there"));
    assert!(why("top/a/tool").contains("a symbolic link is in the way"));
    assert!(!Path::new("/tmp/tool").exists() && !Path::new("/tmp/deep").exists());
    same(&top.join("big"), &to.join("top/big"));
    let output = mover(folder.path(), &["send", "nothing", &target(&to)])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let output = mover(folder.path(), &["send", text(&top), text(&to)])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("give HOST:DIR"), "{said}");
}

/// As a newer fatpath would call this one: the message has another form after the version.
#[test]
fn ends_of_different_versions_name_both() {
    let mut called = Command::new(FATPATH)
        .args(["recv", "--stdio"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut caller = called.stdin.take().unwrap();
    caller.write_all(b"\x06\0\0\0\0\x63else").unwrap();
    let output = called.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        said.contains("the one at the other end version 99"),
        "{said}"
    );
    assert_eq!(output.status.code(), Some(1));
}

/// One document, whatever fails; and two arguments that would become one are refused before anything goes.
#[test]
fn a_session_that_fails_says_so_in_one_document() {
    let folder = tempfile::tempdir().unwrap();
    let (file, twin, to) = (
        folder.path().join("file"),
        folder.path().join("other/file"),
        folder.path().join("to"),
    );
    fs::create_dir(folder.path().join("other")).unwrap();
    fs::write(&file, "one").unwrap();
    fs::write(&twin, "two").unwrap();
    let errors = |arguments: &[&str]| {
        let output = mover(folder.path(), arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        report(&output)["errors"][0]["message"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let said = errors(&["send", text(&file), text(&twin), &target(&to)]);
    assert!(
        said.contains("two of what was given are called file"),
        "{said}"
    );
    let places = [target(&file), target(&twin)];
    let said = errors(&["recv", &places[0], &places[1], text(&to)]);
    assert!(
        said.contains("two of what was given are called file"),
        "{said}"
    );
    assert!(!to.exists());
    // The session has begun when the other end finds no folder.
    let said = errors(&["send", text(&file), &target(&file)]);
    assert!(said.contains("cannot make"), "{said}");
}

/// Folders get their modes when all files are there; the end that was asked says what fails then.
#[test]
fn a_folder_that_cannot_be_changed_is_named_at_the_other_end() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (top, to) = (folder.path().join("top"), folder.path().join("to"));
    let fixed = to.join("top/fixed");
    fs::create_dir_all(top.join("fixed")).unwrap();
    fs::create_dir_all(&fixed).unwrap();
    run(&["mount", "-t", "tmpfs", "-o", "ro", "none", text(&fixed)]);
    let output = mover(folder.path(), &["send", "-rp", text(&top), &target(&to)]).output();
    run(&["umount", text(&fixed)]);
    let output = output.unwrap();
    let report = report(&output);
    assert_eq!(output.status.code(), Some(1), "{report}");
    assert_eq!(report["failures"][0]["path"], "top/fixed", "{report}");
}

/// A file system that is frozen in the middle, for longer than the other end may be silent: what arrives meanwhile is
/// acknowledged, and waits in memory.
#[test]
fn a_disk_that_stands_still_ends_nothing_and_holds_up_nothing() {
    const BYTES: usize = 24 << 20;
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (file, image) = (folder.path().join("file"), folder.path().join("image"));
    let to = folder.path().join("to");
    fs::create_dir(&to).unwrap();
    fs::write(&file, content(BYTES)).unwrap();
    fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
    run(&["mkfs.ext4", "-q", text(&image)]);
    run(&["mount", "-o", "loop", text(&image), text(&to)]);
    let limits = ["--limit", "100mbit", "--timeout", "1s"];
    let place = target(&to);
    let arguments = [&["send", text(&file), &place], &limits[..]].concat();
    let mut command = mover(folder.path(), &arguments);
    let sender = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut sender = sender.unwrap();
    let stood = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        until("a part to grow", || {
            part_bytes(&to).filter(|(_, bytes)| *bytes > 4 << 20)
        });
        run(&["fsfreeze", "-f", text(&to)]);
        let frozen = std::time::Instant::now();
        until("the rest to be read, and long silence", || {
            let has_read = read_bytes(sender.id()) >= BYTES as u64;
            let ended = !is_running(&mut sender);
            (ended || has_read && frozen.elapsed().as_millis() > 2500).then_some(())
        });
    }));
    let thawed = Command::new("fsfreeze").args(["-u", text(&to)]).status();
    let output = sender.wait_with_output().unwrap();
    let arrived = fs::read(to.join("file"));
    run(&["umount", text(&to)]);
    stood.unwrap();
    assert!(thawed.unwrap().success());
    let report = report(&output);
    assert!(output.status.success(), "{report}");
    assert_eq!(arrived.unwrap(), content(BYTES));
}

/// What a process has read, of files and of whatever else (proc_pid_io(5)).
fn read_bytes(process: u32) -> u64 {
    let io = fs::read_to_string(format!("/proc/{process}/io")).unwrap_or_default();
    let read = io.lines().find_map(|line| line.strip_prefix("rchar: "));
    read.map_or(0, |bytes| bytes.parse().unwrap())
}

#[test]
fn a_full_disk_fails_what_does_not_fit() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (top, small) = (tree(folder.path()), folder.path().join("small"));
    fs::create_dir(&small).unwrap();
    let mounted = |arguments: &[&str]| {
        assert!(
            Command::new(arguments[0])
                .args(&arguments[1..])
                .status()
                .unwrap()
                .success()
        )
    };
    mounted(&[
        "mount",
        "-t",
        "tmpfs",
        "-o",
        "size=6m",
        "none",
        text(&small),
    ]);
    let output = mover(folder.path(), &["send", "-r", text(&top), &target(&small)])
        .output()
        .unwrap();
    let arrived = fs::read(small.join("top/a/deep/499"));
    mounted(&["umount", text(&small)]);
    let report = report(&output);
    assert_eq!(
        (output.status.code(), &report["failed"]),
        (Some(1), &1.into()),
        "{report}"
    );
    let why = report["failures"][0]["why"].to_string();
    assert!(why.contains("No space left"), "{why}");
    assert_eq!(arrived.unwrap(), content(8 * 499));
}

/// kill -9 of each end in turn, at any moment: the file is not there until it is whole, and of what had arrived less than
/// a hundredth of the file is sent again.
#[test]
fn after_kill_9_of_either_end_it_goes_on_where_it_ended() {
    const BYTES: usize = 400 << 20;
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let (file, to) = (folder.path().join("file"), folder.path().join("to"));
    fs::write(&file, content(BYTES)).unwrap();
    let arguments = ["send", text(&file), &target(&to), "--limit", "3gbit"];
    let mut there = 0;
    for kills_receiver in [false, true] {
        let mut command = mover(folder.path(), &arguments);
        let mut sender = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let receiver = until("the receiver to run", || called_by(sender.id()));
        until("a part to grow", || {
            assert!(is_running(&mut sender), "it ended before it was killed");
            part_bytes(&to).filter(|(_, bytes)| *bytes > there + (40 << 20))
        });
        let victim = if kills_receiver {
            receiver
        } else {
            sender.id() as i32
        };
        let victim = rustix::process::Pid::from_raw(victim).unwrap();
        rustix::process::kill_process(victim, rustix::process::Signal::KILL).unwrap();
        sender.wait().unwrap();
        until("the receiver to end", || {
            (!Path::new(&format!("/proc/{receiver}")).exists()).then_some(())
        });
        assert!(!to.join("file").exists());
        there = part_bytes(&to).unwrap().1;
    }
    let report = done(mover(folder.path(), &["send", text(&file), &target(&to)]));
    let moved = report["moved_bytes"].as_u64().unwrap();
    let sent_again = (moved + there).saturating_sub(BYTES as u64);
    assert!(
        sent_again < BYTES as u64 / 100,
        "{sent_again} bytes of {there} were sent again"
    );
    assert!(moved < BYTES as u64 * 9 / 10, "{moved}");
    same(&file, &to.join("file"));
    assert!(is_clean(&to));
}

#[test]
fn a_file_that_changes_meanwhile_fails_and_leaves_nothing() {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let (file, to) = (folder.path().join("file"), folder.path().join("to"));
    fs::write(&file, content(60 << 20)).unwrap();
    let arguments = ["send", text(&file), &target(&to), "--limit", "200mbit"];
    let sender = mover(folder.path(), &arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let sender = sender.unwrap();
    until("a part to grow", || {
        part_bytes(&to).filter(|(_, bytes)| *bytes > 1 << 20)
    });
    let open = fs::File::options().write(true).open(&file).unwrap();
    open.write_at(b"other", 59 << 20).unwrap();
    let output = sender.wait_with_output().unwrap();
    let report = report(&output);
    assert_eq!(output.status.code(), Some(1), "{report}");
    assert_eq!(
        report["failures"][0]["why"],
        "it changed while it was being sent"
    );
    assert!(!to.join("file").exists() && is_clean(&to));
}

/// The only trace in a folder, as a picture.
fn drawn(traces: &Path) {
    let files: Vec<_> = fs::read_dir(traces).unwrap().collect();
    assert_eq!(files.len(), 1, "{files:?}");
    let file = files[0].as_ref().unwrap().path();
    let picture = traces.join("trace.svg");
    let words = ["trace", "plot", text(&file), "--out", text(&picture)];
    let output = Command::new(FATPATH).args(words).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(fs::metadata(&picture).unwrap().len() > 1000);
}

#[test]
fn what_is_asked_of_tcp_is_done_and_logged() {
    let folder = tempfile::tempdir().unwrap();
    let (file, to) = (folder.path().join("file"), folder.path().join("to"));
    fs::write(&file, content(3 << 20)).unwrap();
    let traces = folder.path().join("traces");
    let send = ["send", text(&file), "--law", "fp_reno", &target(&to)];
    let asked = [
        "--tcp",
        "detection=fack,drop=[20,25]",
        "--tcp",
        "initial_window=4",
    ];
    let log = ["--log", text(&traces)];
    let report = done(mover(folder.path(), &[&send[..], &asked, &log].concat()));
    assert!(report["retransmits"].as_u64() >= Some(2), "{report}");
    same(&file, &to.join("file"));
    drawn(&traces);
    for (asked, told) in [
        (["--tcp", "initial_window=0"], "initial_window: found 0"),
        (["--tcp", "law=fp_cubic"], "give --law"),
    ] {
        let output = mover(folder.path(), &[&send[..], &asked].concat()).output();
        let refused = report_of(&output.unwrap());
        assert!(refused.contains(told), "{refused}");
    }
}

fn report_of(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_flow_goes_from_memory_to_memory() {
    let folder = tempfile::tempdir().unwrap();
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port().to_string();
    drop(free);
    let receive = ["flow", "receive", "--address", "127.0.0.1", "--port", &port];
    let mut receiver = Command::new(FATPATH).args(receive).spawn().unwrap();
    let traces = folder.path().join("traces");
    let send = || {
        let words = "flow send 127.0.0.1 --bytes 5MB --tcp law=fp_reno,drop=[20,25] --json --port";
        let mut command = Command::new(FATPATH);
        command.args(words.split(' ')).arg(&port);
        command.args(["--log", text(&traces)]).output().unwrap()
    };
    // The receiver may not listen yet.
    let output = until("the flow to go", || {
        Some(send()).filter(|output| output.status.success())
    });
    let report = report(&output);
    assert_eq!(
        (&report["bytes"], &report["streams"]),
        (&5_000_000.into(), &1.into())
    );
    assert!(report["retransmits"].as_u64() >= Some(2), "{report}");
    assert!(receiver.wait().unwrap().success());
    drawn(&traces);
}

/// Sends from one host of a lab to the other.
fn sent_over(lab: &Lab, what: &Path, to: &Path, options: &[&str]) -> Value {
    let place = format!("{}:{}", lab.namespace("b"), text(to));
    let address = lab.address("b");
    let mut arguments = vec![FATPATH, "send", "-r", text(what), &place];
    arguments.extend(["--rsh", "ip netns exec", "--remote-fatpath", FATPATH]);
    arguments.extend(["--address", &address, "--json"]);
    arguments.extend(options);
    serde_json::from_str(&lab.output("a", &arguments)).unwrap()
}

/// A path of 20 ms that loses 2 % and reorders.
#[test]
fn over_a_path_that_loses_a_tree_arrives_whole() {
    let Some(_alone) = alone() else { return };
    let lab = Lab::up(
        "mover",
        "rate = '100mbit'\ndelay = '10ms'\nqueue = '1bdp'\nloss = '2%'",
    );
    let folder = tempfile::tempdir().unwrap();
    let (top, to) = (tree(folder.path()), folder.path().join("to"));
    let report = sent_over(&lab, &top, &to, &[]);
    same(&top, &to.join("top"));
    let retransmits = report["retransmits"].as_u64().unwrap();
    let sent = report["sent_pkts"].as_u64().unwrap();
    assert!(
        retransmits * 100 > sent && retransmits * 10 < sent,
        "{report}"
    );
    assert!(report["rtt_us"].as_u64().unwrap() > 19_000, "{report}");
    // Nothing is told where a busy machine reads the train at once. One that stands still meanwhile makes a train slow, not each.
    let is_the_paths = |report: &Value| {
        let train_bps = report["train_bps"].as_u64();
        train_bps.is_none_or(|rate_bps| (50_000_000..200_000_000).contains(&rate_bps))
    };
    let again = |n: usize| sent_over(&lab, &top, &folder.path().join(n.to_string()), &[]);
    let is_found = is_the_paths(&report) || (0..4).any(|n| is_the_paths(&again(n)));
    assert!(is_found, "{report}");
}

/// A queue that marks loses next to nothing, unless it is told to treat the datagrams as others.
#[test]
fn over_a_queue_that_marks_nothing_is_lost() {
    let Some(_alone) = alone() else { return };
    let lab = Lab::up(
        "mover",
        "rate = '100mbit'\ndelay = '10ms'\nqueue = '4bdp'\nmark_above = '0.5bdp'",
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, content(16 << 20)).unwrap();
    let sent = |name: &str, options: &[&str]| {
        let to = folder.path().join(name);
        let report = sent_over(&lab, &file, &to, options);
        same(&file, &to.join("file"));
        ["retransmits", "marked_pkts"].map(|figure| report[figure].as_u64().unwrap())
    };
    let [retransmits, marked_pkts] = sent("marked", &["--law", "fp_cubic"]);
    let [without_ecn, none] = sent("lost", &["--law", "fp_cubic", "--no-ecn"]);
    assert!(marked_pkts > 10 && none == 0, "{marked_pkts} {none}");
    let is_spared = retransmits * 10 < without_ecn; // a busy machine may lose some
    assert!(is_spared, "{retransmits} {without_ecn}");
}

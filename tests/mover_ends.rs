// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath send` and `recv` where an end falls silent with nothing on its way, where a disk does not keep up, and with
//! standard input and output in the place of files.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::mover::*;
use support::{FATPATH, Lab, alone, until, until_within};

/// A disk that takes writes, as memory is there for them, and whose syncs stand while it does: a file system in a file of
/// another one, which is frozen.
struct Disk {
    below: PathBuf,
    top: PathBuf,
    stands: bool,
}

impl Disk {
    fn new(folder: &Path) -> Disk {
        let mounted = |image: &Path, bytes: u64, at: PathBuf| {
            fs::File::create(image).unwrap().set_len(bytes).unwrap();
            run(&["mkfs.ext4", "-q", text(image)]);
            fs::create_dir(&at).unwrap();
            run(&["mount", "-o", "loop", text(image), text(&at)]);
            at
        };
        let below = mounted(&folder.join("image"), 128 << 20, folder.join("below"));
        let top = mounted(&below.join("image"), 64 << 20, folder.join("disk"));
        run(&["sync", "-f", text(&below)]);
        let stands = false;
        Disk { below, top, stands }
    }

    fn stand(&mut self) {
        run(&["fsfreeze", "-f", text(&self.below)]);
        self.stands = true;
    }

    fn go_on(&mut self) {
        if std::mem::take(&mut self.stands) {
            run(&["fsfreeze", "-u", text(&self.below)]);
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.go_on();
        for at in [&self.top, &self.below] {
            // At once, though a test that failed may have left somebody in it.
            let _ = Command::new("umount").args(["--lazy", text(at)]).status();
        }
    }
}

fn started(command: &mut Command) -> Child {
    let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    piped.spawn().unwrap()
}

fn signal(process: i32, signal: Signal) {
    kill_process(Pid::from_raw(process).unwrap(), signal).unwrap();
}

/// How long an end may be silent here: what a busy machine does not take from a thread. What stands on purpose stands longer.
const SILENCE: &str = "5s";
const STANDS: Duration = Duration::from_millis(5500);

/// Bytes that the only journal in the folder notes (`crates/tree/src/journal.rs`).
fn noted_bytes(folder: &Path) -> u64 {
    let names = fs::read_dir(folder).unwrap();
    let mut paths = names.map(|entry| entry.unwrap().path());
    let path = paths.find(|path| path.extension().is_some_and(|end| end == "journal"));
    let bytes = path
        .and_then(|path| fs::read(path).ok())
        .unwrap_or_default();
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
    let records = bytes.get(56..).unwrap_or_default().chunks_exact(24);
    let stretches = records.map(|record| (number(&record[..8]), number(&record[8..16])));
    let stretches = stretches.filter(|(from, _)| *from != u64::MAX); // a mark
    stretches.map(|(from, until)| until - from).sum()
}

/// All data have arrived, and the disk keeps the receiver from its last word: nothing is on its way when one of them stops.
#[test]
fn an_end_that_falls_silent_is_given_up_and_the_transfer_goes_on_later() {
    const BYTES: usize = 6 << 20;
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut disk = Disk::new(folder.path());
    for silent_receiver in [true, false] {
        let file = folder.path().join(format!("file-{silent_receiver}"));
        fs::write(&file, content(BYTES)).unwrap();
        let place = target(&disk.top);
        let arguments = ["send", text(&file), &place, "--timeout", SILENCE];
        disk.stand();
        let mut sender = started(&mut mover(folder.path(), &arguments));
        let receiver = until("the receiver to run", || called_by(sender.id()));
        until("all to arrive", || {
            part_bytes(&disk.top).filter(|(_, bytes)| *bytes >= BYTES as u64)
        });
        until("the journal to have all", || {
            (noted_bytes(&disk.top) > BYTES as u64 / 100 * 99).then_some(())
        });
        let victim = match silent_receiver {
            true => receiver,
            false => sender.id() as i32,
        };
        signal(victim, Signal::STOP);
        disk.go_on();
        let gone = Duration::from_secs(60);
        if silent_receiver {
            let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                until_within(gone, "the sender to give up", || {
                    (!is_running(&mut sender)).then_some(())
                })
            }));
            if ended.is_err() {
                signal(victim, Signal::KILL);
            }
            ended.unwrap();
            let output = sender.wait_with_output().unwrap();
            let report = report(&output);
            let why = report["errors"][0]["message"].to_string();
            assert!(why.contains("has said nothing for 5 s"), "{why}");
            assert!(why.contains("goes on where this ended"), "{why}");
        } else {
            let ended = std::panic::catch_unwind(|| {
                until_within(gone, "the receiver to give up", || {
                    has_ended(receiver).then_some(())
                })
            });
            signal(victim, Signal::KILL);
            sender.wait().unwrap();
            ended.unwrap();
        }
        let again = done(mover(folder.path(), &arguments));
        assert!(
            again["moved_bytes"].as_u64().unwrap() < BYTES as u64 / 100,
            "{again}"
        );
        same(&file, &disk.top.join(file.file_name().unwrap()));
    }
}

/// All has arrived, and the disk does not sync it for longer than all else takes.
#[test]
fn a_receiver_that_waits_for_its_disk_is_what_held_the_transfer_back() {
    const BYTES: usize = 6 << 20;
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut disk = Disk::new(folder.path());
    let file = folder.path().join("file");
    fs::write(&file, content(BYTES)).unwrap();
    let begun = Instant::now();
    disk.stand();
    let arguments = ["send", text(&file), &target(&disk.top)];
    let mut sender = started(&mut mover(folder.path(), &arguments));
    until("all to arrive", || {
        assert!(is_running(&mut sender));
        part_bytes(&disk.top).filter(|(_, bytes)| *bytes >= BYTES as u64)
    });
    let stands = begun.elapsed() + STANDS;
    until("the disk to stand for longer than all else took", || {
        (begun.elapsed() > 2 * stands).then_some(())
    });
    disk.go_on();
    let report = report(&sender.wait_with_output().unwrap());
    assert_eq!(report["limited_by"], "receiver_disk", "{report}");
    same(&file, &disk.top.join("file"));
}

/// It runs no more, though its parent may not have asked for its status.
fn has_ended(process: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = stat
        .rsplit(") ")
        .next()
        .and_then(|rest| rest.chars().next());
    matches!(state, None | Some('Z'))
}

/// A disk stands while many files come for it. Where the receiver may open a few only, it asks for no more. Where the sender
/// may, it has sent those, and what it has not sent is no silence of its own: the receiver waits for its own disk.
#[test]
fn a_disk_that_does_not_keep_up_with_many_files_holds_the_sender_back() {
    const FILES: usize = 200;
    const FEW: usize = 16; // 304 files, less those that stay open, by three
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path().join("top");
    fs::create_dir(&top).unwrap();
    for number in 0..FILES {
        // The first lasts, so that all are there, and empty, when the disk is first asked to sync.
        let bytes = if number == 0 { 400_000 } else { 1000 };
        fs::write(top.join(number.to_string()), content(bytes)).unwrap();
    }
    let mut disk = Disk::new(folder.path());
    let few = folder.path().join("rsh-few");
    fs::write(&few, "#!/bin/sh\nshift\nulimit -n 304\nexec \"$@\"\n").unwrap();
    fs::set_permissions(&few, PermissionsExt::from_mode(0o755)).unwrap();
    // The end that is called may open a few.
    for (verb, parts) in [("recv", FILES), ("send", FEW)] {
        let to = disk.top.join(verb);
        let places = match verb {
            "recv" => [target(&top), text(&to).to_owned()],
            _ => [text(&top).to_owned(), target(&to)],
        };
        let mut caller = Command::new(FATPATH);
        caller.args([verb, "-r", &places[0], &places[1], "--rsh", text(&few)]);
        caller.args(["--remote-fatpath", FATPATH, "--address", "127.0.0.1"]);
        caller.args(["--timeout", SILENCE, "--limit", "2mbit", "--json"]);
        disk.stand();
        let mut caller = started(&mut caller);
        let of_files = to.join("top");
        let stood = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let count = || fs::read_dir(&of_files).map_or(0, Iterator::count);
            until("files to be asked for", || {
                (count() >= parts || !is_running(&mut caller)).then_some(())
            });
            let asked = Instant::now();
            until("the disk to stand for long", || {
                let is_long = asked.elapsed() > STANDS;
                (is_long || !is_running(&mut caller)).then_some(())
            });
            assert_eq!(count(), parts);
            assert!(
                !of_files.join("0").exists(),
                "none is there before it is synced"
            );
        }));
        disk.go_on();
        let output = caller.wait_with_output().unwrap();
        stood.unwrap();
        let report = report(&output);
        assert!(output.status.success(), "{report}");
        same(&top, &of_files);
    }
}

/// `script` in a shell, with `$send` and `$recv` as commands that take places and options.
fn shell(folder: &Path, script: &str) -> Command {
    let command = |verb: &str| {
        format!(
            "{FATPATH} {verb} --rsh {} --remote-fatpath {FATPATH} --address 127.0.0.1 --json",
            here(folder)
        )
    };
    let mut shell = Command::new("bash");
    shell
        .args(["-o", "pipefail", "-c", script])
        .current_dir(folder);
    shell
        .env("send", command("send"))
        .env("recv", command("recv"));
    shell
}

/// Runs it; gives its exit status and the report, which is on standard error where output has the file.
fn shell_done(folder: &Path, script: &str) -> (Option<i32>, Value) {
    let output = shell(folder, script).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    let text = match output.stdout.starts_with(b"{") {
        true => String::from_utf8_lossy(&output.stdout),
        false => stderr.clone(),
    };
    let begin = text
        .find('{')
        .unwrap_or_else(|| panic!("{script}: {stderr}"));
    let report = serde_json::from_str(&text[begin..]);
    let report = report.unwrap_or_else(|error| panic!("{script}: {error}: {text}"));
    (output.status.code(), report)
}

#[test]
fn standard_input_becomes_a_file_and_a_file_standard_output() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (name, bytes) in [("empty", 0), ("some", 1000), ("many", 20 << 20)] {
        fs::write(folder.join(name), content(bytes)).unwrap();
        let (status, report) =
            shell_done(folder, &format!("cat {name} | $send - host:to/new-{name}"));
        assert_eq!(
            (status, &report["stored"]),
            (Some(0), &1.into()),
            "{report}"
        );
        assert_eq!(report["bytes"], bytes);
        assert_eq!(report["moved_bytes"], bytes);
        same(
            &folder.join(name),
            &folder.join("to").join(format!("new-{name}")),
        );
        let (status, report) = shell_done(folder, &format!("$recv host:{name} - > back-{name}"));
        assert_eq!(
            (status, &report["stored"]),
            (Some(0), &1.into()),
            "{report}"
        );
        assert_eq!(report["bytes"], bytes);
        same(&folder.join(name), &folder.join(format!("back-{name}")));
    }
    // What is there is replaced, and what trickles in comes through; the umask counts.
    let slow =
        "umask 027; for part in a b c; do echo $part; sleep 0.1; done | $send - host:to/new-many";
    assert_eq!(shell_done(folder, slow).0, Some(0));
    assert_eq!(
        fs::read_to_string(folder.join("to/new-many")).unwrap(),
        "a\nb\nc\n"
    );
    let mode = fs::metadata(folder.join("to/new-many"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o640);
    assert!(is_clean(&folder.join("to")));
}

/// A reader that stands for longer than the other end may be silent is no dead end; one that goes away is named.
#[test]
fn who_reads_standard_output_sets_the_pace() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("file"), content(8 << 20)).unwrap();
    let (status, report) = shell_done(
        folder,
        &format!(
            "$recv host:file - --timeout {SILENCE} | (sleep {}; cat > back)",
            STANDS.as_secs_f64()
        ),
    );
    assert_eq!(status, Some(0), "{report}");
    same(&folder.join("file"), &folder.join("back"));
    let (status, report) = shell_done(folder, "$recv host:file - | head -c 1000 > begin");
    assert_eq!(status, Some(1), "{report}");
    let why = report["failures"][0]["why"].to_string();
    assert!(why.contains("standard output: Broken pipe"), "{why}");
}

#[test]
fn what_is_wrong_with_a_stream_is_named_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("file"), content(8000)).unwrap();
    fs::create_dir_all(folder.join("to/taken")).unwrap();
    let said = |script: &str| {
        let output = shell(folder, script).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{script}");
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    for (script, why) in [
        (
            "$send - host:to/ < file",
            "name the file that it becomes, as host:to/NAME",
        ),
        (
            "$send - file host:to < file",
            "- is standard input, and goes alone",
        ),
        (
            "$send -p - host:to/x < file",
            "leave out --recursive, --preserve",
        ),
        (
            "$send - host:to/taken < file",
            "a folder of that name is there",
        ),
        ("$send - host:to/x < /", "standard input: Is a directory"),
        ("$recv host:file host:to - > x", "takes one file"),
        ("$recv file - > x", "is on this host"),
        ("$recv --law none host:file - > x", "there is no law none"),
        ("$recv -r host:to - > x", "leave out --recursive"),
        (
            "$send --include file - host:to/x < file",
            "leave out --exclude and --include",
        ),
        (
            "$recv --exclude file host:file - > x",
            "leave out --exclude and --include",
        ),
        ("$recv host:to - > x", "is a folder"),
        ("$recv host:none - > x", "No such file"),
        (
            "$recv host:file - > /dev/full",
            "standard output: No space left",
        ),
    ] {
        let said = said(script);
        assert!(said.contains(why), "{script}: {said}");
        // Standard output has the file alone, and what is wrong goes elsewhere.
        let output = fs::read_to_string(folder.join("x")).unwrap_or_default();
        assert_eq!(output, "", "{script}");
    }
    // An input that is not at its end when the sender dies.
    let mut sender = shell(
        folder,
        "{ cat file; exec sleep 60; } | exec $send - host:to/x",
    );
    let mut sender = started(&mut sender);
    let (_, part) = until("a part", || {
        part_bytes(&folder.join("to")).filter(|(_, bytes)| *bytes > 0)
    });
    assert!(part > 0);
    for process in descendants(sender.id()) {
        let command = fs::read_to_string(format!("/proc/{process}/cmdline")).unwrap_or_default();
        if command.contains("sleep") || command.contains("\0send\0") {
            signal(process, Signal::KILL);
        }
    }
    sender.wait().unwrap();
    until("the receiver to take its part away", || {
        is_clean(&folder.join("to")).then_some(())
    });
    assert!(!folder.join("to/x").exists());
}

/// Its children, and theirs.
fn descendants(process: u32) -> Vec<i32> {
    let text = fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
    let children = text.unwrap_or_default();
    let children = children
        .split_whitespace()
        .filter_map(|child| child.parse::<i32>().ok());
    children
        .flat_map(|child| std::iter::once(child).chain(descendants(child as u32)))
        .collect()
}

/// What is lost is sent again, though an input is read once, and goes out in order.
#[test]
fn streams_go_over_a_path_that_loses() {
    let Some(_alone) = alone() else { return };
    let lab = Lab::up(
        "streams",
        "rate = '100mbit'\ndelay = '10ms'\nqueue = '1bdp'\nloss = '2%'",
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, content(8 << 20)).unwrap();
    let (there, back) = (folder.path().join("there"), folder.path().join("back"));
    let options = format!(
        "--rsh 'ip netns exec' --remote-fatpath {FATPATH} --address {} --json",
        lab.address("b")
    );
    let place = format!("{}:{}", lab.namespace("b"), text(&there));
    let script = format!("{FATPATH} send - {place} {options} < {}", text(&file));
    let report: Value = serde_json::from_str(&lab.output("a", &["sh", "-c", &script])).unwrap();
    assert!(report["retransmits"].as_u64().unwrap() > 20, "{report}");
    same(&file, &there);
    let script = format!("{FATPATH} recv {place} - {options} > {}", text(&back));
    lab.output("a", &["sh", "-c", &script]);
    same(&file, &back);
}

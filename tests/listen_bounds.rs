// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `fatpath recv --listen` is held to: memory, open files, whose transfers run, whose groups it has, and whom its
//! signals reach.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use rustix::process::{Pid, Signal, kill_process_group};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use support::listener::*;
use support::mover::*;
use support::{in_turn, until};

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// Memory of a process that is its own, bytes (proc_pid_status(5)).
fn own_memory_bytes(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:"));
    let kib = line.unwrap().split_whitespace().nth(1).unwrap();
    kib.parse::<u64>().unwrap() << 10
}

/// A file system that is frozen until this is dropped.
struct Frozen(PathBuf);

impl Frozen {
    fn at(folder: &Path, image: &Path) -> Frozen {
        fs::File::create(image).unwrap().set_len(1 << 30).unwrap();
        run(&["mkfs.ext4", "-q", text(image)]);
        run(&["mount", "-o", "loop", text(image), text(folder)]);
        chown(folder, Some(WRITER_ID), Some(WRITER_ID)).unwrap();
        Frozen(folder.to_owned())
    }

    fn freeze(&self) {
        run(&["fsfreeze", "-f", text(&self.0)]);
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        // Nothing may be left of it, also where a test failed.
        for words in [&["fsfreeze", "-u"][..], &["umount", "--lazy"]] {
            let _ = Command::new(words[0])
                .args(&words[1..])
                .arg(&self.0)
                .output();
        }
    }
}

/// A caller asks for a window of gigabytes while the listener's disk stands: what waits for the disk is bounded by what the
/// listener gives to each of its transfers.
#[test]
fn a_caller_takes_no_more_memory_than_the_listener_gives() {
    let Some(_turn) = in_turn() else { return };
    let mut ends = Ends::new(&["--memory", "64MiB", "--transfers", "2"]);
    let disk = Frozen::at(&ends.there(), &ends.path("image"));
    let file = ends.path("file");
    fs::File::create(&file).unwrap().set_len(2 << 30).unwrap();
    let window = ["--window", "4GiB", "--carrier", "udp", "--limit", "500mbit"];
    let mut sender = started(ends.send(&file, "", &window));
    let called = called_by_thread(ends.listener().process.id());
    until("a part to grow", || {
        part_bytes(&ends.there()).filter(|(_, bytes)| *bytes > 1 << 20)
    });
    disk.freeze();
    let (mut last, mut since) = (0, Instant::now());
    let most = until("memory to grow no more", || {
        let bytes = own_memory_bytes(called);
        if bytes > last {
            (last, since) = (bytes, Instant::now());
        }
        let stands = bytes > 32 << 20 && since.elapsed() > Duration::from_secs(3);
        (stands || bytes > 400 << 20).then_some(last)
    });
    sender.kill().unwrap();
    sender.wait().unwrap();
    ends.listener().process.kill().unwrap();
    drop(disk);
    assert!(most < 100 << 20, "{} MiB", most >> 20);
}

/// Local addresses of the UDP sockets of a process, as proc_pid_net(5) has them.
fn udp_addresses(process: u32) -> Vec<String> {
    let files = fs::read_dir(format!("/proc/{process}/fd")).unwrap();
    let links = files.filter_map(|file| fs::read_link(file.ok()?.path()).ok());
    let inodes: Vec<String> = links
        .filter_map(|link| {
            let inode = link.to_str()?.strip_prefix("socket:[")?;
            Some(inode.strip_suffix(']')?.to_owned())
        })
        .collect();
    let table = |name| fs::read_to_string(format!("/proc/net/{name}")).unwrap_or_default();
    let lines = table("udp") + &table("udp6");
    let words = lines
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    words
        .filter(|words| inodes.iter().any(|inode| words.get(9) == Some(&&inode[..])))
        .map(|words| words[1].split_once(':').unwrap().0.to_owned())
        .collect()
}

/// A host with several addresses answers from the one that it was called by.
#[test]
fn data_come_to_the_address_that_was_called() {
    let Some(_turn) = in_turn() else { return };
    let mut ends = Ends::new(&[]);
    let mut sender = begun(&ends, &ends.file(LONG));
    let called = called_by_thread(ends.listener().process.id());
    assert_eq!(udp_addresses(called), ["0100007F"]);
    sender.kill().unwrap();
    sender.wait().unwrap();
}

/// A folder that only a group of the writer may write to. The groups of this host are others' while the listener runs.
#[test]
fn the_writer_has_all_of_its_groups() {
    const GROUP: u32 = 54_321;
    let Some(_turn) = in_turn() else { return };
    let mut ends = Ends::new(&[]);
    ends.listener = None;
    let groups = fs::read_to_string("/etc/group").unwrap();
    let groups = format!("{groups}\nfatpath-test:x:{GROUP}:{WRITER}\n");
    fs::write(ends.path("group"), groups).unwrap();
    chown(ends.there(), Some(0), Some(GROUP)).unwrap();
    fs::set_permissions(ends.there(), Permissions::from_mode(0o770)).unwrap();
    ends.wrapper = words("unshare --mount sh -c");
    let script = format!(
        "mount --bind {} /etc/group && exec \"$0\" \"$@\"",
        ends.text("group")
    );
    ends.wrapper.push(script);
    ends.listen(&[]);
    let file = ends.file(100);
    done(ends.send(&file, "", &[]));
    same(&file, &ends.there().join("file"));
}

/// As Ctrl-C of a terminal does, which signals all of a process group.
#[test]
fn an_interrupt_of_the_terminal_ends_transfers_in_order() {
    let Some(_turn) = in_turn() else { return };
    let mut ends = Ends::new(&[]);
    let file = ends.file(LONG);
    let sender = begun(&ends, &file);
    let group = Pid::from_raw(ends.listener().process.id() as i32).unwrap();
    kill_process_group(group, Signal::INT).unwrap();
    assert_eq!(ends.listener().process.wait().unwrap().code(), Some(0));
    let ended = ends.listener().event("ended", |_| true);
    assert!(ended["report"]["moved_bytes"].as_u64() > Some(0), "{ended}");
    let output = sender.wait_with_output().unwrap();
    assert!(
        error_of(&output).contains("goes on where this ended"),
        "{output:?}"
    );
}

/// More transfers than the soft limit of open files has room for.
#[test]
fn all_transfers_that_are_allowed_have_files_to_open() {
    let Some(_turn) = in_turn() else { return };
    let mut ends = Ends::new(&[]);
    ends.listener = None;
    ends.wrapper = words("prlimit --nofile=40:4096");
    ends.listen(&["--transfers-per-key", "8"]);
    let file = ends.file(LONG);
    let slow = |below: &String| started(ends.send(&file, below, &["--limit", "10mbit"]));
    let folders: Vec<_> = (0..8).map(|number| number.to_string()).collect();
    let senders: Vec<_> = folders.iter().map(slow).collect();
    until("all to begin", || {
        let mut folders = folders.iter().map(|folder| ends.there().join(folder));
        let has_begun = |folder: PathBuf| folder.exists() && part_bytes(&folder).is_some();
        folders.all(has_begun).then_some(())
    });
    for mut sender in senders {
        sender.kill().unwrap();
        sender.wait().unwrap();
    }
}

/// One that is trusted keeps no other out.
#[test]
fn a_key_has_not_all_transfers_for_itself() {
    let Some(_turn) = in_turn() else { return };
    let mut ends = Ends::new(&["--transfers", "2"]);
    ends.keys(&["new", "--key", &ends.text("other")]);
    let (key, trusted) = (ends.key("other"), ends.text("trusted-caller"));
    ends.keys(&["trust", "caller", &key, "other", "--trust", &trusted]);
    let (file, small) = (ends.file(LONG), ends.path("small"));
    fs::write(&small, "small").unwrap();
    let sender = begun(&ends, &file);
    let said = ends.refused(ends.send(&small, "", &[]));
    assert!(said.contains("--transfers-per-key"), "{said}");
    done(ends.send_by("other", &small, "", &[]));
    assert!(sender.wait_with_output().unwrap().status.success());
    ends.listener()
        .event("ended", |event| event["name"] == "127.0.0.1");
    done(ends.send(&small, "again", &[]));
}

/// What is refused at the start, with the remedy.
#[test]
fn files_of_keys_that_callers_could_change_or_the_writer_cannot_read_are_refused() {
    let Some(_turn) = in_turn() else { return };
    let ends = Ends::new(&[]);
    let refused = |trust: &Path| {
        let mut command = ends.listener_command(trust);
        command.args(["--user", WRITER]);
        error_of(&command.output().unwrap())
    };
    let inside = ends.there().join("authorized_keys");
    assert!(
        refused(&inside).contains("is below --into"),
        "{}",
        refused(&inside)
    );
    let hidden = ends.path("hidden");
    fs::copy(ends.path("trusted-caller"), &hidden).unwrap();
    fs::set_permissions(&hidden, Permissions::from_mode(0o600)).unwrap();
    assert!(
        refused(&hidden).contains("chmod 644"),
        "{}",
        refused(&hidden)
    );
}

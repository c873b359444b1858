// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath send` to `fatpath recv --listen`, over loopback: who is let in, what strangers can do, where files may go, and how
//! it goes on after an end.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use rustix::process::Signal;
use serde_json::Value;
use std::fs::{self, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};
use support::listener::*;
use support::mover::*;
use support::{in_turn, until};

#[test]
fn files_go_to_a_listener_and_are_the_writers() {
    let Some(_turn) = in_turn() else { return };
    let ends = Ends::new(&[]);
    let file = ends.file(5_000_000);
    for carrier in ["udp", "tcp"] {
        let more = ["--carrier", carrier];
        let report = done(ends.send(&file, &format!("new/{carrier}"), &more));
        assert_eq!(
            (&report["stored"], &report["carrier"]),
            (&1.into(), &carrier.into())
        );
        let arrived = ends.there().join("new").join(carrier).join("file");
        same(&file, &arrived);
        assert_eq!(fs::metadata(arrived).unwrap().uid(), WRITER_ID);
    }
    let ended = ends.listener.as_ref().unwrap().event("ended", |_| true);
    assert_eq!(
        (&ended["name"], &ended["report"]["bytes"]),
        (&"127.0.0.1".into(), &5_000_000.into())
    );
    let mut folder = ends.send(&ends.path("tree"), "", &["-r"]);
    fs::create_dir_all(ends.path("tree/a/b")).unwrap();
    fs::write(ends.path("tree/a/b/c"), "c").unwrap();
    assert!(folder.output().unwrap().status.success());
    same(&ends.path("tree"), &ends.there().join("tree"));
    let dry = done(ends.send(&file, "none/there", &["-n"]));
    assert_eq!(
        (&dry["stored"], ends.there().join("none").exists()),
        (&1.into(), false)
    );
    let mut stream = ends.send(Path::new("-"), "stream", &[]);
    let mut stream = stream
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    stream.stdin.take().unwrap().write_all(b"read").unwrap();
    assert!(stream.wait().unwrap().success());
    assert_eq!(fs::read(ends.there().join("stream")).unwrap(), b"read");
    assert!(is_clean(&ends.there()));
}

#[test]
fn a_transfer_goes_on_after_either_end_was_killed() {
    let Some(_turn) = in_turn() else { return };
    let mut ends = Ends::new(&[]);
    let file = ends.file(LONG);
    let mut sender = begun(&ends, &file);
    kill(sender.id(), Signal::KILL);
    sender.wait().unwrap();
    ends.listener().event("ended", |_| true);
    let sender = begun(&ends, &file);
    let called = called_by_thread(ends.listener().process.id());
    kill(called, Signal::KILL);
    let output = sender.wait_with_output().unwrap();
    assert!(
        error_of(&output).contains("goes on where this ended"),
        "{output:?}"
    );
    let sender = begun(&ends, &file);
    ends.listener().end(Signal::KILL);
    let output = sender.wait_with_output().unwrap();
    assert!(
        error_of(&output).contains("goes on where this ended"),
        "{output:?}"
    );
    ends.listen(&[]);
    let rest = until("the last process to end", || {
        let report = report(&ends.send(&file, "", &[]).output().unwrap());
        (report["stored"] == 1).then_some(report)
    });
    assert!(
        rest["moved_bytes"].as_u64().unwrap() < LONG as u64 * 7 / 8,
        "{rest}"
    );
    same(&file, &ends.there().join("file"));
    assert!(is_clean(&ends.there()));
}

#[test]
fn sigterm_ends_transfers_in_order() {
    let Some(_turn) = in_turn() else { return };
    let mut ends = Ends::new(&[]);
    let file = ends.file(LONG);
    let sender = begun(&ends, &file);
    assert_eq!(ends.listener().end(Signal::TERM), Some(0));
    let stopped = ends.listener().event("stopped", |_| true);
    assert_eq!(stopped["transfers"], 1);
    ends.listener().event("ended", |_| true);
    let output = sender.wait_with_output().unwrap();
    assert!(
        error_of(&output).contains("goes on where this ended"),
        "{output:?}"
    );
    ends.listen(&[]);
    let rest = done(ends.send(&file, "", &[]));
    assert!(
        rest["moved_bytes"].as_u64().unwrap() < LONG as u64 * 7 / 8,
        "{rest}"
    );
    same(&file, &ends.there().join("file"));
}

#[test]
fn both_ends_have_to_trust_each_other() {
    let Some(_turn) = in_turn() else { return };
    let mut ends = Ends::strangers();
    ends.listen(&[]);
    let file = ends.file(100);
    let unknown = ends.refused(ends.send(&file, "", &[]));
    let line = format!("fatpath keys trust host {} 127.0.0.1", ends.key("host"));
    assert!(unknown.contains(&line), "{unknown}");
    ends.trust("host");
    let distrusted = ends.refused(ends.send(&file, "", &[]));
    let line = format!("fatpath keys trust caller {}", ends.key("caller"));
    assert!(distrusted.contains(&line), "{distrusted}");
    let is_it = |event: &Value| event["why"].as_str().unwrap().contains(&line);
    ends.listener.as_ref().unwrap().event("refused", is_it);
    ends.trust("caller"); // while it runs
    done(ends.send(&file, "", &[]));
    same(&file, &ends.there().join("file"));
    // Another host has taken the place of the one that is known.
    ends.listener = None;
    fs::remove_file(ends.path("host")).unwrap();
    ends.keys(&["new", "--key", &ends.text("host")]);
    ends.listen(&[]);
    let wrong = ends.refused(ends.send(&file, "", &[]));
    assert!(wrong.contains("somebody may be in its place"), "{wrong}");
}

/// Nothing is ever said over it.
fn is_open(socket: &TcpStream) -> bool {
    let mut socket = socket;
    socket.set_nonblocking(true).unwrap();
    let read = socket.read(&mut [0]);
    read.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

#[test]
fn strangers_neither_stop_a_transfer_nor_get_an_answer() {
    let Some(_turn) = in_turn() else { return };
    let ends = Ends::new(&[]);
    let connect = || TcpStream::connect(("127.0.0.1", ends.port())).unwrap();
    let mut talking = connect();
    talking.write_all(b"SSH-2.0-OpenSSH_9.9\r\n").unwrap();
    let mut answer = vec![];
    talking
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    talking.read_to_end(&mut answer).unwrap();
    assert!(answer.len() <= 7, "{answer:?}"); // an alert of TLS
    let begun = Instant::now();
    let silent: Vec<_> = (0..100).map(|_| connect()).collect();
    // So many wait for their end to say who it is; the others are closed at once, not when their time is over.
    let open = || silent.iter().filter(|socket| is_open(socket)).count();
    until("few to be left", || (open() <= 32).then_some(()));
    assert!(
        begun.elapsed() < Duration::from_secs(9),
        "their time, 10 s, ended first"
    );
    let file = ends.file(1_000_000);
    let report = done(ends.send(&file, "", &[]));
    assert_eq!(report["stored"], 1);
    until("none to be left", || {
        silent.iter().all(|socket| !is_open(socket)).then_some(())
    });
    let refused = |event: &Value| {
        event["why"]
            .as_str()
            .unwrap()
            .contains("not what fatpath says")
    };
    ends.listener.as_ref().unwrap().event("refused", refused);
}

#[test]
fn nothing_leaves_the_listeners_folder() {
    let Some(_turn) = in_turn() else { return };
    let ends = Ends::new(&[]);
    let outside = ends.path("outside");
    fs::create_dir(&outside).unwrap();
    chown(&outside, Some(WRITER_ID), Some(WRITER_ID)).unwrap();
    symlink(&outside, ends.there().join("link")).unwrap();
    symlink("../outside", ends.there().join("relative")).unwrap();
    let file = ends.file(100);
    for (below, why) in [
        ("../outside", "leaves the target folder"),
        ("a/../../outside", "leaves the target folder"),
        ("link", "is a symbolic link"),
        ("relative/x", "is a symbolic link"),
        ("a//b", "an empty name"),
        (".fatpath-x", "begins with .fatpath-"),
    ] {
        let said = ends.refused(ends.send(&file, below, &[]));
        assert!(said.contains(why), "{below}: {said}");
    }
    let said = ends.refused(ends.send(&file, "", &["-r", "--delete"]));
    assert!(said.contains("a listener deletes nothing"), "{said}");
    // An absolute path is one below the folder.
    done(ends.send(&file, &ends.text("outside"), &[]));
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    same(
        &file,
        &ends.there().join(&ends.text("outside")[1..]).join("file"),
    );
    let said = ends.refused(ends.send(&file, "", &["--ports", "40000-40010"]));
    assert!(said.contains("--ports 50000-51000"), "{said}");
}

/// Files of the listener's folder, for the end that may fetch them.
fn gives() -> Ends {
    let ends = Ends::new(&["--give-to", "127.0.0.1"]);
    fs::create_dir_all(ends.there().join("top/deep")).unwrap();
    fs::write(ends.there().join("top/big"), content(5_000_000)).unwrap();
    fs::write(ends.there().join("top/deep/small"), "small").unwrap();
    symlink("big", ends.there().join("top/link")).unwrap();
    ends
}

#[test]
fn files_are_fetched_from_a_listener() {
    let Some(_turn) = in_turn() else { return };
    let ends = gives();
    for carrier in ["udp", "tcp"] {
        let to = ends.path(carrier);
        let report = done(ends.fetch("top", &to, &["-r", "--carrier", carrier]));
        assert_eq!(
            (&report["stored"], &report["carrier"]),
            (&5.into(), &carrier.into())
        );
        same(&ends.there().join("top"), &to.join("top"));
        let again = done(ends.fetch("top", &to, &["-r", "--carrier", carrier]));
        assert_eq!(again["moved_bytes"], 0, "{again}");
        assert!(is_clean(&to));
    }
    let ended = ends.listener.as_ref().unwrap().event("ended", |_| true);
    assert_eq!(
        (&ended["name"], &ended["report"]["is_given"]),
        (&"127.0.0.1".into(), &true.into())
    );
    let output = ends
        .fetch("/top/big", Path::new("-"), &[])
        .output()
        .unwrap();
    assert!(output.status.success() && output.stdout == content(5_000_000));
    // Both ways at once, and what is arriving there is nobody's to fetch.
    let file = ends.file(LONG);
    let sender = begun(&ends, &file);
    let dry = done(ends.fetch("top", &ends.path("dry"), &["-r", "-n"]));
    assert_eq!(
        (&dry["stored"], ends.path("dry").exists()),
        (&5.into(), false)
    );
    let (part, _) = part_bytes(&ends.there()).unwrap();
    let part = part.file_name().unwrap().to_str().unwrap();
    let said = ends.refused(ends.fetch(part, &ends.path("part"), &[]));
    assert!(said.contains("begins with .fatpath-"), "{said}");
    assert!(sender.wait_with_output().unwrap().status.success());
}

#[test]
fn a_fetch_goes_on_after_either_end_was_killed() {
    let Some(_turn) = in_turn() else { return };
    let mut ends = gives();
    fs::write(ends.there().join("file"), content(LONG)).unwrap();
    let to = ends.path("to");
    let mut arrived = 0;
    for is_listener in [false, true] {
        let mut caller = started(ends.fetch("file", &to, &["--limit", "100mbit"]));
        arrived = until("a part to grow", || {
            let bytes = part_bytes(&to).map_or(0, |(_, bytes)| bytes);
            (bytes > arrived + LONG as u64 / 8).then_some(bytes)
        });
        match is_listener {
            false => kill(caller.id(), Signal::KILL),
            true => _ = ends.listener().end(Signal::KILL),
        }
        assert!(!caller.wait().unwrap().success());
    }
    ends.listen(&["--give-to", "127.0.0.1"]);
    let rest = done(ends.fetch("file", &to, &[]));
    assert!(
        rest["moved_bytes"].as_u64().unwrap() < LONG as u64 * 7 / 8,
        "{rest}"
    );
    same(&ends.there().join("file"), &to.join("file"));
    assert!(is_clean(&to));
}

#[test]
fn only_those_may_fetch_that_the_listener_names_and_only_below_its_folder() {
    let Some(_turn) = in_turn() else { return };
    let mut ends = gives();
    let to = ends.path("to");
    fs::write(ends.path("secret"), "secret").unwrap();
    fs::write(ends.there().join("hidden"), "hidden").unwrap();
    fs::set_permissions(ends.there().join("hidden"), Permissions::from_mode(0o600)).unwrap();
    symlink(ends.path("secret"), ends.there().join("out")).unwrap();
    symlink("..", ends.there().join("up")).unwrap();
    for (path, why) in [
        ("../secret", "leaves the target folder"),
        ("top/../../secret", "leaves the target folder"),
        ("top//big", "an empty name"),
    ] {
        let said = ends.refused(ends.fetch(path, &to, &["-r"]));
        assert!(said.contains(why), "{path}: {said}");
    }
    // An absolute path is one below the folder; what root alone may read, the writer may not.
    for (path, why) in [
        ("out", "none is followed"),
        ("up/secret", "none is followed"),
        ("up", "none is followed"),
        ("top/link", "none is followed"),
        (&ends.text("secret"), "No such file"),
        ("hidden", "Permission denied"),
        ("top", "is a folder: give -r"),
    ] {
        let more = if path == "top" { &[][..] } else { &["-r"] };
        let output = ends.fetch(path, &to, more).output().unwrap();
        let why_not = report(&output)["failures"][0]["why"].to_string();
        assert!(
            output.status.code() == Some(1) && why_not.contains(why),
            "{path}: {output:?}"
        );
    }
    assert!(fs::read_dir(&to).map_or(0, Iterator::count) == 0);
    // Who is let in under another name may send, and not fetch; so may all where nobody is named.
    ends.keys(&["new", "--key", &ends.text("other")]);
    let (key, file) = (ends.key("other"), ends.text("trusted-caller"));
    ends.keys(&["trust", "caller", &key, "other", "--trust", &file]);
    done(ends.send_by("other", &ends.path("secret"), "", &[]));
    let said = ends.refused(ends.fetch_by("other", "top", &to, &["-r"]));
    assert!(said.contains("--give-to NAME"), "{said}");
    ends.listener = None;
    ends.listen(&[]);
    let said = ends.refused(ends.fetch("top/big", &to, &[]));
    assert!(said.contains("--give-to NAME"), "{said}");
    assert!(!to.exists() || fs::read_dir(&to).unwrap().count() == 0);
}

#[test]
fn a_listener_has_bounds_and_never_writes_as_root() {
    let Some(_turn) = in_turn() else { return };
    let mut ends = Ends::new(&["--transfers", "1"]);
    for (user, why) in [
        (None, "--user NAME"),
        (Some("root"), "is root"),
        (Some("no-such-user"), "no user"),
    ] {
        let mut command = ends.listener_command(&ends.path("trusted-caller"));
        command.args(user.iter().flat_map(|user| ["--user", user]));
        let output = command.output().unwrap();
        assert!(error_of(&output).contains(why), "{output:?}");
    }
    let file = ends.file(LONG);
    let sender = begun(&ends, &file);
    let small = ends.path("small");
    fs::write(&small, "small").unwrap();
    let said = ends.refused(ends.send(&small, "", &[]));
    assert!(said.contains("try again later"), "{said}");
    assert!(sender.wait_with_output().unwrap().status.success());
    ends.listener().event("ended", |_| true);
    done(ends.send(&small, "", &[]));
    ends.listener = None;
    ends.listen(&[]);
    let senders = ["1", "2", "3"].map(|below| started(ends.send(&file, below, &[])));
    for (below, sender) in ["1", "2", "3"].iter().zip(senders) {
        let output = sender.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        same(&file, &ends.there().join(below).join("file"));
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `fatpath send` and `recv` keep of files on request, beside their bytes: that several names are one file, and holes.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::process::Stdio;
use support::mover::*;
use support::until;

fn inode(path: &Path) -> u64 {
    fs::metadata(path).unwrap().ino()
}

fn times(path: &Path) -> (i64, i64) {
    let metadata = fs::metadata(path).unwrap();
    (metadata.mtime(), metadata.mtime_nsec())
}

#[test]
fn names_of_one_file_stay_names_of_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let (top, to) = (folder.path().join("top"), folder.path().join("to"));
    for below in ["a", "b", "c"] {
        fs::create_dir_all(top.join(below)).unwrap();
    }
    fs::write(top.join("a/one"), content(6 << 20)).unwrap();
    fs::write(top.join("alone"), "alone").unwrap();
    for name in ["a/two", "b/three", "four"] {
        fs::hard_link(top.join("a/one"), top.join(name)).unwrap();
    }
    // It has a second name that is not sent.
    fs::hard_link(top.join("alone"), folder.path().join("outside")).unwrap();
    let arguments = ["send", "-r", "-p", text(&top), &target(&to)];
    let plain = done(mover(folder.path(), &arguments));
    assert_eq!(plain["moved_bytes"], 4 * (6 << 20) + 5, "{plain}");
    assert_ne!(inode(&to.join("top/a/one")), inode(&to.join("top/four")));
    let linked = done(mover(folder.path(), &[&arguments[..], &["-H"]].concat()));
    assert_eq!(
        (&linked["moved_bytes"], &linked["stored"]),
        (&0.into(), &3.into())
    );
    let is_kept = |to: &Path| {
        same(&top, to);
        let names = ["a/one", "a/two", "b/three", "four"].map(|name| inode(&to.join(name)));
        assert!(names.iter().all(|inode| *inode == names[0]), "{names:?}");
        assert_eq!(fs::metadata(to.join("four")).unwrap().nlink(), 4);
        assert_eq!(fs::metadata(to.join("alone")).unwrap().nlink(), 1);
        // A folder that a name came into late has its time, too.
        for below in ["a", "b", "c", "."] {
            assert_eq!(times(&top.join(below)), times(&to.join(below)), "{below}");
        }
        assert!(is_clean(to));
    };
    is_kept(&to.join("top"));
    let again = done(mover(folder.path(), &[&arguments[..], &["-H"]].concat()));
    assert_eq!(
        (&again["moved_bytes"], &again["stored"]),
        (&0.into(), &0.into())
    );
    // From nothing, the other way round, and by what is only looked at.
    let (back, place) = (folder.path().join("back"), target(&to.join("top")));
    let arguments = ["recv", "-r", "-p", "-H", &place, text(&back)];
    let dry = done(mover(folder.path(), &[&arguments[..], &["-n"]].concat()));
    assert_eq!((&dry["stored"], back.exists()), (&9.into(), false));
    let fetched = done(mover(folder.path(), &arguments));
    assert_eq!(fetched["moved_bytes"], (6 << 20) + 5, "{fetched}");
    is_kept(&back.join("top"));
}

/// A name without the file that it is another one of: that one fails, and the others go on.
#[test]
fn a_name_of_a_file_that_fails_fails_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let (top, to) = (folder.path().join("top"), folder.path().join("to"));
    fs::create_dir_all(&top).unwrap();
    fs::create_dir_all(to.join("top/one")).unwrap(); // a folder is in its way
    fs::write(top.join("one"), "one").unwrap();
    fs::write(top.join("other"), "other").unwrap();
    fs::hard_link(top.join("one"), top.join("two")).unwrap();
    fs::write(to.join("top/two"), "left alone").unwrap();
    let output = mover(
        folder.path(),
        &["send", "-r", "-H", text(&top), &target(&to)],
    )
    .output()
    .unwrap();
    let report = report(&output);
    assert_eq!(
        (&report["failed"], output.status.code()),
        (&2.into(), Some(1)),
        "{report}"
    );
    let why = report["failures"].to_string();
    assert!(why.contains("a folder of that name is there"), "{why}");
    assert!(
        why.contains("a file that this transfer did not bring"),
        "{why}"
    );
    assert_eq!(
        fs::read_to_string(to.join("top/two")).unwrap(),
        "left alone"
    );
    assert_eq!(fs::read_to_string(to.join("top/other")).unwrap(), "other");
}

/// 512 MiB, with 16 MiB of data at both ends of a hole, and one of 256 MiB at its own end.
fn sparse(path: &Path) -> u64 {
    let file = File::create(path).unwrap();
    file.write_all_at(&content(16 << 20), 0).unwrap();
    file.write_all_at(&content(16 << 20), 240 << 20).unwrap();
    file.set_len(512 << 20).unwrap();
    32 << 20
}

fn room_bytes(path: &Path) -> u64 {
    512 * fs::metadata(path).unwrap().blocks()
}

#[test]
fn holes_are_not_sent_and_take_no_room() {
    let folder = tempfile::tempdir().unwrap();
    let (top, to) = (folder.path().join("top"), folder.path().join("to"));
    fs::create_dir(&top).unwrap();
    let data = sparse(&top.join("sparse"));
    File::create(top.join("hole"))
        .unwrap()
        .set_len(64 << 20)
        .unwrap();
    fs::write(top.join("dense"), content(1 << 20)).unwrap();
    let arguments = ["send", "-r", "-S", text(&top), &target(&to)];
    // Ended before its time, it goes on: holes are there as data are.
    let mut sender = mover(
        folder.path(),
        &[&arguments[..], &["--limit", "100mbit"]].concat(),
    )
    .stdout(Stdio::null())
    .stderr(Stdio::null())
    .spawn()
    .unwrap();
    let there = to.join("top");
    until("some data to arrive", || {
        assert!(is_running(&mut sender));
        part_bytes(&there).filter(|(_, bytes)| *bytes > data / 4)
    });
    sender.kill().unwrap();
    sender.wait().unwrap();
    let report = done(mover(folder.path(), &arguments));
    let moved = report["moved_bytes"].as_u64().unwrap();
    assert!(moved > 0 && moved < data, "{report}");
    same(&top, &there);
    assert!(room_bytes(&there.join("sparse")) < data + (4 << 20));
    assert_eq!(room_bytes(&there.join("hole")), 0);
    assert!(is_clean(&there));
    // By TCP, the other way round.
    let (back, place) = (folder.path().join("back"), target(&there));
    let arguments = ["recv", "-r", "-S", &place, text(&back), "--carrier", "tcp"];
    let report = done(mover(folder.path(), &arguments));
    assert_eq!(report["moved_bytes"], data + (1 << 20), "{report}");
    same(&top, &back.join("top"));
    assert!(room_bytes(&back.join("top/sparse")) < data + (4 << 20));
}

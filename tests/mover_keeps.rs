// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `fatpath send` and `recv` keep of files on request, beside their bytes: that several names are one file, holes, and
//! extended attributes.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use rustix::fs::{XattrFlags, getxattr, listxattr, setxattr};
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use support::mover::*;
use support::{in_turn, until};

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

fn set(path: &Path, name: &str, value: &[u8]) {
    setxattr(path, name, value, XattrFlags::empty()).unwrap();
}

/// Names and values.
fn attributes(path: &Path) -> Vec<(String, Vec<u8>)> {
    let mut names = vec![0; 4096];
    let length = listxattr(path, &mut names[..]).unwrap();
    let names = String::from_utf8(names[..length].to_vec()).unwrap();
    let mut attributes: Vec<_> = names
        .split_terminator('\0')
        .map(|name| {
            let mut value = vec![0; 4096];
            let length = getxattr(path, name, &mut value[..]).unwrap();
            (name.to_owned(), value[..length].to_vec())
        })
        .collect();
    attributes.sort();
    attributes
}

/// POSIX ACL (linux/posix_acl_xattr.h): rights of the owner, of user 65534, of the group, the mask, others.
fn acl() -> Vec<u8> {
    let entries = [
        (1_u16, 6_u16, u32::MAX),
        (2, 5, 65534),
        (4, 4, u32::MAX),
        (16, 5, u32::MAX),
        (32, 0, u32::MAX),
    ];
    let entries = entries.iter().flat_map(|(tag, rights, id)| {
        [
            &tag.to_le_bytes()[..],
            &rights.to_le_bytes(),
            &id.to_le_bytes(),
        ]
        .concat()
    });
    2_u32.to_le_bytes().into_iter().chain(entries).collect()
}

const ACCESS: &str = "system.posix_acl_access";
const DEFAULT: &str = "system.posix_acl_default";

#[test]
fn attributes_and_acls_are_kept_where_they_are_asked_for() {
    let Some(_turn) = in_turn() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (top, to) = (folder.path().join("top"), folder.path().join("to"));
    fs::create_dir_all(top.join("deep")).unwrap();
    let (file, other) = (top.join("deep/file"), top.join("deep/other"));
    fs::write(&file, content(1 << 20)).unwrap();
    fs::write(&other, "other").unwrap();
    set(&file, "user.a", b"a\0\xff");
    set(&top.join("deep"), "user.folder", b"");
    set(&file, "trusted.b", b"b");
    set(&file, ACCESS, &acl());
    set(&top.join("deep"), DEFAULT, &acl());
    let there = |path: &Path| to.join(path.strip_prefix(folder.path()).unwrap());
    let send = |more: &[&str]| {
        let arguments = ["send", "-r", text(&top), &target(&to)];
        done(mover(folder.path(), &[&arguments[..], more].concat()))
    };
    send(&[]);
    assert_eq!(attributes(&there(&file)), []);
    // What is there already gets them, and of those that it asks for alone.
    let kept = |names: &[&str]| {
        let wanted = attributes(&file);
        let wanted = wanted
            .into_iter()
            .filter(|(name, _)| names.contains(&name.as_str()));
        assert_eq!(attributes(&there(&file)), wanted.collect::<Vec<_>>());
    };
    assert_eq!(send(&["-X"])["moved_bytes"], 0);
    kept(&["user.a"]);
    assert_eq!(
        attributes(&there(&top.join("deep"))),
        [("user.folder".to_owned(), vec![])]
    );
    send(&["-X=all"]);
    kept(&["user.a", "trusted.b"]);
    send(&["-A"]);
    kept(&["user.a", "trusted.b", ACCESS]);
    // Below a folder that gives rights by itself a file has those that it had.
    fs::remove_dir_all(&to).unwrap();
    send(&["-X", "-A"]);
    kept(&["user.a", ACCESS]);
    assert_eq!(attributes(&there(&other)), []);
    let deep = attributes(&there(&top.join("deep")));
    assert_eq!(
        deep,
        [
            (DEFAULT.to_owned(), acl()),
            ("user.folder".to_owned(), vec![])
        ]
    );
    let mode = |path: &Path| fs::metadata(path).unwrap().mode();
    assert_eq!(
        (mode(&there(&file)), mode(&there(&other))),
        (mode(&file), mode(&other))
    );
    // Root changes nothing of other users' files, and is content where there is nothing to change.
    chown(there(&other), Some(65534), None).unwrap();
    send(&["-X"]);
    set(&there(&other), "user.own", b"");
    let arguments = ["send", "-r", "-X", text(&top), &target(&to)];
    let output = mover(folder.path(), &arguments).output().unwrap();
    let why = report(&output)["failures"][0]["why"].to_string();
    assert!(why.contains("another user's"), "{output:?}");
    fs::remove_file(there(&other)).unwrap();
    // What is gone here goes there, and the other way round it is the same.
    set(&there(&file), "user.more", b"");
    set(&there(&file), "user.a", b"another");
    send(&["-X"]);
    kept(&["user.a", ACCESS]);
    let back = folder.path().join("back");
    let arguments = ["recv", "-r", "-X", &target(&to.join("top")), text(&back)];
    done(mover(folder.path(), &arguments));
    assert_eq!(
        attributes(&back.join("top/deep/file")),
        [("user.a".to_owned(), b"a\0\xff".to_vec())]
    );
}

/// A file system without attributes.
struct Plain(PathBuf);

impl Plain {
    fn at(path: PathBuf) -> Plain {
        fs::create_dir(&path).unwrap();
        run(&["mount", "-t", "ramfs", "ramfs", text(&path)]);
        Plain(path)
    }
}

impl Drop for Plain {
    fn drop(&mut self) {
        run(&["umount", "--lazy", text(&self.0)]);
    }
}

#[test]
fn attributes_that_cannot_be_stored_are_named_and_files_arrive() {
    let Some(_turn) = in_turn() else { return };
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path().join("top");
    fs::create_dir(&top).unwrap();
    for name in ["one", "two", "three"] {
        fs::write(top.join(name), name).unwrap();
    }
    set(&top.join("one"), "user.a\u{1b}", b"a");
    set(&top, "user.top", b"");
    let plain = Plain::at(folder.path().join("plain"));
    let arguments = ["send", "-r", "-X", text(&top), &target(&plain.0)];
    for stored in [4, 0] {
        let output = mover(folder.path(), &arguments).output().unwrap();
        let report = report(&output);
        let counts = [&report["stored"], &report["failed"]];
        assert_eq!(
            (counts, output.status.code()),
            ([&stored.into(), &2.into()], Some(1)),
            "{report}"
        );
        let why = report["failures"].to_string();
        assert!(
            why.contains("attribute user.a\\\\u{1b}: Operation not supported"),
            "{why}"
        );
        assert!(why.contains("attribute user.top"), "{why}");
        same(&top, &plain.0.join("top"));
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath send` and `recv` with `--delete`: what goes, what stays, and when nothing goes.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use serde_json::Value;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use support::in_turn;
use support::mover::*;

/// A folder `top` to be sent, and one of that name in `to` that has more, beside others that were not sent.
struct Folders {
    folder: tempfile::TempDir,
    top: PathBuf,
    to: PathBuf,
}

impl Folders {
    fn new() -> Folders {
        let folder = tempfile::tempdir().unwrap();
        let (top, to) = (folder.path().join("top"), folder.path().join("to"));
        for (below, files) in [
            (&top, &["kept", "deep/kept", "skip.tmp"][..]),
            (
                &to.join("top"),
                &["old", "deep/old", "gone/deep/file", "stays.tmp"],
            ),
            (&to.join("other"), &["file"]),
            (&folder.path().join("outside"), &["file"]),
        ] {
            for file in files {
                fs::create_dir_all(below.join(file).parent().unwrap()).unwrap();
                fs::write(below.join(file), file).unwrap();
            }
        }
        symlink("../../outside", to.join("top/link")).unwrap();
        symlink("../../outside", to.join("top/gone/link")).unwrap();
        Folders { folder, top, to }
    }

    fn send(&self, more: &[&str]) -> Value {
        let arguments = [
            "send",
            "-r",
            "-p",
            text(&self.top),
            &target(&self.to),
            "--delete",
        ];
        let exclude = ["--exclude", "*.tmp"];
        done(mover(
            self.folder.path(),
            &[&arguments[..], &exclude, more].concat(),
        ))
    }

    /// What nothing may touch is there.
    fn others_are_there(&self) {
        for file in ["to/other/file", "outside/file", "to/top/stays.tmp"] {
            assert!(self.folder.path().join(file).exists(), "{file}");
        }
    }
}

fn deletions(report: &Value) -> Vec<&str> {
    let deletions = report["deletions"].as_array().unwrap();
    assert_eq!(report["deleted"], deletions.len());
    deletions
        .iter()
        .map(|path| path.as_str().unwrap())
        .collect()
}

const GONE: [&str; 7] = [
    "top/deep/old",
    "top/gone/deep/file",
    "top/gone/deep",
    "top/gone/link",
    "top/gone",
    "top/link",
    "top/old",
];

#[test]
fn what_was_not_sent_is_deleted_after_it_was_listed() {
    let folders = Folders::new();
    let dry = folders.send(&["-n"]);
    assert_eq!(deletions(&dry), GONE);
    assert!(
        GONE.iter()
            .all(|path| folders.to.join(path).symlink_metadata().is_ok())
    );
    let report = folders.send(&[]);
    assert_eq!(deletions(&report), GONE);
    assert_eq!(
        (&report["stored"], &report["failed"]),
        (&2.into(), &0.into())
    );
    assert!(
        GONE.iter()
            .all(|path| folders.to.join(path).symlink_metadata().is_err())
    );
    folders.others_are_there();
    fs::remove_file(folders.to.join("top/stays.tmp")).unwrap();
    fs::remove_file(folders.top.join("skip.tmp")).unwrap();
    same(&folders.top, &folders.to.join("top"));
    for below in [".", "deep"] {
        let modified = |top: &Path| fs::metadata(top.join(below)).unwrap().mtime_nsec();
        assert_eq!(
            modified(&folders.top),
            modified(&folders.to.join("top")),
            "{below}"
        );
    }
    // The other way round, and where there is nothing to delete.
    fs::write(folders.top.join("new"), "new").unwrap();
    let place = target(&folders.to.join("top"));
    let arguments = [
        "recv",
        "-r",
        &place,
        text(folders.folder.path()),
        "--delete",
    ];
    let report = done(mover(folders.folder.path(), &arguments));
    assert_eq!(deletions(&report), ["top/new"]);
    let report = done(mover(folders.folder.path(), &arguments));
    assert_eq!(deletions(&report), [""; 0]);
}

/// What is mounted in the folder is another one, on the same file system or not.
#[test]
fn what_is_mounted_there_stays() {
    let Some(_turn) = in_turn() else { return };
    let folders = Folders::new();
    let outside = folders.folder.path().join("outside");
    let mounted = Mounted::at(folders.to.join("top/deep"), &outside);
    let sent = folders.send(&[]);
    assert!(deletions(&sent).contains(&"top/gone"), "{sent}");
    assert!(outside.join("file").exists());
    drop(mounted);
    let mounted = Mounted::at(folders.to.join("top/own"), &outside);
    let arguments = [
        "send",
        "-r",
        text(&folders.top),
        &target(&folders.to),
        "--delete",
    ];
    let output = mover(folders.folder.path(), &arguments).output().unwrap();
    let why = report(&output)["failures"].to_string();
    assert!(why.contains("top/own") && why.contains("mounted"), "{why}");
    assert!(outside.join("file").exists());
    drop(mounted);
}

/// A folder that is another one meanwhile.
struct Mounted(PathBuf);

impl Mounted {
    fn at(path: PathBuf, other: &Path) -> Mounted {
        fs::create_dir_all(&path).unwrap();
        run(&["mount", "--bind", text(other), text(&path)]);
        Mounted(path)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        run(&["umount", "--lazy", text(&self.0)]);
    }
}

/// Where not all has arrived, what seems to be too much may be what is missing.
#[test]
fn where_something_fails_nothing_is_deleted() {
    let folders = Folders::new();
    let fifo = folders.top.join("fifo");
    run(&["mkfifo", text(&fifo)]); // is not sent, and named
    let arguments = [
        "send",
        "-r",
        text(&folders.top),
        &target(&folders.to),
        "--delete",
    ];
    let output = mover(folders.folder.path(), &arguments).output().unwrap();
    let report = report(&output);
    assert_eq!(
        (&report["deleted"], output.status.code()),
        (&0.into(), Some(1)),
        "{report}"
    );
    let why = report["failures"].to_string();
    assert!(why.contains("nothing was deleted"), "{why}");
    assert!(
        GONE.iter()
            .all(|path| folders.to.join(path).symlink_metadata().is_ok())
    );
    folders.others_are_there();
}

#[test]
fn people_are_told_what_would_go() {
    let folders = Folders::new();
    let (place, rsh) = (target(&folders.to), here(folders.folder.path()));
    let mut command = std::process::Command::new(support::FATPATH);
    command.args([
        "send",
        "-r",
        text(&folders.top),
        &place,
        "--delete",
        "-n",
        "--rsh",
        &rsh,
    ]);
    command.args([
        "--remote-fatpath",
        support::FATPATH,
        "--address",
        "127.0.0.1",
    ]);
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    for part in ["top/gone/link: would be deleted", "8 would be deleted"] {
        assert!(said.contains(part), "{said}");
    }
    let alone = mover(
        folders.folder.path(),
        &["send", text(&folders.top), &place, "--delete"],
    );
    let output = { alone }.output().unwrap();
    assert_eq!(
        output.status.code(),
        Some(2),
        "without -r there is no folder"
    );
}

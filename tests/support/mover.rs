// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath send` and `recv` to this host itself, over loopback, and what they leave in a folder.

use super::FATPATH;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};

/// What stands in ssh's place: it leaves the host out.
pub fn here(folder: &Path) -> String {
    let path = folder.join("rsh");
    if !path.exists() {
        fs::write(&path, "#!/bin/sh\nshift\nexec \"$@\"\n").unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    }
    path.to_str().unwrap().to_owned()
}

/// `fatpath send` or `recv` to itself, over loopback.
pub fn mover(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(FATPATH);
    command.args(arguments);
    command.args(["--rsh", &here(folder), "--remote-fatpath", FATPATH]);
    command.args(["--address", "127.0.0.1", "--json"]);
    command
}

pub fn report(output: &Output) -> Value {
    let stderr = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {stderr}"))
}

pub fn done(mut command: Command) -> Value {
    let output = command.output().unwrap();
    let report = report(&output);
    assert!(output.status.success(), "{report}");
    report
}

/// Bytes without a pattern.
pub fn content(bytes: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    (0..bytes / 8).flat_map(|_| next()).collect()
}

pub fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

pub fn target(folder: &Path) -> String {
    format!("host:{}", text(folder))
}

/// Nothing of an unfinished transfer is there.
pub fn is_clean(folder: &Path) -> bool {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries.into_iter().all(|entry| {
        let is_ours = entry
            .file_name()
            .to_str()
            .is_some_and(|name| name.starts_with(".fatpath-"));
        !is_ours && (!entry.file_type().unwrap().is_dir() || is_clean(&entry.path()))
    })
}

pub fn same(left: &Path, right: &Path) {
    let diff = Command::new("diff")
        .args(["-r", "--no-dereference"])
        .args([left, right])
        .output()
        .unwrap();
    assert!(
        diff.status.success(),
        "{}",
        String::from_utf8_lossy(&diff.stdout)
    );
}

pub fn run(words: &[&str]) {
    let done = Command::new(words[0]).args(&words[1..]).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{words:?}: {said}");
}

pub fn is_running(child: &mut Child) -> bool {
    child.try_wait().unwrap().is_none()
}

/// The process that `fatpath send` started, found by its parent.
pub fn called_by(parent: u32) -> Option<i32> {
    let text = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// Bytes of the part that are there.
pub fn part_bytes(folder: &Path) -> Option<(PathBuf, u64)> {
    let parts = fs::read_dir(folder)
        .ok()?
        .map(|entry| entry.unwrap().path());
    let part = parts
        .into_iter()
        .find(|path| path.extension().is_some_and(|end| end == "part"))?;
    let bytes = 512 * fs::metadata(&part).ok()?.blocks();
    Some((part, bytes))
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program as somebody at a terminal meets it. Loads nothing: no test here needs the host for itself.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

use serde_json::Value;
use std::process::{Command, Output};

const FATPATH: &str = env!("CARGO_BIN_EXE_fatpath");

fn fatpath(words: &[&str]) -> Output {
    Command::new(FATPATH).args(words).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn doctor(policy: &str) -> (Option<i32>, Value) {
    let folder = tempfile::tempdir().unwrap();
    let (file, run) = (folder.path().join("policy.toml"), folder.path().join("run"));
    std::fs::write(&file, policy).unwrap();
    let output = Command::new(FATPATH)
        .args(["doctor", "--json", "--policy"])
        .arg(&file)
        .arg("--run-dir")
        .arg(&run)
        .output()
        .unwrap();
    let report = serde_json::from_slice(&output.stdout).unwrap();
    (output.status.code(), report)
}

fn check<'r>(report: &'r Value, name: &str) -> &'r Value {
    let checks = report["checks"].as_array().unwrap();
    checks.iter().find(|it| it["check"] == name).unwrap()
}

#[test]
fn the_doctor_says_what_is_bad_and_exits_with_it() {
    let (code, report) = doctor("[[rule]]\nnonsense = 1\n");
    assert_eq!(code, Some(1));
    let policy = check(&report, "policy");
    assert_eq!(policy["level"], "bad");
    assert!(policy["found"].as_str().unwrap().contains("policy.toml:"));
    assert!(policy["remedy"].as_str().unwrap().contains("policy check"));
}

#[test]
fn the_doctor_reads_this_host() {
    let (code, report) = doctor("[auto]\nmode = \"tune\"\n");
    let checks = report["checks"].as_array().unwrap();
    let bad = checks.iter().filter(|it| it["level"] == "bad").count();
    assert_eq!(code, Some(i32::from(bad > 0)), "{report}");
    assert_eq!(check(&report, "policy")["level"], "ok");
    let kernel = check(&report, "kernel")["found"].as_str().unwrap();
    let uname = Command::new("uname").arg("-r").output().unwrap();
    assert!(kernel.starts_with(text(&uname.stdout).trim()), "{kernel}");
    let btf = std::path::Path::new("/sys/kernel/btf/vmlinux").exists();
    assert_eq!(check(&report, "BTF")["level"] == "ok", btf);
}

#[test]
fn the_doctors_table_fits_80_columns() {
    let output = fatpath(&["doctor", "--policy", "/nonexistent/policy.toml"]);
    assert_eq!(output.status.code(), Some(1));
    let table = text(&output.stdout);
    assert!(table.contains("bad     policy"), "{table}");
    for line in table.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

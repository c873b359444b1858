// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath why` on emulated paths whose trouble is known: the right finding, and no wrong one.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use std::process::{Command, Stdio};
use support::causes::{BLACK_HOLE, CAUSES, Cause, HEALTHY};
use support::ordinary::SHAPES;
use support::{FATPATH, alone};

/// `FATPATH_WHY=NAME,NAME` chooses.
fn chosen() -> Vec<Cause> {
    let names = std::env::var("FATPATH_WHY").unwrap_or_default();
    let all = HEALTHY.into_iter().chain(CAUSES).chain([BLACK_HOLE]);
    all.filter(|cause| names.is_empty() || names.split(',').any(|name| name == cause.name))
        .collect()
}

#[test]
#[ignore = "long"]
fn each_cause_is_found_and_no_other() {
    let Some(_alone) = alone() else { return };
    let mut wrong = Vec::new();
    for cause in chosen() {
        let verdict = cause.judge();
        let verdict_is = if verdict.is_right { "right" } else { "wrong" };
        println!(
            "verdict: {verdict_is}, {}: {:?}, at the receiver {:?}",
            cause.name, verdict.sender, verdict.receiver
        );
        if !verdict.is_right {
            wrong.push(format!(
                "{}, wanted {:?}:\n{}",
                cause.name, cause.wanted, verdict.report
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Prints them: the figure `why.gain_error` compares.
#[test]
#[ignore = "long"]
fn what_cures_give_is_printed_with_what_was_expected() {
    for cause in chosen() {
        let Some(_alone) = alone() else { return };
        if let Some(gain) = cause.gain() {
            println!(
                "gain: {} {}: expected {:.2} reached {:.2}",
                cause.name, gain.finding, gain.expected, gain.reached
            );
        }
    }
}

/// Prints them: the figure `why.false_per_1000` counts.
#[test]
#[ignore = "long"]
fn findings_of_ordinary_traffic_are_printed() {
    let names = std::env::var("FATPATH_WHY").unwrap_or_default();
    for shape in SHAPES {
        if !names.is_empty() && !names.split(',').any(|name| name == shape.name) {
            continue;
        }
        let Some(_alone) = alone() else { return };
        let judged = shape.judge();
        let count = judged.findings.len();
        println!("ordinary: {}: {count} of {}", shape.name, judged.flows);
        for finding in judged.findings {
            println!("  {finding}");
        }
    }
}

#[test]
fn top_says_that_it_needs_a_terminal() {
    let output = Command::new(FATPATH)
        .arg("top")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("needs a terminal"), "{said}");
}

#[test]
fn a_bad_formula_is_refused_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("policy.toml");
    std::fs::write(&file, "[instruments.derived]\nAveBW = 'DataByteOut * 8'\n").unwrap();
    let output = Command::new(FATPATH)
        .args(["policy", "check"])
        .arg(&file)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("policy.toml:2:1: error: AveBW: no such variable: DataByteOut"),
        "{said}"
    );
}

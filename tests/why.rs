// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath why` on emulated paths whose trouble is known: the right finding, and no wrong one.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use support::alone;
use support::causes::{BLACK_HOLE, CAUSES, Cause, HEALTHY};

/// `FATPATH_WHY=NAME,NAME` chooses.
fn chosen() -> Vec<Cause> {
    let names = std::env::var("FATPATH_WHY").unwrap_or_default();
    let all = HEALTHY.into_iter().chain(CAUSES).chain([BLACK_HOLE]);
    all.filter(|cause| names.is_empty() || names.split(',').any(|name| name == cause.name))
        .collect()
}

#[test]
fn each_cause_is_found_and_no_other() {
    let Some(_alone) = alone() else { return };
    let mut wrong = Vec::new();
    for cause in chosen() {
        let verdict = cause.judge();
        println!(
            "{}: {:?}, at the receiver {:?}",
            cause.name, verdict.sender, verdict.receiver
        );
        if !verdict.is_right {
            wrong.push(format!(
                "{}, wanted {:?}:\n{}",
                cause.name, cause.wanted, verdict.told
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

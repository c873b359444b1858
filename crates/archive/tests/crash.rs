// SPDX-License-Identifier: MIT OR Apache-2.0
//! A process that writes to the spool and moves to the store is killed (SIGKILL) at random moments, and the store is
//! away for some time: no acknowledged event is lost, none is there twice, and the roll-ups count each once.

#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

use fatpath_harness::killed_writer::{KILLS, kill_writers, write_until_killed};
use std::process::Command;

/// What the process does until it is killed; a test of its own does nothing.
#[test]
fn writer() {
    write_until_killed().unwrap();
}

#[test]
fn no_acknowledged_event_is_lost_or_doubled() {
    let outcome = kill_writers(|| {
        let mut this = Command::new(std::env::current_exe()?);
        this.args(["--exact", "writer", "--nocapture"]);
        Ok(this)
    });
    let outcome = outcome.unwrap();
    println!("{outcome:?} after {KILLS} kills");
    assert_eq!(
        (outcome.lost, outcome.doubled, outcome.miscounted),
        (0, 0, 0),
        "{outcome:?}"
    );
    assert!(outcome.events as u64 >= 20 * KILLS);
}

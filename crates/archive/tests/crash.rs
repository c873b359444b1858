// SPDX-License-Identifier: MIT OR Apache-2.0
//! A writer that is killed (SIGKILL) at random moments: no acknowledged event is lost, none is there twice.
//!
//! The writer is this program, run again: it prints the last sequence number after each sync.

#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

use fatpath_archive::{Bounds, Event, Kind, Origin, Spool, segment};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const FOLDER: &str = "FATPATH_TEST_SPOOL";
const KILLS: u64 = 30;

fn open(folder: &Path) -> Spool {
    let origin = Origin {
        host: "here".into(),
        boot: "1".into(),
    };
    let bounds = Bounds {
        segment_bytes: 8 << 10,
        ..Bounds::of(64 << 20)
    };
    Spool::open(folder, origin, bounds, now_us()).unwrap()
}

fn now_us() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    now.as_micros() as i64
}

/// What the writer does until it is killed; a test of its own does nothing.
#[test]
fn writer() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let mut spool = open(Path::new(&folder));
    let mut out = std::io::stdout();
    loop {
        let mut last = 0;
        for number in 0..20 {
            let kind = Kind::ALL[number % Kind::ALL.len()];
            last = spool.append(kind, &event()).unwrap();
        }
        spool.sync(now_us()).unwrap();
        writeln!(out, "synced {last}").unwrap();
    }
}

fn event() -> Event {
    Event {
        time_us: now_us(),
        name: "flow.end".into(),
        peer: None,
        rule: None,
        value: None,
        weight: 1,
        body: "x".repeat(100),
    }
}

/// Kills a writer after so long; the last sequence number that it acknowledged.
fn kill_a_writer(folder: &Path, after: Duration) -> Option<u64> {
    let mut writer = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "writer", "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let out = BufReader::new(writer.stdout.take().unwrap());
    let mut lines = out.lines();
    let first = lines.find(|line| line.as_ref().is_ok_and(|line| line.starts_with("synced ")));
    std::thread::sleep(after);
    writer.kill().unwrap();
    writer.wait().unwrap();
    // The last line may be torn: then the number is too small, and nothing is claimed by it.
    let lines = first.into_iter().chain(lines).map_while(Result::ok);
    let whole = lines.filter_map(|line| line.strip_prefix("synced ")?.parse().ok());
    whole.max()
}

#[test]
fn a_killed_writer_loses_nothing_that_it_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let (mut seen, mut acknowledged) = (BTreeSet::new(), BTreeSet::new());
    for round in 0..KILLS {
        // Some microseconds to some milliseconds, never the same.
        let after = Duration::from_micros(37 * round * round % 9973);
        let last = kill_a_writer(dir.path(), after).expect("the writer synced once");
        let spool = open(dir.path());
        let before = seen.len();
        while let Some(claimed) = spool.sealed().claim_oldest() {
            let bytes = claimed.read().unwrap();
            for (sequence, event) in segment::read(&bytes).unwrap().1 {
                assert_eq!(event.body.len(), 100);
                assert!(seen.insert(sequence), "{sequence} is there twice");
            }
            claimed.remove().unwrap();
        }
        let first = seen.iter().nth(before).copied().expect("some were read");
        assert!(
            (first..=last).all(|sequence| seen.contains(&sequence)),
            "one is lost"
        );
        acknowledged.insert(last);
    }
    assert_eq!(acknowledged.len() as u64, KILLS);
}

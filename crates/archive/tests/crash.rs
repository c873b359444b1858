// SPDX-License-Identifier: MIT OR Apache-2.0
//! A process that writes to the spool and moves to the store is killed (SIGKILL) at random moments, and the store is
//! away for some time: no acknowledged event is lost, none is there twice, and the roll-ups count each once.
//!
//! The process is this program, run again: it prints its first and its last sequence number after each sync.

#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

use fatpath_archive::store::{Measure, Query, SqliteStore, Store, Width};
use fatpath_archive::{Bounds, Event, Kind, Origin, Spool, move_oldest};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const FOLDER: &str = "FATPATH_TEST_ARCHIVE";
const STORE_IS_AWAY: &str = "FATPATH_TEST_STORE_IS_AWAY";
const KILLS: u64 = 200;
const BODY: &str = r#"{"goodput_mbps":8,"srtt_us":1000,"min_rtt_us":900,"segments_sent":9,"segments_retransmitted":1}"#;

fn open(folder: &Path) -> Spool {
    let origin = Origin {
        host: "here".into(),
        boot: "1".into(),
    };
    let bounds = Bounds {
        segment_bytes: 4 << 10,
        ..Bounds::of(64 << 20)
    };
    Spool::open(&folder.join("spool"), origin, bounds, now_us()).unwrap()
}

fn now_us() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    now.as_micros() as i64
}

/// What the process does until it is killed; a test of its own does nothing.
#[test]
fn writer() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let folder = Path::new(&folder);
    let mut store = SqliteStore::at(folder);
    let mut spool = open(folder);
    let mut out = std::io::stdout();
    let mut first = None;
    loop {
        let mut last = 0;
        for number in 0..20 {
            let kind = Kind::ALL[number % Kind::ALL.len()];
            last = spool.append(kind, &event()).unwrap();
            first.get_or_insert(last);
        }
        spool.sync(now_us()).unwrap();
        writeln!(out, "synced {} {last}", first.unwrap()).unwrap();
        if std::env::var_os(STORE_IS_AWAY).is_none() {
            while move_oldest(spool.sealed(), &mut store).unwrap().is_some() {}
        }
    }
}

fn event() -> Event {
    Event {
        time_us: now_us(),
        name: "flow.end".into(),
        peer: Some("192.0.2.1".parse().unwrap()),
        rule: None,
        value: None,
        weight: 1,
        body: BODY.into(),
    }
}

/// Kills a writer after so long; the first and the last sequence number that it acknowledged.
fn kill_a_writer(folder: &Path, round: u64) -> Option<(u64, u64)> {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "writer", "--nocapture"])
        .env(FOLDER, folder);
    if (50..100).contains(&round) {
        command.env(STORE_IS_AWAY, "1");
    }
    let mut writer = command.stdout(Stdio::piped()).spawn().unwrap();
    let out = BufReader::new(writer.stdout.take().unwrap());
    let mut lines = out.lines();
    let first = lines.find(|line| line.as_ref().is_ok_and(|line| line.starts_with("synced ")));
    // Some microseconds to some tens of milliseconds, never the same.
    std::thread::sleep(Duration::from_micros(1237 * round * round % 49_999));
    writer.kill().unwrap();
    writer.wait().unwrap();
    // The last line may be torn: then the number is too small, and less is claimed by it.
    let lines = first.into_iter().chain(lines).map_while(Result::ok);
    let whole = lines.filter_map(|line| {
        let (first, last) = line.strip_prefix("synced ")?.split_once(' ')?;
        Some((first.parse().ok()?, last.parse().ok()?))
    });
    whole.max_by_key(|(_, last)| *last)
}

#[test]
fn no_acknowledged_event_is_lost_or_doubled() {
    let dir = tempfile::tempdir().unwrap();
    let acknowledged: Vec<(u64, u64)> = (0..KILLS)
        .map(|round| kill_a_writer(dir.path(), round).expect("the writer synced once"))
        .collect();
    let mut store = SqliteStore::at(dir.path());
    let mut spool = open(dir.path());
    spool.seal_all(now_us()).unwrap();
    while move_oldest(spool.sealed(), &mut store).unwrap().is_some() {}
    assert_eq!(spool.status().events, 0);

    let stored = store.query(&Query::between(0, i64::MAX)).unwrap();
    let sequences: BTreeSet<u64> = stored.iter().map(|record| record.sequence).collect();
    assert_eq!(sequences.len(), stored.len(), "some are there twice");
    for (first, last) in acknowledged {
        let lost = (first..=last).filter(|sequence| !sequences.contains(sequence));
        assert_eq!(lost.count(), 0, "of {first} to {last}");
    }
    let flows = stored
        .iter()
        .filter(|record| record.kind == Kind::Flow)
        .count();
    let prefix = "192.0.2.0/24".parse().unwrap();
    let history = store.history(prefix, Width::Hour, 0, i64::MAX).unwrap();
    let counted = history
        .iter()
        .filter(|((_, measure), _)| *measure == Measure::SrttUs);
    assert_eq!(
        counted.map(|(_, rollup)| rollup.n).sum::<u64>() as usize,
        flows
    );
    println!("{} events, {KILLS} kills", stored.len());
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes that write events to a spool and move them to a store, each killed (SIGKILL) at a random moment, some of them
//! while the store is away; and how many of the events that they acknowledged are lost, or there twice.
//!
//! A writer is the caller's own program, run again, which calls [`write_until_killed`]: it prints its first and its last
//! sequence number after each sync. Start at [`kill_writers`].

use anyhow::{Context, Result};
use fatpath_archive::store::{History, Measure, Query, Record, SqliteStore, Store, Width};
use fatpath_archive::{Bounds, Event, Kind, Origin, Spool, move_oldest};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::ops::{Range, RangeInclusive};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// So many writers, one after another.
pub const KILLS: u64 = 200;
/// While these are killed, the store is away.
const WITHOUT_STORE: Range<u64> = 50..100;

const FOLDER: &str = "FATPATH_KILLED_WRITER_FOLDER";
const STORE_IS_AWAY: &str = "FATPATH_KILLED_WRITER_STORE_IS_AWAY";
const BODY: &str = r#"{"goodput_mbps":8,"srtt_us":1000,"min_rtt_us":900,"segments_sent":9,"segments_retransmitted":1}"#;

/// What is in the store after all kills.
#[derive(Debug)]
pub struct Outcome {
    /// Of all kinds.
    pub events: usize,
    /// Acknowledged, and not there.
    pub lost: usize,
    /// There once more than they were written.
    pub doubled: usize,
    /// By how many the roll-ups' count of flows differs from the flows that are there.
    pub miscounted: usize,
}

/// Has writers run and kills them; `writer` gives the command of one.
pub fn kill_writers(writer: impl Fn() -> Result<Command>) -> Result<Outcome> {
    let folder = tempfile::tempdir()?;
    let kill = |round| kill_one(writer()?, folder.path(), round);
    let acknowledged = (0..KILLS).map(kill).collect::<Result<Vec<_>>>()?;
    let mut store = SqliteStore::at(folder.path());
    let mut spool = open(folder.path())?;
    spool.seal_all(now_us())?;
    while move_oldest(spool.sealed(), &mut store)?.is_some() {}
    let stored = store.query(&Query::between(0, i64::MAX))?;
    let prefix = "192.0.2.0/24".parse()?;
    let history = store.history(prefix, Width::Hour, 0, i64::MAX)?;
    Ok(outcome(&acknowledged, &stored, &history))
}

/// The sequence numbers that the writer acknowledged.
fn kill_one(mut writer: Command, folder: &Path, round: u64) -> Result<RangeInclusive<u64>> {
    writer.env(FOLDER, folder);
    if WITHOUT_STORE.contains(&round) {
        writer.env(STORE_IS_AWAY, "1");
    }
    let mut writer = writer.stdout(Stdio::piped()).spawn()?;
    let out = writer.stdout.take().context("its output")?;
    let mut lines = BufReader::new(out).lines();
    let first = lines.find(|line| line.as_ref().is_ok_and(|line| line.starts_with("synced ")));
    // Some microseconds to some tens of milliseconds, never the same.
    std::thread::sleep(Duration::from_micros(1237 * round * round % 49_999));
    writer.kill()?;
    writer.wait()?;
    // The last line may be torn: then the number is too small, and less is claimed by it.
    let lines = first.into_iter().chain(lines).map_while(Result::ok);
    let whole = lines.filter_map(|line| {
        let (first, last) = line.strip_prefix("synced ")?.split_once(' ')?;
        Some(first.parse().ok()?..=last.parse().ok()?)
    });
    let all = whole.max_by_key(|acknowledged| *acknowledged.end());
    all.context("the writer ended before its first sync")
}

fn outcome(acknowledged: &[RangeInclusive<u64>], stored: &[Record], history: &History) -> Outcome {
    let there: BTreeSet<u64> = stored.iter().map(|record| record.sequence).collect();
    let of_all = acknowledged.iter().cloned().flatten();
    let flows = stored.iter().filter(|record| record.kind == Kind::Flow);
    let of_flows = history
        .iter()
        .filter(|((_, measure), _)| *measure == Measure::SrttUs);
    let counted: u64 = of_flows.map(|(_, rollup)| rollup.n).sum();
    Outcome {
        events: stored.len(),
        lost: of_all.filter(|number| !there.contains(number)).count(),
        doubled: stored.len() - there.len(),
        miscounted: flows.count().abs_diff(counted as usize),
    }
}

/// What a writer does. Returns at once in a process that [`kill_writers`] did not start.
pub fn write_until_killed() -> Result<()> {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return Ok(());
    };
    let folder = Path::new(&folder);
    let store_is_away = std::env::var_os(STORE_IS_AWAY).is_some();
    let mut store = SqliteStore::at(folder);
    let mut spool = open(folder)?;
    let mut out = std::io::stdout();
    let mut first = None;
    loop {
        let mut last = 0;
        for kind in Kind::ALL.into_iter().cycle().take(20) {
            last = spool.append(kind, &event())?;
            first.get_or_insert(last);
        }
        spool.sync(now_us())?;
        writeln!(out, "synced {} {last}", first.unwrap_or(last))?;
        while !store_is_away && move_oldest(spool.sealed(), &mut store)?.is_some() {}
    }
}

fn open(folder: &Path) -> Result<Spool> {
    let origin = Origin {
        host: "here".into(),
        boot: "1".into(),
    };
    let bounds = Bounds {
        segment_bytes: 4 << 10,
        ..Bounds::of(64 << 20)
    };
    Ok(Spool::open(
        &folder.join("spool"),
        origin,
        bounds,
        now_us(),
    )?)
}

fn event() -> Event {
    Event {
        time_us: now_us(),
        name: "flow.end".into(),
        peer: Some([192, 0, 2, 1].into()),
        rule: None,
        value: None,
        weight: 1,
        body: BODY.into(),
    }
}

fn now_us() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| now.as_micros() as i64)
}

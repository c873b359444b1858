// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events a second through the spool into SQLite, each step durable, by two threads as in the daemon.

use super::{flow, origin};
use crate::alone::Alone;
use crate::cpu_time;
use crate::figure::{Better, Figure, Summary};
use crate::run::Run;
use anyhow::{Result, anyhow, ensure};
use fatpath_archive::store::SqliteStore;
use fatpath_archive::{Bounds, Kind, SealedSegments, Spool, move_oldest};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const SUSTAINED: Duration = Duration::from_secs(60);
const PACED: Duration = Duration::from_secs(30);
const PACED_PER_S: u64 = 5_000;
/// Appended between two looks at the clock.
const AT_ONCE: u64 = 50;
const SYNC_INTERVAL: Duration = Duration::from_secs(1);
const SPOOL_BYTES: u64 = 256 << 20;
const TICK: Duration = Duration::from_millis(2);
/// The mover of the daemon rests so long when nothing is there.
const MOVER_REST: Duration = Duration::from_millis(100);

/// In a minute.
pub const EVENTS_PER_S: Figure = Figure {
    name: "archive.events_per_s",
    what: "ends of flows a second through the spool into SQLite, durable, for a minute",
    unit: "events/s",
    better: Better::Higher,
    goal: Some(20_000.0),
    summary: Summary::Median,
    measure: |run| {
        let moved = moved(run, SUSTAINED, None)?;
        Ok(vec![moved.events as f64 / moved.elapsed.as_secs_f64()])
    },
};

/// Of all threads.
pub const CORE_SHARE: Figure = Figure {
    name: "archive.core_share",
    what: "share of a core for 5,000 ends of flows a second through the spool into SQLite",
    unit: "cores",
    better: Better::Lower,
    goal: Some(0.1),
    summary: Summary::Median,
    measure: |run| {
        let moved = moved(run, PACED, Some(PACED_PER_S))?;
        ensure!(
            moved.events >= PACED_PER_S * PACED.as_secs() * 9 / 10,
            "only {} events in {:?}",
            moved.events,
            moved.elapsed
        );
        Ok(vec![moved.cpu.as_secs_f64() / moved.elapsed.as_secs_f64()])
    },
};

struct Moved {
    events: u64,
    /// Until the last was in the store.
    elapsed: Duration,
    cpu: Duration,
}

/// Appends for so long, at a rate or as fast as the store takes them, and waits until all are stored.
fn moved(run: &Run, lasts: Duration, per_s: Option<u64>) -> Result<Moved> {
    let _alone = Alone::wait(run)?;
    let folder = tempfile::tempdir()?;
    let bounds = Bounds::of(SPOOL_BYTES);
    let mut spool = Spool::open(&folder.path().join("spool"), origin(), bounds, now_us())?;
    let (stored, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let (begun, cpu_before) = (Instant::now(), cpu_time::own());
    let appended = std::thread::scope(|scope| {
        let sealed = Arc::clone(spool.sealed());
        let (stored, is_over) = (&stored, &is_over);
        let mover = scope.spawn(move || move_all(folder.path(), &sealed, stored, is_over));
        let appended = append(run, &mut spool, lasts, per_s, stored);
        is_over.store(true, Ordering::Release);
        let moved = mover.join().map_err(|_| anyhow!("the mover panicked"))?;
        moved.and(appended)
    })?;
    let (events, elapsed) = (stored.into_inner(), begun.elapsed());
    ensure!(events == appended, "{events} of {appended} are stored");
    run.say(format!("  {events} events in {elapsed:.1?}"));
    Ok(Moved {
        events,
        elapsed,
        cpu: cpu_time::own() - cpu_before,
    })
}

/// How many were appended.
fn append(
    run: &Run,
    spool: &mut Spool,
    lasts: Duration,
    per_s: Option<u64>,
    stored: &AtomicU64,
) -> Result<u64> {
    let (begun, mut synced, mut n) = (Instant::now(), Instant::now(), 0);
    while begun.elapsed() < lasts {
        let due = per_s.map(|per_s| (begun.elapsed().as_secs_f64() * per_s as f64) as u64);
        // About half of the spool may wait, so that it gives up nothing.
        let may = due.unwrap_or(stored.load(Ordering::Acquire) + SPOOL_BYTES / 2 / 1_000);
        for _ in 0..AT_ONCE.min(may.saturating_sub(n)) {
            spool.append(Kind::Flow, &flow(n, now_us()))?;
            n += 1;
        }
        if n >= may {
            run.pause(TICK)?;
        }
        if synced.elapsed() >= SYNC_INTERVAL {
            synced = Instant::now();
            spool.sync(now_us())?;
        }
    }
    spool.seal_all(now_us())?;
    Ok(n)
}

fn move_all(
    folder: &Path,
    sealed: &Arc<SealedSegments>,
    stored: &AtomicU64,
    is_over: &AtomicBool,
) -> Result<()> {
    let mut store = SqliteStore::at(folder);
    loop {
        // Looked at first: what was sealed before it was set is found below.
        let was_over = is_over.load(Ordering::Acquire);
        match move_oldest(sealed, &mut store)? {
            Some(put) => drop(stored.fetch_add(put.stored, Ordering::AcqRel)),
            None if was_over => return Ok(()),
            None => std::thread::sleep(MOVER_REST),
        }
    }
}

fn now_us() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |now| now.as_micros() as i64)
}

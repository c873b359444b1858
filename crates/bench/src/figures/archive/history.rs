// SPDX-License-Identifier: MIT OR Apache-2.0
//! The history of one path of 30 days, as `fatpath archive path` asks for it, among ten million ends of flows.

use super::{PATHS, flow, origin};
use crate::alone::Alone;
use crate::figure::{Better, Figure, Summary};
use crate::run::Run;
use anyhow::{Result, ensure};
use fatpath_archive::store::{Batch, PathQuery, SqliteStore, Store, Width, path_history};
use fatpath_archive::{Event, Kind};
use std::time::Instant;

const DAYS: i64 = 30;
const EVENTS: u64 = 10_000_000;
const EVENTS_PER_BATCH: u64 = 20_000;
/// Of each path's flows one in so many has a finding: 200 of a path.
const FLOWS_PER_FINDING: u64 = 50;
const DECISIONS: u64 = 60;
const QUERIES: u64 = 200;
const DAY_US: i64 = 86_400_000_000;
/// 2026-10-01, 0:00.
const BEGIN_US: i64 = 1_790_812_800_000_000;

/// The 95th percentile of the paths that are asked for.
pub const QUERY_MS: Figure = Figure {
    name: "archive.query_ms.path",
    what: "history of one of 1,000 paths, 30 days, among 10 million flows in SQLite: 95th percentile",
    unit: "ms",
    better: Better::Lower,
    goal: Some(50.0),
    summary: Summary::Worst,
    measure,
};

fn measure(run: &Run) -> Result<Vec<f64>> {
    let _alone = Alone::wait(run)?;
    let folder = tempfile::tempdir()?;
    fill(run, &mut SqliteStore::at(folder.path()))?;
    let mut took_ms = Vec::new();
    decide(&mut SqliteStore::at(folder.path()))?;
    for n in 0..QUERIES {
        run.check()?;
        let begun = Instant::now();
        ask(&SqliteStore::at(folder.path()), n * 31 % u64::from(PATHS))?;
        took_ms.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    took_ms.sort_by(f64::total_cmp);
    let at = |share: f64| took_ms[(share * (took_ms.len() - 1) as f64) as usize];
    run.say(format!(
        "  median {:.1} ms, 95 % {:.1} ms",
        at(0.5),
        at(0.95)
    ));
    Ok(vec![at(0.95)])
}

fn fill(run: &Run, store: &mut SqliteStore) -> Result<()> {
    let step_us = DAYS * DAY_US / EVENTS as i64;
    let event = |n: u64| (n + 1, flow(n, BEGIN_US + n as i64 * step_us));
    for first in (0..EVENTS).step_by(EVENTS_PER_BATCH as usize) {
        run.check()?;
        let flows: Vec<_> = (first..first + EVENTS_PER_BATCH).map(event).collect();
        let findings = flows.iter().filter(|(n, _)| has_finding(*n));
        let findings = findings.map(|(n, flow)| (n + 2 * EVENTS, other("finding", flow)));
        put(store, Kind::Event, findings.collect())?;
        put(store, Kind::Flow, flows)?;
        if first % (EVENTS / 10) == 0 {
            run.say(format!("  {first} of {EVENTS} flows are stored"));
        }
    }
    Ok(())
}

/// Consecutive flows are of different paths.
fn has_finding(n: u64) -> bool {
    (n / u64::from(PATHS)).is_multiple_of(FLOWS_PER_FINDING)
}

fn decide(store: &mut SqliteStore) -> Result<()> {
    let step_us = DAYS * DAY_US / DECISIONS as i64;
    let decision = |n: u64| {
        let flow = flow(n, BEGIN_US + n as i64 * step_us);
        let decision = Event {
            peer: None,
            ..other("policy.applied", &flow)
        };
        (4 * EVENTS + n, decision)
    };
    put(
        store,
        Kind::Decision,
        (0..DECISIONS).map(decision).collect(),
    )
}

fn put(store: &mut SqliteStore, kind: Kind, events: Vec<(u64, Event)>) -> Result<()> {
    let origin = origin();
    store.put(&Batch {
        origin,
        kind,
        events,
    })?;
    Ok(())
}

/// Another event of the same time and path.
fn other(name: &str, flow: &Event) -> Event {
    Event {
        name: name.into(),
        body: "{}".into(),
        ..flow.clone()
    }
}

/// Its roll-ups by hour, and what is marked in them.
fn ask(store: &SqliteStore, path: u64) -> Result<()> {
    let prefix = format!("10.{}.{}.0/24", path / 256, path % 256).parse()?;
    let end_us = BEGIN_US + DAYS * DAY_US;
    let history = path_history(
        store,
        &PathQuery {
            prefix,
            width: Width::Hour,
            since_us: BEGIN_US,
            until_us: end_us,
            most_marks: 200,
        },
    )?;
    let hours = history.measured.len();
    let marks = history.marks.len();
    ensure!(
        hours > 700 && marks > 190 + DECISIONS as usize,
        "{hours} intervals, {marks} marks"
    );
    Ok(())
}

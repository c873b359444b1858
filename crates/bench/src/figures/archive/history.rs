// SPDX-License-Identifier: MIT OR Apache-2.0
//! The history of one path of 30 days, as `fatpath archive path` asks for it, among the ends of flows of a thousand paths.

use super::{PATHS, flow, origin};
use crate::alone::Alone;
use crate::cluster::{Cluster, PASSWORD};
use crate::figure::{Better, Figure, Summary};
use crate::run::Run;
use anyhow::{Error, Result, ensure};
use fatpath_archive::store::{
    Batch, Location, PathQuery, Retention, ServerAddress, SqliteStore, Store, Width, path_history,
};
use fatpath_archive::{Event, Kind};
use fatpath_clock::now_us;
use std::time::Instant;

const DAYS: i64 = 30;
const EVENTS_PER_BATCH: u64 = 20_000;
/// Of a path.
const FINDINGS: u64 = 200;
const DECISIONS: u64 = 60;
const QUERIES: u64 = 200;
const DAY_US: i64 = 86_400_000_000;
/// 2026-10-01, 0:00.
const BEGIN_US: i64 = 1_790_812_800_000_000;
/// Sequence numbers of flows are below.
const FIRST_FINDING: u64 = 1 << 40;
const FIRST_DECISION: u64 = 1 << 41;

/// The 95th percentile of the paths that are asked for.
pub const QUERY_MS: Figure = Figure {
    name: "archive.query_ms.path",
    what: "history of one of 1,000 paths, 30 days, among 10 million flows in SQLite: 95th percentile",
    unit: "ms",
    better: Better::Lower,
    goal: Some(50.0),
    summary: Summary::Worst,
    measure: |run| {
        let _alone = Alone::wait(run)?;
        let folder = tempfile::tempdir()?;
        fill(run, &mut SqliteStore::at(folder.path()), 10_000_000)?;
        ask_all(run, &Location::Folder(folder.path().to_owned()))
    },
};

/// What a server has that nobody has set up otherwise.
const BUFFERS: &str = "shared_buffers=128MB";

const RETENTION: Retention = Retention {
    days: 400,
    total_bytes: 0,
};

/// The same of a server.
pub const QUERY_MS_POSTGRES: Figure = Figure {
    name: "archive.query_ms.path_postgres",
    what: "the same in PostgreSQL",
    measure: |run| {
        let _alone = Alone::wait(run)?;
        let cluster = Cluster::start_with(&[BUFFERS])?;
        let password = cluster.password_file(PASSWORD)?;
        let address = ServerAddress::new(&cluster.url(), Some(&password)).map_err(Error::msg)?;
        let location = Location::Server(address);
        let mut store = location.open()?;
        // As the daemon does: roll-ups by minute are kept for a week, and those of a time before are not written.
        store.retain(RETENTION, now_us())?;
        fill(run, &mut *store, 10_000_000)?;
        // As autovacuum does while days go by: until then indexes are chosen by guess.
        cluster.psql("site", "ANALYZE")?;
        ask_all(run, &location)
    },
    ..QUERY_MS
};

/// Each question opens the store, as the command does.
fn ask_all(run: &Run, location: &Location) -> Result<Vec<f64>> {
    let mut took_ms = Vec::new();
    for n in 0..QUERIES {
        run.check()?;
        let begun = Instant::now();
        ask(&*location.open()?, n * 31 % u64::from(PATHS))?;
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

/// With so many flows, and with what is marked beside them.
fn fill(run: &Run, store: &mut dyn Store, flows: u64) -> Result<()> {
    let step_us = DAYS * DAY_US / flows as i64;
    let event = |n: u64| (n + 1, flow(n, BEGIN_US + n as i64 * step_us));
    // Consecutive flows are of different paths.
    let flows_per_finding = flows / u64::from(PATHS) / FINDINGS;
    let has_finding = |n: u64| (n / u64::from(PATHS)).is_multiple_of(flows_per_finding);
    for first in (0..flows).step_by(EVENTS_PER_BATCH as usize) {
        run.check()?;
        let ends: Vec<_> = (first..first + EVENTS_PER_BATCH).map(event).collect();
        let findings = ends.iter().filter(|(n, _)| has_finding(*n));
        let findings = findings.map(|(n, flow)| (n + FIRST_FINDING, other("finding", flow)));
        put(store, Kind::Event, findings.collect())?;
        put(store, Kind::Flow, ends)?;
        if first % (flows / 10) == 0 {
            run.say(format!("  {first} of {flows} flows are stored"));
        }
    }
    decide(store)
}

fn decide(store: &mut dyn Store) -> Result<()> {
    let step_us = DAYS * DAY_US / DECISIONS as i64;
    let decision = |n: u64| {
        let flow = flow(n, BEGIN_US + n as i64 * step_us);
        let decision = Event {
            peer: None,
            ..other("policy.applied", &flow)
        };
        (FIRST_DECISION + n, decision)
    };
    put(
        store,
        Kind::Decision,
        (0..DECISIONS).map(decision).collect(),
    )
}

fn put(store: &mut dyn Store, kind: Kind, events: Vec<(u64, Event)>) -> Result<()> {
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
fn ask(store: &dyn Store, path: u64) -> Result<()> {
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

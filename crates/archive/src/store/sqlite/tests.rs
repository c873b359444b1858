// SPDX-License-Identifier: MIT OR Apache-2.0
use super::super::{Measure, Rollup};
use super::*;
use crate::Origin;

/// 2026-11-23T00:00:00Z
const TODAY_US: i64 = 1_795_392_000_000_000;

const SECOND_US: i64 = 1_000_000;

fn flow(time_us: i64, peer: &str, goodput_mbps: f64) -> Event {
    Event {
        time_us,
        name: "flow.end".into(),
        peer: Some(peer.parse().unwrap()),
        rule: Some("far".into()),
        value: Some(1e6),
        weight: 1,
        body: format!(
            r#"{{"remote":"{peer}:443","goodput_mbps":{goodput_mbps},"srtt_us":1000,"min_rtt_us":null,"segments_sent":10,"segments_retransmitted":0}}"#
        ),
    }
}

fn batch(kind: Kind, events: Vec<(u64, Event)>) -> Batch {
    let origin = Origin {
        host: "here".into(),
        boot: "1".into(),
    };
    Batch {
        origin,
        kind,
        events,
    }
}

/// A flow each day for `days` days, the last one today.
fn filled(folder: &Path, days: i64) -> SqliteStore {
    let mut store = SqliteStore::at(folder);
    for day in 0..days {
        let time_us = TODAY_US - (days - 1 - day) * DAY_US + SECOND_US;
        let events = vec![(day as u64, flow(time_us, "192.0.2.1", 8.0))];
        store.put(&batch(Kind::Flow, events)).unwrap();
    }
    store
}

fn hours(store: &SqliteStore) -> History {
    let prefix = "192.0.2.0/24".parse().unwrap();
    let until_us = TODAY_US + DAY_US;
    store.history(prefix, Width::Hour, 0, until_us).unwrap()
}

fn all(store: &SqliteStore) -> Vec<Record> {
    store.query(&Query::between(0, TODAY_US + DAY_US)).unwrap()
}

#[test]
fn a_batch_that_is_put_twice_is_there_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = SqliteStore::at(dir.path());
    let events = vec![
        (1, flow(TODAY_US, "192.0.2.1", 8.0)),
        (2, flow(TODAY_US - SECOND_US, "192.0.2.2", 2.0)),
    ];
    let batch = batch(Kind::Flow, events.clone());
    let put = |stored, known| Put {
        stored,
        known,
        refused: 0,
    };
    assert_eq!(store.put(&batch).unwrap(), put(2, 0));
    let before = hours(&store);
    assert_eq!(store.put(&batch).unwrap(), put(0, 2));
    assert_eq!(hours(&store), before);
    let read: Vec<(u64, Event)> = all(&store)
        .into_iter()
        .map(|r| (r.sequence, r.event))
        .collect();
    assert_eq!(read, [events[1].clone(), events[0].clone()]);
}

#[test]
fn flows_are_rolled_up_by_path_and_weight() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = SqliteStore::at(dir.path());
    let mut small = flow(TODAY_US, "192.0.2.1", 2.0);
    small.weight = 3;
    let events = vec![
        (1, small),
        (2, flow(TODAY_US + SECOND_US, "192.0.2.200", 32.0)),
        (3, flow(TODAY_US, "198.51.100.1", 1.0)),
    ];
    store.put(&batch(Kind::Flow, events)).unwrap();
    let history = hours(&store);
    let goodput: &Rollup = &history[&(TODAY_US / SECOND_US, Measure::GoodputBps)];
    assert_eq!(goodput.n, 4);
    let mean = (goodput.sum_ln / 4.0).exp();
    assert!(
        (mean / 4e6 - 1.0).abs() < 1e-9,
        "the geometric mean of 2, 2, 2 and 32: {mean}"
    );
    let median = goodput.histogram.quantile(0.5).unwrap();
    assert!((median / 2e6 - 1.0).abs() < 0.03, "{median}");
    let retransmitted = &history[&(TODAY_US / SECOND_US, Measure::RetransmittedShare)];
    assert_eq!(retransmitted.histogram.quantile(0.9), Some(0.0));
}

#[test]
fn a_query_gives_what_matches_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = filled(dir.path(), 3);
    let finding = Event {
        peer: Some("2001:db8::7".parse().unwrap()),
        rule: Some("x' OR 1=1 --".into()),
        ..flow(TODAY_US + 2 * SECOND_US, "192.0.2.1", 1.0)
    };
    store.put(&batch(Kind::Event, vec![(77, finding)])).unwrap();
    let asked = |change: &dyn Fn(&mut Query)| {
        let mut query = Query::between(0, TODAY_US + DAY_US);
        change(&mut query);
        let found = store.query(&query).unwrap();
        found
            .iter()
            .map(|record| record.sequence)
            .collect::<Vec<_>>()
    };
    assert_eq!(asked(&|_| {}), [0, 1, 2, 77]);
    assert_eq!(asked(&|q| q.limit = 2), [2, 77]);
    assert_eq!(asked(&|q| q.since_us = TODAY_US), [2, 77]);
    assert_eq!(asked(&|q| q.until_us = TODAY_US), [0, 1]);
    assert_eq!(asked(&|q| q.kinds = vec![Kind::Event, Kind::Test]), [77]);
    assert_eq!(
        asked(&|q| q.prefix = Some("2001:db8::/32".parse().unwrap())),
        [77]
    );
    assert_eq!(
        asked(&|q| q.prefix = Some("192.0.2.0/30".parse().unwrap())),
        [0, 1, 2]
    );
    assert_eq!(asked(&|q| q.rule = Some("x' OR 1=1 --".into())), [77]);
    assert_eq!(asked(&|q| q.rule = Some("' OR '1'='1".into())), [0; 0]);
    assert_eq!(asked(&|q| q.host = Some("there".into())), [0; 0]);
}

#[test]
fn a_day_goes_by_age_and_its_rollups_stay() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = filled(dir.path(), 5);
    let before = hours(&store);
    let retention = Retention {
        days: 2,
        total_bytes: u64::MAX,
    };
    store.retain(retention, TODAY_US + SECOND_US).unwrap();
    assert_eq!(store.status().unwrap().days, ["2026-11-22", "2026-11-23"]);
    assert_eq!(all(&store).len(), 2);
    assert_eq!(hours(&store), before);
    // An event of a day that is gone makes the day anew; its roll-ups are added to those that stayed.
    let late = flow(TODAY_US - 4 * DAY_US, "192.0.2.9", 8.0);
    store.put(&batch(Kind::Flow, vec![(9, late)])).unwrap();
    store.retain(retention, TODAY_US + SECOND_US).unwrap();
    let n: u64 = hours(&store).values().map(|rollup| rollup.n).sum();
    assert_eq!(n, before.values().map(|rollup| rollup.n).sum::<u64>() + 3);
}

#[test]
fn old_rollups_go() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = filled(dir.path(), 2);
    let retention = Retention {
        days: 1,
        total_bytes: u64::MAX,
    };
    let measured = |store: &SqliteStore, width| {
        let prefix = "192.0.2.0/24".parse().unwrap();
        store
            .history(prefix, width, 0, TODAY_US + 500 * DAY_US)
            .unwrap()
            .len()
    };
    for (after_days, minutes, hours) in [(1, 6, 6), (9, 0, 6), (410, 0, 0)] {
        store
            .retain(retention, TODAY_US + after_days * DAY_US)
            .unwrap();
        let left = (
            measured(&store, Width::Minute),
            measured(&store, Width::Hour),
        );
        assert_eq!(left, (minutes, hours), "after {after_days} days");
    }
}

#[test]
fn a_crash_while_a_day_goes_doubles_no_rollup() {
    let dir = tempfile::tempdir().unwrap();
    let store = filled(dir.path(), 2);
    let before = hours(&store);
    let day = store.days().unwrap().remove(0);
    let from = Database::read(&store.file(&day)).unwrap().unwrap();
    store.rollups().unwrap().take_rollups(&day, &from).unwrap();
    drop((from, store));
    // The crash is here: the day's database is there still.
    let mut store = SqliteStore::at(dir.path());
    let retention = Retention {
        days: 9,
        total_bytes: u64::MAX,
    };
    store.retain(retention, TODAY_US).unwrap();
    assert_eq!(store.status().unwrap().days, ["2026-11-23"]);
    assert_eq!(hours(&store), before);
}

#[test]
fn a_full_store_forgets_days_and_then_takes_only_what_matters() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = filled(dir.path(), 3);
    let retention = Retention {
        days: 99,
        total_bytes: 1,
    };
    store.retain(retention, TODAY_US + SECOND_US).unwrap();
    let status = store.status().unwrap();
    assert_eq!(
        (status.days, status.is_full),
        (vec!["2026-11-23".to_owned()], true)
    );
    let event = || vec![(50, flow(TODAY_US, "192.0.2.1", 1.0))];
    assert_eq!(store.put(&batch(Kind::Flow, event())).unwrap().refused, 1);
    assert_eq!(
        store.put(&batch(Kind::Decision, event())).unwrap().stored,
        1
    );
}

#[test]
fn a_database_of_another_version_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    drop(filled(dir.path(), 1));
    let file = dir.path().join("2026-11-23.db");
    let connection = rusqlite::Connection::open(&file).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    let mut store = SqliteStore::at(dir.path());
    let put = store.put(&batch(
        Kind::Flow,
        vec![(5, flow(TODAY_US, "192.0.2.1", 1.0))],
    ));
    let error = put.unwrap_err().to_string();
    assert!(
        error.contains("version 99") && error.contains("2026-11-23.db"),
        "{error}"
    );
}

#[test]
fn the_views_have_what_they_promise() {
    let dir = tempfile::tempdir().unwrap();
    drop(filled(dir.path(), 1));
    let connection = rusqlite::Connection::open(dir.path().join("2026-11-23.db")).unwrap();
    let sql = "SELECT time || ' ' || host || ' ' || remote || ' ' || goodput_mbps FROM flow";
    let flow: String = connection.query_row(sql, [], |row| row.get(0)).unwrap();
    assert_eq!(flow, "2026-11-23T00:00:01.000Z here 192.0.2.1:443 8");
    for (view, count) in [
        ("event", 1),
        ("flow", 1),
        ("test", 0),
        ("path", 0),
        ("decision", 0),
    ] {
        let sql = format!("SELECT count(*) FROM {view}");
        let found: i64 = connection.query_row(&sql, [], |row| row.get(0)).unwrap();
        assert_eq!(found, count, "{view}");
    }
}

#[test]
fn any_time_has_a_day() {
    let days = [i64::MIN, 0, TODAY_US, TODAY_US + DAY_US - 1, i64::MAX].map(day_of);
    assert_eq!(
        days,
        [
            "1970-01-01",
            "1970-01-01",
            "2026-11-23",
            "2026-11-23",
            "9999-12-31"
        ]
    );
}

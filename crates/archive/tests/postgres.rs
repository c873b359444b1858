// SPDX-License-Identifier: MIT OR Apache-2.0
//! The store in PostgreSQL, with servers that the tests start: it answers as the one in SQLite does, and survives what
//! can happen to a server.

#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

#[path = "postgres/cost.rs"]
mod cost;
#[path = "postgres/grafana.rs"]
mod grafana;
#[path = "postgres/versions.rs"]
mod versions;

use fatpath_archive::store::{
    Batch, History, Measure, PostgresStore, Query, Record, Retention, ServerAddress, SqliteStore,
    Store, Width,
};
use fatpath_archive::{Bounds, Event, Kind, Origin, Spool, move_oldest};
use fatpath_harness::cluster::{Cluster, PASSWORD};
use std::collections::BTreeSet;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// 2026-11-23T00:00:00Z
const TODAY_US: i64 = 1_795_392_000_000_000;
const DAY_US: i64 = 86_400_000_000;
const SECOND_US: i64 = 1_000_000;
/// Longer than what the server gives up after: it says why.
const DEADLINE: Duration = Duration::from_secs(60);
/// For what comes by itself.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// The server of the tests that leave it alone; each has a database of its own.
fn shared() -> Option<Arc<Cluster>> {
    static SHARED: Mutex<Weak<Cluster>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap();
    if let Some(cluster) = shared.upgrade() {
        return Some(cluster);
    }
    let cluster = Arc::new(Cluster::for_test()?);
    *shared = Arc::downgrade(&cluster);
    Some(cluster)
}

/// An empty database.
fn empty(cluster: &Cluster, name: &str) -> PostgresStore {
    let create = format!("CREATE DATABASE {name}");
    cluster.psql("postgres", &create).unwrap();
    store(cluster, &cluster.url_of(name))
}

fn store(cluster: &Cluster, url: &str) -> PostgresStore {
    let file = cluster.password_file(PASSWORD).unwrap();
    PostgresStore::at(ServerAddress::new(url, Some(&file)).unwrap(), DEADLINE).unwrap()
}

fn event(name: &str, time_us: i64, peer: Option<&str>, body: &str) -> Event {
    Event {
        time_us,
        name: name.into(),
        peer: peer.map(|peer| peer.parse().unwrap()),
        rule: peer.map(|_| "far".into()),
        value: Some(1e6),
        weight: 1,
        body: body.into(),
    }
}

fn flow(time_us: i64, peer: &str, goodput_mbps: f64) -> Event {
    let body = format!(
        r#"{{"remote":"{peer}:443","goodput_mbps":{goodput_mbps},"srtt_us":1000,"min_rtt_us":null,"segments_sent":10,"segments_retransmitted":1}}"#
    );
    event("flow.end", time_us, Some(peer), &body)
}

fn batch(host: &str, kind: Kind, first: u64, events: Vec<Event>) -> Batch {
    Batch {
        origin: Origin {
            host: host.into(),
            boot: "1".into(),
        },
        kind,
        events: (first..).zip(events).collect(),
    }
}

/// Flows of three days and two hosts, and some of every other kind.
fn batches() -> Vec<Batch> {
    let peers = [
        "192.0.2.1",
        "192.0.2.200",
        "198.51.100.7",
        "2001:db8::1",
        "::ffff:192.0.2.9",
    ];
    let mut batches = Vec::new();
    for (host, first) in [("a", 0), ("b", 1000)] {
        let flows = (0..90).map(|number| {
            let peer = peers[number as usize % peers.len()];
            let time_us = TODAY_US - (number % 3) * DAY_US + (number * 377 + first) * SECOND_US;
            flow(time_us, peer, 1.0 + number as f64)
        });
        batches.push(batch(host, Kind::Flow, 0, flows.collect()));
        for (kind, number) in Kind::ALL.into_iter().zip(1..) {
            let later_us = TODAY_US + (first + number) * SECOND_US;
            let all = vec![
                event("of a path", later_us, Some("192.0.2.77"), r#"{"x":1}"#),
                event("of none", later_us - DAY_US, None, "{}"),
            ];
            batches.push(batch(host, kind, 500 + 10 * number as u64, all));
        }
    }
    let far = vec![
        event("of a wrong clock", i64::MAX - 1, None, "{}"),
        event("before", -5, None, "{}"),
    ];
    batches.push(batch("c", Kind::Event, 0, far));
    batches
}

fn questions() -> Vec<Query> {
    let all = Query::between(i64::MIN, i64::MAX);
    let with_prefix = |prefix: &str| Query {
        prefix: Some(prefix.parse().unwrap()),
        ..all.clone()
    };
    vec![
        all.clone(),
        Query {
            limit: 0,
            ..all.clone()
        },
        Query {
            limit: 70,
            kinds: vec![Kind::Flow],
            ..all.clone()
        },
        Query {
            host: Some("b".into()),
            ..all.clone()
        },
        Query {
            rule: Some("far".into()),
            kinds: vec![Kind::Test, Kind::Decision],
            ..all.clone()
        },
        Query {
            kinds: vec![Kind::Event, Kind::Path],
            ..with_prefix("192.0.2.0/24")
        },
        with_prefix("192.0.2.0/24"),
        with_prefix("192.0.2.9/32"),
        with_prefix("128.0.0.0/1"),
        with_prefix("2001:db8::/32"),
        Query::between(TODAY_US - DAY_US, TODAY_US),
    ]
}

/// Those of one time are in no order.
fn sorted(mut records: Vec<Record>) -> Vec<String> {
    records.sort_by_key(|r| (r.event.time_us, r.origin.host.clone(), r.sequence));
    records.iter().map(|record| format!("{record:?}")).collect()
}

/// Sums to nine digits: they are added in another order.
fn rounded(history: &History) -> Vec<String> {
    let rounded = history.iter().map(|(place, rollup)| {
        let histogram = &rollup.histogram;
        format!(
            "{place:?} {} {:.9} {:.9} {histogram:?}",
            rollup.n, rollup.sum_ln, rollup.sum_ln2
        )
    });
    rounded.collect()
}

fn until(what: &str, mut is_there: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_there() {
        assert!(begun.elapsed() < LONGEST_WAIT, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_server_answers_as_sqlite_does() {
    let Some(cluster) = shared() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut sqlite = SqliteStore::at(folder.path());
    let mut server = empty(&cluster, "same");
    assert_eq!(
        server.query(&questions()[0]).unwrap(),
        vec![],
        "nothing is there yet"
    );
    for batch in batches() {
        assert_eq!(server.put(&batch).unwrap(), sqlite.put(&batch).unwrap());
        let again = server.put(&batch).unwrap();
        assert_eq!((again.stored, again.known), (0, batch.events.len() as u64));
    }
    for question in questions() {
        let (ours, theirs) = (
            server.query(&question).unwrap(),
            sqlite.query(&question).unwrap(),
        );
        assert_eq!(sorted(ours), sorted(theirs), "{question:?}");
    }
    for prefix in [
        "192.0.2.0/24",
        "192.0.2.1/32",
        "192.0.0.0/8",
        "2001:db8::/48",
    ] {
        for width in Width::ALL {
            let prefix = prefix.parse().unwrap();
            let history = |store: &dyn Store| {
                rounded(
                    &store
                        .history(prefix, width, TODAY_US - DAY_US, TODAY_US + DAY_US)
                        .unwrap(),
                )
            };
            assert!(!history(&server).is_empty());
            assert_eq!(history(&server), history(&sqlite), "{prefix} {width:?}");
        }
    }
    assert_eq!(
        server.status().unwrap().days,
        ["2026-11-21", "2026-11-22", "2026-11-23"]
    );
    assert!(server.status().unwrap().bytes > 100_000);
}

#[test]
fn the_views_have_the_columns_of_sqlite() {
    let Some(cluster) = shared() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut server = empty(&cluster, "views");
    for batch in batches() {
        server.put(&batch).unwrap();
        SqliteStore::at(folder.path()).put(&batch).unwrap();
    }
    let day = rusqlite::Connection::open(folder.path().join("2026-11-23.db")).unwrap();
    for view in ["event", "flow", "test", "path", "decision"] {
        let statement = day.prepare(&format!("SELECT * FROM {view}")).unwrap();
        let columns = statement.column_names().join(",");
        let theirs = cluster.psql(
            "views",
            &format!(
                "SELECT string_agg(attname, ',' ORDER BY attnum) FROM pg_attribute \
             WHERE attrelid = 'fatpath.{view}'::regclass AND attnum > 0"
            ),
        );
        assert_eq!(theirs.unwrap(), columns, "{view}");
        let count = format!(
            "SELECT count(*) FROM fatpath.{view} WHERE time_us >= {TODAY_US} AND time_us < {}",
            TODAY_US + DAY_US
        );
        let rows: i64 = day
            .query_row(&format!("SELECT count(*) FROM {view}"), [], |row| {
                row.get(0)
            })
            .unwrap();
        // A clock that is far off is of the last day there, and of no day here.
        assert_eq!(
            cluster.psql("views", &count).unwrap(),
            rows.to_string(),
            "{view}"
        );
    }
    let flow = cluster.psql(
        "views",
        "SELECT max(goodput_mbps), min(time) FROM fatpath.flow WHERE peer <<= '192.0.2.1'",
    );
    assert_eq!(flow.unwrap(), "86|2026-11-21 00:31:25+00");
}

#[test]
fn what_no_server_can_keep_holds_nothing_up() {
    let Some(cluster) = shared() else { return };
    let mut server = empty(&cluster, "hostile");
    let body = r#"{"law":"a\u0000b'); DROP TABLE record; --"}"#;
    let mut hostile = event("a\0b", TODAY_US, None, body);
    hostile.rule = Some("'; DROP SCHEMA fatpath CASCADE; --".into());
    let put = server
        .put(&batch("h\0", Kind::Flow, u64::MAX - 1, vec![hostile]))
        .unwrap();
    assert_eq!(put.stored, 1);
    let found = server.query(&Query::between(0, i64::MAX)).unwrap();
    assert_eq!(
        (found[0].sequence, found[0].event.name.as_str()),
        (u64::MAX - 1, "a\u{fffd}b")
    );
    let law = cluster.psql("hostile", "SELECT law FROM fatpath.flow");
    assert_eq!(law.unwrap(), "a\u{fffd}b'); DROP TABLE record; --");
}

#[test]
fn hosts_write_at_the_same_time() {
    let Some(cluster) = shared() else { return };
    drop(empty(&cluster, "many"));
    let write = |cluster: &Cluster, host: usize| {
        let mut server = store(cluster, &cluster.url_of("many"));
        for round in 0..5 {
            let times = (0..40).map(|n| TODAY_US + (n % 4) * DAY_US + n);
            let flows = times
                .map(|time_us| flow(time_us, "192.0.2.1", 8.0))
                .collect();
            let host = format!("host{}", host / 2);
            // The first of each two writes what the other one does.
            server
                .put(&batch(&host, Kind::Flow, round * 40, flows))
                .unwrap();
        }
    };
    std::thread::scope(|scope| {
        for host in 0..6 {
            let cluster = &*cluster;
            scope.spawn(move || write(cluster, host));
        }
    });
    let server = store(&cluster, &cluster.url_of("many"));
    assert_eq!(
        server.query(&Query::between(0, i64::MAX)).unwrap().len(),
        3 * 200
    );
    assert_eq!(flows_counted(&server), 3 * 200);
}

/// By the roll-ups.
fn flows_counted(store: &dyn Store) -> u64 {
    flows_counted_by(store, Width::Hour)
}

fn flows_counted_by(store: &dyn Store, width: Width) -> u64 {
    let prefix = "192.0.2.0/24".parse().unwrap();
    let history = store.history(prefix, width, 0, i64::MAX).unwrap();
    let of_one = history
        .iter()
        .filter(|((_, measure), _)| *measure == Measure::GoodputBps);
    of_one.map(|(_, rollup)| rollup.n).sum()
}

/// 2019-11-23T00:00:00Z: what is asked of the store then is not later than the server's clock.
const PAST_US: i64 = TODAY_US - 2557 * DAY_US;

fn kept(days: u32) -> Retention {
    Retention {
        days,
        total_bytes: 0,
    }
}

/// All hosts had the time to tell for how long they want events kept.
const ALL_TOLD: &str = "UPDATE fatpath.retention SET told_at = now() - interval '2 days'";

/// A store with one flow of each of the last days of a time.
fn with_flows(cluster: &Cluster, name: &str, now_us: i64, days: i64) -> PostgresStore {
    let mut server = empty(cluster, name);
    for day in 0..days {
        let flows = vec![flow(now_us - day * DAY_US, "192.0.2.1", 8.0)];
        server
            .put(&batch("a", Kind::Flow, day as u64, flows))
            .unwrap();
    }
    server
}

#[test]
fn a_day_goes_when_no_host_wants_it() {
    let Some(cluster) = shared() else { return };
    let mut server = with_flows(&cluster, "old", PAST_US, 4);
    let tests = (0..5).map(|day| event("ping", PAST_US - day * DAY_US, None, "{}"));
    let before = std::iter::once(event("of a wrong clock", -5, None, "{}"));
    let tests = before.chain(tests).collect();
    server.put(&batch("a", Kind::Test, 100, tests)).unwrap();
    let sql = |sql: &str| cluster.psql("old", sql).unwrap();
    server.retain(kept(2), PAST_US).unwrap();
    assert_eq!(
        server.status().unwrap().days.len(),
        5,
        "others may not have told yet"
    );
    sql(ALL_TOLD);
    server.retain(kept(2), PAST_US).unwrap();
    assert_eq!(server.status().unwrap().days, ["2019-11-22", "2019-11-23"]);
    let left = server.query(&Query::between(i64::MIN, i64::MAX)).unwrap();
    assert_eq!(left.len(), 2 + 2 + 1, "{left:?}");
    assert_eq!(flows_counted(&server), 4, "the roll-ups by hour stay");
    sql("INSERT INTO fatpath.retention (host, days) VALUES ('another', 30)");
    sql(ALL_TOLD);
    server.retain(kept(1), PAST_US).unwrap();
    assert_eq!(
        server.status().unwrap().days.len(),
        2,
        "another host wants 30 days"
    );
    server.retain(kept(1), PAST_US + 401 * DAY_US).unwrap();
    assert_eq!(
        (server.status().unwrap().days.len(), flows_counted(&server)),
        (0, 0)
    );
    // A connection from before knows days that are gone: it fails once, and makes them again.
    let mut other = store(&cluster, &cluster.url_of("old"));
    let late = |number| {
        batch(
            "b",
            Kind::Flow,
            number,
            vec![flow(TODAY_US, "192.0.2.1", 8.0)],
        )
    };
    other.put(&late(0)).unwrap();
    cluster
        .psql("old", "DROP TABLE fatpath.record_20261123")
        .unwrap();
    assert!(other.put(&late(1)).is_err());
    assert_eq!(other.put(&late(1)).unwrap().stored, 1);
}

#[test]
fn roll_ups_that_were_removed_are_not_written_again() {
    let Some(cluster) = shared() else { return };
    let mut server = empty(&cluster, "removed");
    let mut counted = |number, days: i64| {
        let flows = vec![flow(PAST_US - days * DAY_US, "192.0.2.1", 8.0)];
        let batch = batch("a", Kind::Flow, number, flows);
        assert_eq!(server.put(&batch).unwrap().stored, 1);
        server.retain(kept(900), PAST_US).unwrap();
        Width::ALL.map(|width| flows_counted_by(&server, width))
    };
    assert_eq!(counted(0, 10), [0, 1]);
    assert_eq!(counted(1, 3), [1, 2]);
    // What would be removed at once.
    cluster
        .psql(
            "removed",
            "CREATE RULE kept AS ON DELETE TO fatpath.rollup DO INSTEAD NOTHING",
        )
        .unwrap();
    assert_eq!(counted(2, 10), [1, 3]);
    assert_eq!(counted(3, 500), [1, 3]);
    assert_eq!(counted(4, 3), [2, 4]);
}

#[test]
fn a_host_whose_clock_is_ahead_removes_nothing() {
    let Some(cluster) = shared() else { return };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let now_us = now.as_micros() as i64;
    let mut server = with_flows(&cluster, "ahead", now_us, 2);
    server.retain(kept(30), now_us).unwrap();
    cluster.psql("ahead", ALL_TOLD).unwrap();
    server.retain(kept(30), now_us + 1000 * DAY_US).unwrap();
    assert_eq!(
        (server.status().unwrap().days.len(), flows_counted(&server)),
        (2, 2)
    );
}

#[test]
fn a_day_that_somebody_reads_goes_later_and_holds_nobody_up() {
    let Some(cluster) = shared() else { return };
    let mut server = with_flows(&cluster, "read", PAST_US, 2);
    server.retain(kept(2), PAST_US).unwrap();
    cluster.psql("read", ALL_TOLD).unwrap();
    let reading = "SELECT 1 FROM fatpath.record LIMIT 1";
    let mut reader = hold(&cluster, "read", reading);
    let begun = Instant::now();
    server.retain(kept(1), PAST_US).unwrap();
    assert!(
        begun.elapsed() < Duration::from_secs(8),
        "less than the server's lock_timeout"
    );
    assert_eq!(server.status().unwrap().days.len(), 2);
    reader.end(&cluster);
    let mut changer = hold(
        &cluster,
        "read",
        "SELECT pg_advisory_xact_lock(28825340302586984)",
    );
    server.retain(kept(1), PAST_US).unwrap();
    assert_eq!(server.status().unwrap().days.len(), 2);
    changer.end(&cluster);
    until("the day to go", || {
        server.retain(kept(1), PAST_US).unwrap();
        server.status().unwrap().days == ["2019-11-23"]
    });
}

/// A transaction that holds its locks.
struct Holder {
    psql: Child,
    database: &'static str,
}

fn hold(cluster: &Cluster, database: &'static str, sql: &str) -> Holder {
    let mut psql = cluster.session(database);
    psql.args(["-c", "BEGIN", "-c", sql, "-c", "SELECT pg_sleep(600)"]);
    let psql = psql.stdout(Stdio::null()).spawn().unwrap();
    // It sleeps when it has its locks.
    let sleeping = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%pg_sleep(600)' AND pid <> pg_backend_pid()";
    until("its locks", || {
        cluster.psql(database, sleeping).unwrap() != "0"
    });
    Holder { psql, database }
}

impl Holder {
    fn end(&mut self, cluster: &Cluster) {
        self.psql.kill().unwrap();
        self.psql.wait().unwrap();
        let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%pg_sleep(600)' AND pid <> pg_backend_pid()";
        cluster.psql(self.database, end).unwrap();
    }
}

#[test]
fn what_is_wrong_is_said_without_the_password() {
    let Some(cluster) = shared() else { return };
    let said = |url: &str, password: &str| {
        let file = cluster.password_file(password).unwrap();
        let address = ServerAddress::new(url, Some(&file)).unwrap();
        let mut store = PostgresStore::at(address, DEADLINE).unwrap();
        let put = store.put(&batch("a", Kind::Test, 0, vec![])).unwrap_err();
        format!("{put} {put:?}")
    };
    let wrong = said(&cluster.url(), "a wrong password");
    assert!(
        wrong.contains("password authentication failed for user \"fatpath\""),
        "{wrong}"
    );
    assert!(!wrong.contains("a wrong password"), "{wrong}");
    let missing = said(&cluster.url_of("nowhere"), PASSWORD);
    assert!(
        missing.contains("database \"nowhere\" does not exist"),
        "{missing}"
    );
    let absent = said("postgres://fatpath@127.0.0.1:1/site", PASSWORD);
    assert!(
        absent.contains("127.0.0.1/site: error connecting to server"),
        "{absent}"
    );
    let unencrypted = said(&format!("{}?sslmode=require", cluster.url()), PASSWORD);
    assert!(unencrypted.contains("TLS"), "{unencrypted}");
}

#[test]
fn a_slow_server_is_left_and_asked_again() {
    let Some(cluster) = shared() else { return };
    drop(empty(&cluster, "slow"));
    let url = format!(
        "{}?options=-c%20lock_timeout%3D200ms",
        cluster.url_of("slow")
    );
    let mut server = store(&cluster, &url);
    let one = |number| {
        batch(
            "a",
            Kind::Flow,
            number,
            vec![flow(TODAY_US, "192.0.2.1", 8.0)],
        )
    };
    server.put(&one(0)).unwrap();
    let mut holder = hold(&cluster, "slow", "LOCK fatpath.record");
    let late = server.put(&one(1)).unwrap_err().to_string();
    assert!(late.contains("lock timeout"), "{late}");
    holder.end(&cluster);
    until("the lock's end", || server.put(&one(1)).is_ok());
    assert_eq!(
        (server.put(&one(1)).unwrap().known, flows_counted(&server)),
        (1, 2)
    );
}

#[test]
fn nothing_is_lost_or_doubled_while_the_server_crashes() {
    let Some(mut cluster) = Cluster::for_test() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let origin = batch("a", Kind::Flow, 0, vec![]).origin;
    let bounds = Bounds {
        segment_bytes: 4 << 10,
        ..Bounds::of(64 << 20)
    };
    let mut spool = Spool::open(folder.path(), origin, bounds, TODAY_US).unwrap();
    let mut server = store(&cluster, &cluster.url());
    let mut appended = BTreeSet::new();
    for round in 0..4 {
        for number in 0..500 {
            let flow = flow(TODAY_US + number, "192.0.2.1", 8.0);
            appended.insert(spool.append(Kind::Flow, &flow).unwrap());
        }
        spool.sync(TODAY_US).unwrap();
        spool.seal_all(TODAY_US).unwrap();
        // It crashes while segments are moved, each time after others.
        std::thread::scope(|scope| {
            let (sealed, server) = (Arc::clone(spool.sealed()), &mut server);
            scope.spawn(move || while matches!(move_oldest(&sealed, server), Ok(Some(_))) {});
            std::thread::sleep(Duration::from_millis(9 * round));
            cluster.crash();
        });
        appended.insert(
            spool
                .append(Kind::Flow, &flow(TODAY_US, "192.0.2.1", 8.0))
                .unwrap(),
        );
        spool.seal_all(TODAY_US).unwrap();
        assert!(
            move_oldest(spool.sealed(), &mut server).is_err(),
            "it is away"
        );
        cluster.run().unwrap();
    }
    while move_oldest(spool.sealed(), &mut server).unwrap().is_some() {}
    assert_eq!(spool.status().events, 0);
    let found = server.query(&Query::between(0, i64::MAX)).unwrap();
    assert_eq!(found.len(), appended.len());
    let found: BTreeSet<u64> = found.iter().map(|record| record.sequence).collect();
    assert_eq!(found, appended);
    assert_eq!(flows_counted(&server), appended.len() as u64);
}

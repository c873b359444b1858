// SPDX-License-Identifier: MIT OR Apache-2.0
//! What questions cost the server: locks, of which all its users have a number together, and rows that are read.

use super::{
    ALL_TOLD, DAY_US, PAST_US, TODAY_US, batch, empty, event, flow, hold, kept, shared, store,
    until,
};
use fatpath_archive::Kind;
use fatpath_archive::store::{PostgresStore, Query, Store};
use fatpath_harness::cluster::Cluster;

const DAYS: i64 = 100;

/// Of a question; a day has a table and six indexes.
const MOST_LOCKS: u64 = 300;

/// A store with a test each day.
fn with_days(cluster: &Cluster, name: &str) -> PostgresStore {
    let mut server = empty(cluster, name);
    let tests = (0..DAYS).map(|day| {
        let time_us = PAST_US - day * DAY_US;
        event("ping", time_us, Some("192.0.2.1"), "{}")
    });
    server
        .put(&batch("a", Kind::Test, 0, tests.collect()))
        .unwrap();
    server
}

/// Which tables the store's connections of a database lock, and whether one waits.
const LOCKS: &str = "SELECT count(*) FILTER (WHERE granted), bool_or(NOT granted) FROM pg_locks \
     JOIN pg_stat_activity USING (pid) WHERE datname = current_database() AND application_name = 'fatpath' \
     AND locktype = 'relation' AND relation >= 16384";

#[test]
fn a_question_over_many_days_locks_few_tables_at_once() {
    let Some(cluster) = shared() else { return };
    let mut writer = with_days(&cluster, "locks");
    let of_path = Query {
        kinds: vec![Kind::Test],
        ..Query::between(0, i64::MAX)
    };
    let of_prefix = Query {
        prefix: Some("192.0.2.0/24".parse().unwrap()),
        ..Query::between(0, i64::MAX)
    };
    for query in [of_path, of_prefix] {
        // It waits with the locks that it has.
        let newest = "LOCK TABLE fatpath.record_20191123 IN ACCESS EXCLUSIVE MODE";
        let mut holder = hold(&cluster, "locks", newest);
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| {
                let server = store(&cluster, &cluster.url_of("locks"));
                server.query(&query).unwrap().len()
            });
            let mut locks = 0;
            until("the question to wait", || {
                let found = cluster.psql("locks", LOCKS).unwrap();
                let (count, waits) = found.split_once('|').unwrap();
                locks = count.parse().unwrap();
                waits == "t"
            });
            holder.end(&cluster);
            assert_eq!(asked.join().unwrap(), DAYS as usize);
            assert!((1..MOST_LOCKS).contains(&locks), "{locks} locks");
        });
    }
    // They go in several parts, too.
    writer.retain(kept(1), PAST_US).unwrap();
    cluster.psql("locks", ALL_TOLD).unwrap();
    writer.retain(kept(1), PAST_US).unwrap();
    assert_eq!(writer.status().unwrap().days, ["2019-11-23"]);
}

#[test]
fn what_one_host_stored_is_found_without_reading_that_of_all() {
    let Some(cluster) = shared() else { return };
    let mut server = empty(&cluster, "hosts");
    let paths = |count: i64| -> Vec<_> {
        let times = (0..count).map(|n| TODAY_US + n * 1000);
        times
            .map(|time_us| event("path.estimate", time_us, Some("192.0.2.0"), "{}"))
            .collect()
    };
    for host in 0..20 {
        let host = format!("other{host}");
        server
            .put(&batch(&host, Kind::Path, 0, paths(1000)))
            .unwrap();
    }
    server.put(&batch("a", Kind::Path, 0, paths(10))).unwrap();
    let flows = (0..1000).map(|n| flow(TODAY_US + n, "192.0.2.1", 8.0));
    server
        .put(&batch("a", Kind::Flow, 100, flows.collect()))
        .unwrap();
    drop(server);
    let sql = |sql: &str| cluster.psql("hosts", sql).unwrap();
    // A connection tells what it read when it ends.
    let connections = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'fatpath'";
    until("the writer's end", || sql(connections) == "0");
    sql("ANALYZE");
    sql("SELECT pg_stat_reset()");
    let reader = store(&cluster, &cluster.url_of("hosts"));
    let query = Query {
        host: Some("a".into()),
        kinds: vec![Kind::Path],
        ..Query::between(TODAY_US - 30 * DAY_US, TODAY_US + DAY_US)
    };
    assert_eq!(reader.query(&query).unwrap().len(), 10);
    drop(reader);
    until("the reader's end", || sql(connections) == "0");
    let rows = "SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) FROM pg_stat_user_tables \
         WHERE relname LIKE 'record%'";
    let mut read: u64 = 0;
    // Before PostgreSQL 15 they are collected later than the connection ends.
    until("the reader's rows to be counted", || {
        read = sql(rows).parse().unwrap();
        read >= 10
    });
    assert!(read < 500, "{read} rows were read");
}

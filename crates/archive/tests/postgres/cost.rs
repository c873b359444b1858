// SPDX-License-Identifier: MIT OR Apache-2.0
//! What questions cost the server: locks, of which all its users have a number together, and rows that are read.

use super::{
    ALL_TOLD, DAY_US, PAST_US, TODAY_US, batch, empty, event, flow, hold, kept, shared, store,
    until,
};
use fatpath_archive::Kind;
use fatpath_archive::store::{PostgresStore, Query, Store, Width};
use fatpath_harness::cluster::Cluster;

const DAYS: i64 = 100;

/// Of a question; a day has a table and three indexes.
const MOST_LOCKS: u64 = 200;

/// A store with a flow each day.
fn with_days(cluster: &Cluster, name: &str) -> PostgresStore {
    let mut server = empty(cluster, name);
    let flows = (0..DAYS).map(|day| flow(PAST_US - day * DAY_US, "192.0.2.1", 8.0));
    server
        .put(&batch("a", Kind::Flow, 0, flows.collect()))
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
    let query = Query {
        prefix: Some("192.0.2.0/24".parse().unwrap()),
        ..Query::between(0, i64::MAX)
    };
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
        // What is no flow is found meanwhile.
        let tests = Query {
            kinds: vec![Kind::Test],
            ..Query::between(0, i64::MAX)
        };
        assert!(writer.query(&tests).unwrap().is_empty());
        holder.end(&cluster);
        assert_eq!(asked.join().unwrap(), DAYS as usize);
        assert!((1..MOST_LOCKS).contains(&locks), "{locks} locks");
    });
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
    wait_for_ends(&cluster, "hosts");
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
    wait_for_ends(&cluster, "hosts");
    let rows = "SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) FROM pg_stat_user_tables \
         WHERE relname = 'other' OR relname LIKE 'record%'";
    let mut read: u64 = 0;
    // Before PostgreSQL 15 they are collected later than the connection ends.
    until("the reader's rows to be counted", || {
        read = sql(rows).parse().unwrap();
        read >= 10
    });
    assert!(read < 500, "{read} rows were read");
}

/// A connection tells what it read when it ends.
fn wait_for_ends(cluster: &Cluster, database: &str) {
    let connections = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'fatpath'";
    until("the connections' end", || {
        cluster.psql(database, connections).unwrap() == "0"
    });
}

/// What the server read of a table, in pages.
fn pages_read(cluster: &Cluster, database: &str, table: &str) -> u64 {
    wait_for_ends(cluster, database);
    let pages = format!(
        "SELECT sum(heap_blks_read + heap_blks_hit)::bigint FROM pg_statio_user_tables WHERE relname LIKE '{table}%'"
    );
    let mut read = 0;
    // Before PostgreSQL 15 they are collected later than the connection ends.
    until("the reader's pages to be counted", || {
        read = cluster.psql(database, &pages).unwrap().parse().unwrap();
        read > 0
    });
    read
}

#[test]
fn what_is_of_one_path_is_on_few_pages() {
    let Some(cluster) = shared() else { return };
    let mut server = empty(&cluster, "pages");
    let flows = (0..4800).map(|n| {
        let peer = format!("10.0.{}.1", n % 100);
        flow(TODAY_US + n / 200 * 3_600_000_000, &peer, 8.0)
    });
    server
        .put(&batch("a", Kind::Flow, 0, flows.collect()))
        .unwrap();
    drop(server);
    let sql = |sql: &str| cluster.psql("pages", sql).unwrap();
    wait_for_ends(&cluster, "pages");
    sql("ANALYZE");
    sql("SELECT pg_stat_reset()");
    let reader = store(&cluster, &cluster.url_of("pages"));
    let prefix = "10.0.7.0/24".parse().unwrap();
    let (since_us, until_us) = (TODAY_US, TODAY_US + DAY_US);
    let history = reader.history(prefix, Width::Hour, since_us, until_us);
    assert_eq!(history.unwrap().len(), 24 * 3);
    drop(reader);
    // Of some 150.
    let read = pages_read(&cluster, "pages", "rollup");
    assert!(read < 15, "{read} pages of roll-ups were read");
    sql("SELECT pg_stat_reset()");
    let reader = store(&cluster, &cluster.url_of("pages"));
    let query = Query {
        prefix: Some(prefix),
        ..Query::between(since_us, until_us)
    };
    assert_eq!(reader.query(&query).unwrap().len(), 48);
    drop(reader);
    let read = pages_read(&cluster, "pages", "record");
    assert!(read < 15, "{read} pages of events were read");
}

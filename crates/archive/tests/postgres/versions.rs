// SPDX-License-Identifier: MIT OR Apache-2.0
//! Schemas of other versions: brought forward and back however long it takes, or left alone.

use super::{
    DAY_US, LONGEST_WAIT, TODAY_US, batch, empty, event, flow, hold, kept, shared, store, until,
};
use fatpath_archive::Kind;
use fatpath_archive::store::{
    Migration, PostgresStore, Query, SCHEMA_VERSION, ServerAddress, Store,
};
use fatpath_harness::cluster::{Cluster, PASSWORD};
use std::time::{Duration, Instant};

#[test]
fn a_schema_of_another_version_is_migrated_or_refused() {
    let Some(cluster) = shared() else { return };
    let mut server = empty(&cluster, "versions");
    let sql = |sql: &str| cluster.psql("versions", sql).unwrap();
    assert_eq!(server.migrate(1, &mut |_| true).unwrap(), 0);
    sql("INSERT INTO fatpath.origin (host, boot) VALUES ('old', '1')");
    sql(
        "INSERT INTO fatpath.record SELECT id, 7, -5, 'test', 'ping', '192.0.2.1', NULL, 1, 1, '{}' FROM fatpath.origin",
    );
    let all = Query::between(i64::MIN, i64::MAX);
    let reader = store(&cluster, &cluster.url_of("versions"));
    assert_eq!(reader.query(&all).unwrap().len(), 1);
    assert_eq!(
        sql("SELECT version FROM fatpath.schema_version"),
        "1",
        "who reads changes nothing"
    );
    server
        .put(&batch(
            "new",
            Kind::Test,
            0,
            vec![event("ping", 6, None, "{}")],
        ))
        .unwrap();
    let newest = SCHEMA_VERSION.to_string();
    assert_eq!(sql("SELECT version FROM fatpath.schema_version"), newest);
    assert_eq!(
        sql("SELECT to_regclass('fatpath.other_by_peer') IS NULL"),
        "f"
    );
    assert_eq!(sql("SELECT count(*) FROM fatpath.other"), "2");
    assert_eq!(sql("SELECT count(*) FROM fatpath.test"), "2");
    sql("INSERT INTO fatpath.retention VALUES ('old', 30, now() - interval '9 days')");
    assert_eq!(server.migrate(1, &mut |_| true).unwrap(), SCHEMA_VERSION);
    assert_eq!(
        sql("SELECT to_regclass('fatpath.other_by_peer') IS NULL"),
        "t"
    );
    assert_eq!(reader.query(&all).unwrap().len(), 2);
    assert_eq!(server.migrate(SCHEMA_VERSION, &mut |_| true).unwrap(), 1);
    assert_eq!(
        sql("SELECT days, told_at > now() - interval '1 hour' FROM fatpath.retention"),
        "30|t",
        "what hosts want stays known, and each has a day to tell it anew"
    );
    assert_eq!(server.migrate(1, &mut |_| true).unwrap(), SCHEMA_VERSION);
    sql("UPDATE fatpath.schema_version SET version = 9");
    let mut late = store(&cluster, &cluster.url_of("versions"));
    let refused = late
        .put(&batch("new", Kind::Test, 1, vec![]))
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("schema version 9") && refused.contains("archive migrate --to"),
        "{refused}"
    );
    assert!(late.query(&all).is_err() && late.migrate(SCHEMA_VERSION, &mut |_| true).is_err());
    sql("UPDATE fatpath.schema_version SET version = 1");
    assert_eq!(
        store(&cluster, &cluster.url_of("versions"))
            .migrate(0, &mut |_| true)
            .unwrap(),
        1
    );
    assert_eq!(
        sql("SELECT count(*) FROM pg_namespace WHERE nspname = 'fatpath'"),
        "0"
    );
}

/// A question of [`hasty`] is given up after this, and a statement after half of it: for what is no change, enough on a
/// busy machine.
const HASTE: Duration = Duration::from_secs(10);

/// A change that takes so long was given up by neither.
const OUTLIVED: Duration = Duration::from_secs(12);

/// A store with limits that a change outlives.
fn hasty(cluster: &Cluster, name: &str) -> PostgresStore {
    let url = format!(
        "{}?options=-c%20statement_timeout%3D{}s",
        cluster.url_of(name),
        HASTE.as_secs() / 2
    );
    let file = cluster.password_file(PASSWORD).unwrap();
    let address = ServerAddress::new(&url, Some(&file)).unwrap();
    PostgresStore::at(address, HASTE).unwrap()
}

/// A database of version 1 with an event, and a writer that keeps the tables from being changed.
fn written_to(cluster: &Cluster, name: &'static str) -> super::Holder {
    let mut server = empty(cluster, name);
    server.migrate(1, &mut |_| true).unwrap();
    hold(
        cluster,
        name,
        "LOCK TABLE fatpath.record IN ROW EXCLUSIVE MODE",
    )
}

#[test]
fn tables_may_take_longer_than_any_question_to_be_brought_forward() {
    let Some(cluster) = shared() else { return };
    let mut writer = written_to(&cluster, "large");
    // Who only reports how far it is may be ended, and connects anew.
    let end_observer = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
         WHERE datname = current_database() AND application_name = 'fatpath' AND query LIKE '%progress_create_index%'";
    let mut observers = 0;
    let mut heard = Vec::new();
    hasty(&cluster, "large")
        .prepare(&mut |migration| {
            let was_held = heard
                .last()
                .is_none_or(|m: &Migration| m.elapsed <= OUTLIVED);
            if was_held && migration.elapsed > OUTLIVED {
                writer.end(&cluster);
            }
            let ended = cluster.psql("large", end_observer).unwrap();
            observers += ended.parse::<u32>().unwrap();
            heard.push(migration.clone());
            true
        })
        .unwrap();
    let versions = |migration: &Migration| (migration.from, migration.to);
    assert!(heard.len() >= 2, "{heard:?}");
    assert!(
        heard
            .iter()
            .all(|migration| versions(migration) == (1, SCHEMA_VERSION))
    );
    assert!(heard[1].elapsed > heard[0].elapsed);
    assert!(heard.last().unwrap().elapsed > OUTLIVED, "{heard:?}");
    assert!(observers >= 2, "{observers} observers, {heard:?}");
    let mut server = store(&cluster, &cluster.url_of("large"));
    let put = server.put(&batch(
        "a",
        Kind::Test,
        0,
        vec![event("ping", 6, None, "{}")],
    ));
    assert_eq!(put.unwrap().stored, 1);
}

#[test]
fn a_change_that_is_ended_changes_nothing() {
    let Some(cluster) = shared() else { return };
    let mut writer = written_to(&cluster, "ended");
    let mut server = hasty(&cluster, "ended");
    let begun = Instant::now();
    let ended = server.prepare(&mut |_| false).unwrap_err().to_string();
    assert!(ended.contains("nothing has changed"), "{ended}");
    assert!(begun.elapsed() < LONGEST_WAIT, "it does not wait");
    let changing = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%CREATE INDEX%' \
         AND pid <> pg_backend_pid() AND state = 'active'";
    until("the server to end it", || {
        cluster.psql("ended", changing).unwrap() == "0"
    });
    writer.end(&cluster);
    let version = "SELECT version FROM fatpath.schema_version";
    assert_eq!(cluster.psql("ended", version).unwrap(), "1");
    let mut server = store(&cluster, &cluster.url_of("ended"));
    server.prepare(&mut |_| true).unwrap();
    let newest = SCHEMA_VERSION.to_string();
    assert_eq!(cluster.psql("ended", version).unwrap(), newest);
}

#[test]
fn a_connected_writer_leaves_tables_alone_that_became_later_than_it_knows() {
    let Some(cluster) = shared() else { return };
    let mut server = empty(&cluster, "later");
    let one = |number| {
        batch(
            "a",
            Kind::Flow,
            number,
            vec![flow(TODAY_US, "192.0.2.1", 8.0)],
        )
    };
    server.put(&one(0)).unwrap();
    let sql = |sql: &str| cluster.psql("later", sql).unwrap();
    let rows = "SELECT (SELECT count(*) FROM fatpath.record), (SELECT sum(n) FROM fatpath.rollup), \
         (SELECT count(*) FROM fatpath.retention), (SELECT count(*) FROM pg_tables WHERE schemaname = 'fatpath')";
    let before = sql(rows);
    let later = SCHEMA_VERSION + 1;
    let become_of = |version: i64| {
        sql(&format!(
            "UPDATE fatpath.schema_version SET version = {version}"
        ));
    };
    become_of(later);
    let connected = || {
        let connected = store(&cluster, &cluster.url_of("later"));
        become_of(SCHEMA_VERSION);
        connected.status().unwrap();
        become_of(later);
        connected
    };
    let tomorrow = batch(
        "a",
        Kind::Flow,
        1,
        vec![flow(TODAY_US + DAY_US, "192.0.2.1", 8.0)],
    );
    let refusals = [
        server.put(&one(1)).map(drop),
        connected().put(&one(1)).map(drop),
        connected().put(&tomorrow).map(drop),
        connected().retain(kept(1), TODAY_US + 500 * DAY_US),
    ];
    let why = format!(
        "schema version {later}; this fatpath reads and writes version {SCHEMA_VERSION}: update fatpath here"
    );
    for refused in refusals {
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains(&why), "{refused}");
    }
    assert_eq!(sql(rows), before);
    become_of(SCHEMA_VERSION);
    assert_eq!(server.put(&one(1)).unwrap().stored, 1);
}

#[test]
fn who_writes_waits_for_a_change_and_says_so() {
    let Some(cluster) = shared() else { return };
    drop(empty(&cluster, "busy"));
    let one = batch("a", Kind::Flow, 0, vec![flow(TODAY_US, "192.0.2.1", 8.0)]);
    let url = format!(
        "{}?options=-c%20lock_timeout%3D200ms",
        cluster.url_of("busy")
    );
    let mut server = store(&cluster, &url);
    let change = "SELECT pg_advisory_xact_lock(28825340302586985)";
    let mut changer = hold(&cluster, "busy", change);
    let refused = server.put(&one).unwrap_err().to_string();
    assert!(
        refused.contains("another host brings the tables"),
        "{refused}"
    );
    changer.end(&cluster);
    until("the change's end", || server.put(&one).is_ok());
}

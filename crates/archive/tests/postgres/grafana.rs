// SPDX-License-Identifier: MIT OR Apache-2.0
//! The dashboards of packaging/grafana: each of their queries runs on its store, and finds what is there.

use super::{DAY_US, TODAY_US, batches, empty, shared};
use fatpath_archive::store::{SqliteStore, Store};
use serde_json::Value;

const POSTGRESQL: &str = include_str!("../../../../packaging/grafana/fatpath-postgresql.json");
const SQLITE: &str = include_str!("../../../../packaging/grafana/fatpath-sqlite.json");

/// Title and text of each query, with what Grafana puts into it: a day, a host and a path.
fn queries(dashboard: &str, host: &str, path: &str) -> Vec<(String, String)> {
    let dashboard: Value = serde_json::from_str(dashboard).unwrap();
    let mut found = Vec::new();
    let panels = dashboard["panels"].as_array().unwrap();
    for panel in panels {
        for target in panel["targets"].as_array().unwrap() {
            found.push((panel["title"].clone(), target.clone()));
        }
    }
    for note in dashboard["annotations"]["list"].as_array().unwrap() {
        found.push((note["name"].clone(), note["target"].clone()));
    }
    for variable in dashboard["templating"]["list"].as_array().unwrap() {
        if variable["type"] == "query" {
            found.push((variable["name"].clone(), variable["query"].clone()));
        }
    }
    let text_of = |target: &Value| {
        let texts = [target, &target["rawSql"], &target["queryText"]];
        texts
            .into_iter()
            .find_map(Value::as_str)
            .unwrap()
            .to_owned()
    };
    let filled = found.iter().map(|(title, target)| {
        let text = text_of(target)
            .replace("${__from}", &(TODAY_US / 1000).to_string())
            .replace("${__to}", &((TODAY_US + DAY_US) / 1000).to_string())
            .replace("${host:sqlstring}", &format!("'{host}'"))
            .replace("${path:sqlstring}", &format!("'{path}'"));
        assert!(!text.contains('$'), "{title}: {text}");
        (title.to_string(), text)
    });
    filled.collect()
}

#[test]
fn the_dashboards_show_what_is_stored() {
    let Some(cluster) = shared() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (mut server, mut sqlite) = (
        empty(&cluster, "dashboards"),
        SqliteStore::at(folder.path()),
    );
    for batch in batches() {
        server.put(&batch).unwrap();
        sqlite.put(&batch).unwrap();
    }
    let day = rusqlite::Connection::open(folder.path().join("2026-11-23.db")).unwrap();
    let rows_of = |sql: &str| -> usize {
        let mut statement = day
            .prepare(sql)
            .unwrap_or_else(|error| panic!("{sql}: {error}"));
        let mut rows = statement.query([]).unwrap();
        std::iter::from_fn(|| {
            rows.next()
                .unwrap_or_else(|error| panic!("{sql}: {error}"))
                .map(drop)
        })
        .count()
    };
    // One path by prefix, and by how its addresses begin.
    for (host, of_server, of_sqlite) in [("all", "all", "all"), ("b", "192.0.2.0/24", "192.0.2.")] {
        let theirs = queries(POSTGRESQL, host, of_server);
        let ours = queries(SQLITE, host, of_sqlite);
        assert_eq!((theirs.len(), ours.len()), (9, 9));
        for ((title, on_server), (_, on_sqlite)) in theirs.iter().zip(&ours) {
            let printed = cluster
                .psql("dashboards", on_server)
                .unwrap_or_else(|error| panic!("{title}: {error}"));
            let (rows, same) = (printed.lines().count(), rows_of(on_sqlite));
            assert!(
                rows > 0 && same > 0,
                "{title}: {rows} and {same} rows: {on_server}"
            );
            // There addresses are counted as paths, and the last day has what no clock should say.
            let is_other = title.contains("Peers") || title == "\"host\"";
            let has_far = title.contains("Findings") && host == "all";
            let is_exact = !is_other && !has_far;
            assert!(!is_exact || rows == same, "{title}: {rows} and {same} rows");
        }
    }
}

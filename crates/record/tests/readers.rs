// SPDX-License-Identifier: MIT OR Apache-2.0
//! What pandas and DuckDB make of a trace. They are taken from Python's own places, or from `target/py`:
//! `packaging/setup.sh tests` puts them there.

#![allow(clippy::unwrap_used)]

mod support;

use fatpath_record::{Bounds, Recorder, Row, Table};
use std::path::Path;
use std::process::{Command, Output};
use support::row;

const SCRIPT: &str = r#"
import json, sys
import duckdb, pandas, pyarrow.parquet
file = sys.argv[1]
frame = pandas.read_parquet(file)
said = json.loads(pyarrow.parquet.read_metadata(file).metadata[b"fatpath.columns"])
count, acked, srtt, begin = duckdb.sql(
    f"select count(*), max(bytes_acked), avg(srtt_us), min(time_us) at time zone 'UTC' from '{file}' where cookie = 7"
).fetchall()[0]
print(json.dumps({
    "columns": list(frame.columns),
    "rows": len(frame),
    "nulls": int(frame.ssthresh_pkts.isna().sum()),
    "remote": frame.remote_address[0],
    "first": frame.time_us[0].isoformat(),
    "flag": bool(frame.is_cwnd_limited.all()),
    "unit": said["srtt_us"],
    "duckdb": [count, acked, srtt, begin.isoformat()],
}))
"#;

fn python(arguments: &[&str]) -> Option<Output> {
    // target/tmp is Cargo's for the files of tests.
    let packages = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("py");
    let mut python = Command::new("python3");
    if packages.exists() {
        python.env("PYTHONPATH", packages);
    }
    python.args(arguments).output().ok()
}

#[test]
fn pandas_and_duckdb_read_it_as_it_is() {
    let imports = python(&["-c", "import duckdb, pandas, pyarrow"]);
    if !imports.is_some_and(|output| output.status.success()) {
        println!("skipped: needs Python with pandas, pyarrow and duckdb (see this file's head)");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::begin(folder.path(), "t", Bounds::default()).unwrap();
    for n in 0..100 {
        recorder.take(row(7, n));
        recorder.take(row(8, n));
    }
    recorder.finish().unwrap();
    let file = folder.path().join("t-0001.parquet");
    let output = python(&["-c", SCRIPT, file.to_str().unwrap()]).unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let read: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let names: Vec<_> = Row::COLUMNS.iter().map(|column| column.name).collect();
    assert_eq!(read["columns"], serde_json::json!(names));
    assert_eq!(read["rows"], 200);
    assert_eq!(read["nulls"], 20);
    assert_eq!(read["remote"], "2001:db8::7");
    assert_eq!(read["first"], "2026-11-22T00:00:00+00:00");
    assert_eq!(read["flag"], true);
    assert_eq!(
        read["unit"],
        serde_json::json!({"unit": "µs", "rfc4898": "SmoothedRTT"})
    );
    let expected = serde_json::json!([100, 99 * 125_000, 100_500.0, "2026-11-22T00:00:00"]);
    assert_eq!(read["duckdb"], expected);
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath archive query`.

use super::time::{now_us, shown, time_us};
use super::{Place, netlogger};
use anyhow::Result;
use clap::Args;
use fatpath_archive::Kind;
use fatpath_archive::store::{Query, Record};
use fatpath_daemon::archived_event;
use fatpath_record::EventFile;
use fatpath_table::write_table;
use fatpath_units::show_count;
use ipnet::IpNet;
use std::io::{BufWriter, Write, stdout};
use std::path::{Path, PathBuf};

#[derive(Args)]
pub struct Arguments {
    /// From this time on
    #[arg(long, value_name = "TIME", default_value = "1d", value_parser = time_us)]
    since: i64,
    /// Before this time [default: now]
    #[arg(long, value_name = "TIME", value_parser = time_us)]
    until: Option<i64>,
    /// Only of peers in this prefix
    #[arg(long, value_name = "PREFIX", value_parser = super::path::prefix)]
    prefix: Option<IpNet>,
    /// Only from this host
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Only of this rule
    #[arg(long, value_name = "NAME")]
    rule: Option<String>,
    /// Only of this kind: sample, event, flow, path, test or decision; may be repeated
    #[arg(long, value_name = "KIND")]
    kind: Vec<Kind>,
    /// Number of events at most, the newest
    #[arg(long, value_name = "NUMBER", default_value_t = 1000)]
    limit: usize,
    /// Print a JSON object a line, with everything that is known of the event
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print comma-separated values (RFC 4180)
    #[arg(long)]
    csv: bool,
    /// Print lines of NetLogger, with ts= and event= first, or in the older form with DATE=, HOST= and PROG=
    #[arg(long, value_name = "FORM", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "ts", conflicts_with_all = ["json", "csv"])]
    netlogger: Option<netlogger::Form>,
    /// Write a Parquet file, with everything that is known of each event
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "csv", "netlogger"])]
    parquet: Option<PathBuf>,
    #[command(flatten)]
    place: Place,
}

/// Rows of a group of a Parquet file.
const GROUP: usize = 50_000;

pub fn run(arguments: &Arguments) -> Result<()> {
    let query = Query {
        since_us: arguments.since,
        until_us: arguments.until.unwrap_or_else(now_us),
        prefix: arguments.prefix,
        host: arguments.host.clone(),
        rule: arguments.rule.clone(),
        kinds: arguments.kind.clone(),
        limit: arguments.limit,
    };
    let records = arguments.place.existing()?.query(&query)?;
    if let Some(path) = &arguments.parquet {
        write_parquet(path, &records)?;
        println!(
            "{} in {}",
            show_count(records.len(), "event"),
            path.display()
        );
        note_limit(arguments, &records);
        return Ok(());
    }
    let mut out = BufWriter::new(stdout().lock());
    match (arguments.json, arguments.csv, arguments.netlogger) {
        (true, ..) => print_json(&mut out, &records)?,
        (_, true, _) => print_csv(&mut out, &records)?,
        (.., Some(form)) => print_netlogger(&mut out, &records, form)?,
        _ => print_table(&mut out, &records)?,
    }
    if !arguments.json {
        note_limit(arguments, &records);
    }
    Ok(out.flush()?)
}

fn note_limit(arguments: &Arguments, records: &[Record]) {
    if records.len() == arguments.limit {
        eprintln!(
            "fatpath: note: only the newest {} events are shown; see --limit",
            records.len()
        );
    }
}

fn write_parquet(path: &Path, records: &[Record]) -> Result<()> {
    let mut file = EventFile::begin(path)?;
    for group in records.chunks(GROUP) {
        let events: Vec<_> = group.iter().map(archived_event).collect();
        file.add(&events)?;
    }
    Ok(file.finish()?)
}

fn print_json(out: &mut impl Write, records: &[Record]) -> Result<()> {
    for record in records {
        let line = serde_json::to_string(&archived_event(record))?;
        writeln!(out, "{line}")?;
    }
    Ok(())
}

const COLUMNS: [&str; 8] = [
    "time", "host", "kind", "name", "peer", "rule", "value", "weight",
];

fn cells(record: &Record) -> [String; 8] {
    let event = &record.event;
    [
        shown(event.time_us),
        record.origin.host.clone(),
        record.kind.name().to_owned(),
        event.name.clone(),
        event.peer.map(|peer| peer.to_string()).unwrap_or_default(),
        event.rule.clone().unwrap_or_default(),
        event
            .value
            .map(|value| value.to_string())
            .unwrap_or_default(),
        event.weight.to_string(),
    ]
}

fn print_csv(out: &mut impl Write, records: &[Record]) -> Result<()> {
    write!(out, "{}\r\n", COLUMNS.join(","))?;
    for record in records {
        write!(out, "{}\r\n", cells(record).map(quoted).join(","))?;
    }
    Ok(())
}

fn quoted(cell: String) -> String {
    match cell.contains([',', '"', '\r', '\n']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell,
    }
}

fn print_netlogger(out: &mut impl Write, records: &[Record], form: netlogger::Form) -> Result<()> {
    for record in records {
        writeln!(out, "{}", netlogger::line(record, form))?;
    }
    Ok(())
}

fn print_table(out: &mut impl Write, records: &[Record]) -> Result<()> {
    if records.is_empty() {
        return Ok(writeln!(out, "No event of the archive matches.")?);
    }
    let header = COLUMNS.map(str::to_uppercase);
    Ok(write_table(out, header, records.iter().map(cells))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fatpath_archive::{Event, Origin};
    use serde_json::{Value, json};

    fn record() -> Record {
        let origin = Origin {
            host: "here".into(),
            boot: "1".into(),
        };
        let event = Event {
            time_us: 1_795_392_001_000_000,
            name: "a, \"b\"\u{1b}[2J".into(),
            peer: Some("192.0.2.1".parse().unwrap()),
            rule: None,
            value: Some(2.5),
            weight: 1,
            body: r#"{"x":1}"#.into(),
        };
        Record {
            origin,
            sequence: 3,
            kind: Kind::Event,
            event,
        }
    }

    fn printed(print: fn(&mut Vec<u8>, &[Record]) -> Result<()>) -> String {
        let mut out = Vec::new();
        print(&mut out, &[record()]).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn csv_quotes_what_it_must() {
        let row =
            "2026-11-23T00:00:01.000Z,here,event,\"a, \"\"b\"\"\u{1b}[2J\",192.0.2.1,,2.5,1\r\n";
        assert_eq!(
            printed(print_csv),
            format!("{}\r\n{row}", COLUMNS.join(","))
        );
    }

    #[test]
    fn a_table_does_not_steer_the_terminal() {
        let table = printed(print_table);
        assert!(
            table.contains("a, \"b\"?[2J") && !table.contains('\u{1b}'),
            "{table}"
        );
    }

    #[test]
    fn json_has_the_body() {
        let line: Value = serde_json::from_str(&printed(print_json)).unwrap();
        assert_eq!(
            (&line["body"]["x"], &line["kind"]),
            (&json!(1), &json!("event"))
        );
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Archived events as Parquet, for notebooks and databases.

use crate::RecordError;
use crate::column::{Column, Table, Value};
use crate::part::{Part, discard};
use fatpath_api::ArchivedEvent;
use std::path::Path;

/// The body is JSON.
impl Table for ArchivedEvent {
    const NAME: &str = "event";
    const COLUMNS: &'static [Column<ArchivedEvent>] = &[
        column(
            "time_us",
            "µs since 1970 (UTC)",
            Value::Time(|event| event.time_us),
        ),
        column("host", "", Value::Text(|event| event.host.clone())),
        column("boot", "", Value::Text(|event| event.boot.clone())),
        // As SQLite has it: numbers above 2^63 are negative.
        column("sequence", "", Value::Whole(|event| event.sequence as i64)),
        column("kind", "", Value::Text(|event| event.kind.clone())),
        column("name", "", Value::Text(|event| event.name.clone())),
        column(
            "peer",
            "",
            Value::MaybeText(|event| event.peer.map(|peer| peer.to_string())),
        ),
        column("rule", "", Value::MaybeText(|event| event.rule.clone())),
        column("value", "", Value::MaybeReal(|event| event.value)),
        column(
            "weight",
            "events",
            Value::Whole(|event| event.weight.into()),
        ),
        column("body", "", Value::Text(|event| event.body.to_string())),
    ];
}

const fn column(
    name: &'static str,
    unit: &'static str,
    value: Value<ArchivedEvent>,
) -> Column<ArchivedEvent> {
    Column {
        name,
        unit,
        variable: "",
        value,
    }
}

/// A file that grows by groups. It has its name when it is finished.
pub struct EventFile(Part<ArchivedEvent>);

impl EventFile {
    /// Begins `path.part`, which becomes `path` when it is finished; what was there before is replaced then.
    ///
    /// # Errors
    /// When the file cannot be made, as when another program writes it.
    pub fn begin(path: &Path) -> Result<EventFile, RecordError> {
        discard(path);
        Part::begin(path.to_path_buf()).map(EventFile)
    }

    /// Adds events, as one row group.
    ///
    /// # Errors
    /// When the disk does not take them.
    pub fn add(&mut self, events: &[ArchivedEvent]) -> Result<(), RecordError> {
        self.0.add(events)
    }

    /// Gives it its end and its name.
    ///
    /// # Errors
    /// As [`EventFile::add`].
    pub fn finish(self) -> Result<(), RecordError> {
        self.0.finish().map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use serde_json::json;
    use std::collections::HashMap;
    use std::fs::File;

    fn event(sequence: u64, value: Option<f64>) -> ArchivedEvent {
        ArchivedEvent {
            time: String::new(),
            time_us: 1_795_392_001_000_000,
            host: "a".into(),
            boot: "b".into(),
            sequence,
            kind: "test".into(),
            name: "test.ping".into(),
            peer: value.map(|_| [192, 0, 2, 1].into()),
            rule: None,
            value,
            weight: 1,
            body: json!({ "x": "µ" }),
        }
    }

    #[test]
    fn a_file_has_every_event_and_appears_when_it_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out.parquet");
        let mut file = EventFile::begin(&path).unwrap();
        file.add(&[event(1, Some(2.5)), event(2, None)]).unwrap();
        file.add(&[event(u64::MAX, Some(-1.0))]).unwrap();
        assert!(!path.exists());
        file.finish().unwrap();
        let names: Vec<_> = std::fs::read_dir(dir.path()).unwrap().collect();
        assert_eq!(names.len(), 1);
        let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        let rows = reader.get_row_iter(None).unwrap().map(|row| row.unwrap());
        let rows: Vec<HashMap<String, String>> = rows
            .map(|row| {
                row.get_column_iter()
                    .map(|(name, field)| (name.clone(), field.to_string()))
                    .collect()
            })
            .collect();
        assert_eq!(rows.len(), 3);
        let of = |row: usize, name: &str| rows[row][name].clone();
        assert_eq!([of(0, "value"), of(0, "peer")], ["2.5", "\"192.0.2.1\""]);
        assert_eq!([of(1, "value"), of(1, "peer")], ["null", "null"]);
        assert_eq!(
            [of(2, "sequence"), of(0, "body")],
            ["-1", "\"{\"x\":\"µ\"}\""]
        );
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Any program, its output read by the mapping that the file states.

use super::{ReadError, Unit, Values, netlogger};
use serde::Serialize;
use serde_json::Value;

/// `tool = "program"`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Program {
    /// The program and its arguments; no shell is involved.
    pub run: Vec<String>,
    /// How its output is read.
    pub format: Format,
    /// What is taken of it.
    pub values: Vec<Mapping>,
}

/// What a program prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// One JSON value, or one a line of which the last counts.
    Json,
    /// Lines of `ts=… event=… key=value`.
    Netlogger,
}

/// One value of the output.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Mapping {
    /// Its name in the archive.
    pub name: String,
    /// Where it is: in JSON names and indexes with dots between them (`end.streams.0.rtt`), of NetLogger's lines a
    /// key, whose last line counts, or `EVENT:KEY`.
    pub field: String,
    /// Its unit.
    pub unit: Unit,
}

impl Program {
    pub(super) fn read(&self, output: &str) -> Result<Values, ReadError> {
        let json = match self.format {
            Format::Json => Some(json(output)?),
            Format::Netlogger => None,
        };
        let value = |mapping: &Mapping| {
            let found = match &json {
                Some(json) => number_in(json, &mapping.field),
                None => number_in_lines(output, &mapping.field),
            };
            let found = found.filter(|number| number.is_finite());
            let number =
                found.ok_or_else(|| ReadError::Missing(format!("number `{}`", mapping.field)))?;
            Ok((mapping.name.clone(), (number, mapping.unit.clone())))
        };
        self.values.iter().map(value).collect()
    }
}

fn json(output: &str) -> Result<Value, ReadError> {
    let whole = serde_json::from_str(output);
    let last_line = || {
        let lines = output.lines().rev().map(str::trim);
        serde_json::from_str(lines.filter(|line| !line.is_empty()).take(1).next()?).ok()
    };
    whole
        .or_else(|error| last_line().ok_or(error))
        .map_err(|error| ReadError::Missing(format!("JSON: {error}")))
}

fn number_in(json: &Value, field: &str) -> Option<f64> {
    let pointer = format!("/{}", field.replace('.', "/"));
    json.pointer(&pointer)?.as_f64()
}

fn number_in_lines(output: &str, field: &str) -> Option<f64> {
    let (event, key) = match field.split_once(':') {
        Some((event, key)) => (Some(event), key),
        None => (None, field),
    };
    let number = |line: &str| {
        let pairs = netlogger::pairs(line);
        let is_asked = event.is_none_or(|event| pairs.contains(&("event", event)));
        let (_, value) = pairs.iter().find(|(of, _)| is_asked && *of == key)?;
        value.parse().ok()
    };
    output.lines().rev().find_map(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(format: Format, field: &str) -> Program {
        Program {
            run: vec!["x".into()],
            format,
            values: vec![Mapping {
                name: "v".into(),
                field: field.into(),
                unit: "ms".into(),
            }],
        }
    }

    fn read(format: Format, field: &str, output: &str) -> Option<f64> {
        program(format, field)
            .read(output)
            .ok()
            .map(|values| values["v"].0)
    }

    #[test]
    fn json_is_read_by_names_and_indexes() {
        let output = "{\n\"a\": {\"b\": [1, {\"c\": 2.5}]}}\n";
        assert_eq!(read(Format::Json, "a.b.1.c", output), Some(2.5));
        assert_eq!(read(Format::Json, "a.b", output), None);
        assert_eq!(
            read(Format::Json, "c", "{\"c\": 1}\n{\"c\": 2}\n"),
            Some(2.0)
        );
        assert_eq!(read(Format::Json, "c", "no JSON"), None);
    }

    #[test]
    fn of_netlogger_lines_the_last_counts() {
        let output = "ts=1 event=rtt v=1\nts=2 event=rtt v=2\nts=3 event=other v=nan\n";
        assert_eq!(read(Format::Netlogger, "rtt:v", output), Some(2.0));
        assert_eq!(read(Format::Netlogger, "v", output), None, "no number");
        assert_eq!(read(Format::Netlogger, "other:w", output), None);
    }
}

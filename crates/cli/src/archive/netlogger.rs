// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events as lines of NetLogger, in both of its forms: `ts=2026-11-23T00:00:01.000000Z event=flow.end level=Info …`, and the
//! older `DATE=20261123000001.000000 HOST=… PROG=fatpath LVL=Info NL.EVNT=flow.end …`. The body follows in either, its keys joined by dots.

use clap::ValueEnum;
use fatpath_archive::store::Record;
use fatpath_archive::{Kind, rfc3339};
use serde_json::Value;
use std::fmt::Write;

/// Which of the two forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// ts= and event= first, as in the Logging Best Practices
    Ts,
    /// DATE=, HOST=, PROG=, LVL= and NL.EVNT= first, as the older draft for universal logger messages has it
    Date,
}

/// The line, without its end.
pub fn line(record: &Record, form: Form) -> String {
    let event = &record.event;
    let head = match form {
        Form::Ts => [
            ("ts", micros(event.time_us)),
            ("event", event.name.clone()),
            ("level", level(record).to_owned()),
            ("prog", "fatpath".to_owned()),
            ("host", record.origin.host.clone()),
        ],
        Form::Date => [
            ("DATE", digits(event.time_us)),
            ("HOST", record.origin.host.clone()),
            ("PROG", "fatpath".to_owned()),
            ("LVL", level(record).to_owned()),
            ("NL.EVNT", event.name.clone()),
        ],
    };
    let mut line = String::new();
    for (key, value) in head {
        pair(&mut line, key, &value);
    }
    let optional = [
        ("peer", event.peer.map(|peer| peer.to_string())),
        ("rule", event.rule.clone()),
        ("value", event.value.map(|value| value.to_string())),
    ];
    for (key, value) in optional {
        if let Some(value) = value {
            pair(&mut line, key, &value);
        }
    }
    let body: Value = serde_json::from_str(&event.body).unwrap_or_default();
    flatten(&mut line, "", &body);
    line
}

/// A finding warns; a test that failed is an error.
fn level(record: &Record) -> &'static str {
    match record.kind {
        Kind::Event => "Warn",
        Kind::Test if record.event.value.is_none() => "Error",
        _ => "Info",
    }
}

/// `2026-11-23T00:00:01.000000Z`
fn micros(time_us: i64) -> String {
    let seconds = rfc3339(time_us);
    let (seconds, _) = seconds.split_once('.').unwrap_or((&seconds, ""));
    format!("{seconds}.{:06}Z", time_us.rem_euclid(1_000_000))
}

/// `20261123000001.000000`
fn digits(time_us: i64) -> String {
    micros(time_us)
        .chars()
        .filter(|c| c.is_ascii_digit() || *c == '.')
        .collect()
}

/// What a value has within goes under its key and a dot; what is null is left out.
fn flatten(line: &mut String, key: &str, value: &Value) {
    let under = |name: &str| match key {
        "" => name.to_owned(),
        key => format!("{key}.{name}"),
    };
    match value {
        Value::Null => {}
        Value::Object(fields) => {
            for (name, value) in fields {
                flatten(line, &under(name), value);
            }
        }
        Value::Array(values) => {
            for (index, value) in values.iter().enumerate() {
                flatten(line, &under(&index.to_string()), value);
            }
        }
        Value::String(text) => pair(line, key, text),
        other => pair(line, key, &other.to_string()),
    }
}

/// A key has only letters, digits and what stands between names; a value that needs it is in quotation marks.
fn pair(line: &mut String, key: &str, value: &str) {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-:".contains(c);
    let key = key.replace(|c| !allowed(c), "_");
    let value = value.replace(char::is_control, "?");
    let is_plain = !value.is_empty() && !value.contains([' ', '"', '\\', '=']);
    let value = match is_plain {
        true => value,
        false => format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\"")),
    };
    let space = if line.is_empty() { "" } else { " " };
    // A string takes everything.
    let _ = write!(line, "{space}{key}={value}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use fatpath_archive::{Event, Origin};

    fn record(kind: Kind, body: &str) -> Record {
        Record {
            origin: Origin {
                host: "here".into(),
                boot: "1".into(),
            },
            sequence: 3,
            kind,
            event: Event {
                time_us: 1_795_392_001_000_250,
                name: "flow.end".into(),
                peer: Some("192.0.2.1".parse().unwrap()),
                rule: Some("far away".into()),
                value: Some(2.5),
                weight: 1,
                body: body.into(),
            },
        }
    }

    #[test]
    fn both_forms_have_the_same_values() {
        let flow = record(
            Kind::Flow,
            r#"{"srtt_us":900,"settings":[{"name":"law"}],"none":null}"#,
        );
        let rest = "peer=192.0.2.1 rule=\"far away\" value=2.5 settings.0.name=law srtt_us=900";
        assert_eq!(
            line(&flow, Form::Ts),
            format!(
                "ts=2026-11-23T00:00:01.000250Z event=flow.end level=Info prog=fatpath host=here {rest}"
            )
        );
        assert_eq!(
            line(&flow, Form::Date),
            format!(
                "DATE=20261123000001.000250 HOST=here PROG=fatpath LVL=Info NL.EVNT=flow.end {rest}"
            )
        );
    }

    #[test]
    fn no_value_adds_a_pair_or_a_line() {
        let hostile = record(Kind::Event, r#"{"a b=c":"x\" level=Info\n\\","e":""}"#);
        let line = line(&hostile, Form::Ts);
        assert!(
            line.ends_with(r#" a_b_c="x\" level=Info?\\" e="""#) && line.contains(" level=Warn "),
            "{line}"
        );
    }
}

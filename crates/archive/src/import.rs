// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lines of flow logs and event logs that exist, as events.

use crate::store::Batch;
use crate::{Event, Kind, Origin};
use serde_json::Value;
use std::net::{IpAddr, SocketAddr};
use std::time::UNIX_EPOCH;

/// Boot of imported events: which boot they are of is not known.
const BOOT: &str = "import";

/// Why a line is no event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadLine {
    /// It is no JSON object.
    #[error("not a JSON object")]
    NotJson,
    /// It has neither `time` (a flow log) nor `timestamp` (an event log) in RFC 3339.
    #[error("neither `time` nor `timestamp` is a date in RFC 3339")]
    NoDate,
    /// It has the key `event` is missing.
    #[error("the key `event` is missing")]
    NoEvent,
}

/// The event of a line. Its number is a hash of the line, so that a line that is imported twice is there once.
///
/// # Errors
/// When the line is of neither log.
pub fn import(line: &str) -> Result<(Kind, u64, Event), BadLine> {
    let body: Value = serde_json::from_str(line).map_err(|_| BadLine::NotJson)?;
    let text = |key: &str| body.get(key).and_then(Value::as_str);
    let is_flow = text("event") == Some("flow_end");
    let date = text(if is_flow { "time" } else { "timestamp" });
    let time_us = date.and_then(time_us).ok_or(BadLine::NoDate)?;
    let name = text("event").ok_or(BadLine::NoEvent)?;
    let (kind, name) = match is_flow {
        true => (Kind::Flow, "flow.end"),
        false => (kind_of(name), name),
    };
    let rule = body
        .get("rule")
        .or_else(|| body.pointer("/attributes/rule"));
    let event = Event {
        time_us,
        name: name.to_owned(),
        peer: peer(&body),
        rule: rule.and_then(Value::as_str).map(str::to_owned),
        value: value(&body, is_flow),
        weight: 1,
        body: line.trim().to_owned(),
    };
    Ok((kind, hash(line.trim()), event))
}

/// Imported events of a kind, as a batch.
pub fn batch(host: &str, kind: Kind, events: Vec<(u64, Event)>) -> Batch {
    let origin = Origin {
        host: host.to_owned(),
        boot: BOOT.to_owned(),
    };
    Batch {
        origin,
        kind,
        events,
    }
}

/// µs since 1970.
fn time_us(date: &str) -> Option<i64> {
    let time = humantime::parse_rfc3339(date).ok()?;
    let since = time.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_micros()).ok()
}

/// Of an event log's line, as the daemon archives it.
fn kind_of(name: &str) -> Kind {
    match name {
        "finding" | "samples.lost" | "flow.begin" | "flow.end" => Kind::Event,
        _ => Kind::Sample,
    }
}

fn peer(body: &Value) -> Option<IpAddr> {
    let remote = body.get("remote").and_then(Value::as_str);
    let remote = remote.and_then(|remote| remote.parse::<SocketAddr>().ok());
    let host = body.get("destination_host").and_then(Value::as_str);
    let host = host.and_then(|host| host.parse().ok());
    remote.map(|remote| remote.ip()).or(host)
}

fn value(body: &Value, is_flow: bool) -> Option<f64> {
    let number = |key: &str| body.get(key).and_then(Value::as_f64);
    match is_flow {
        true => Some(number("bytes_acked")?.max(number("bytes_received")?)),
        false => number("value"),
    }
}

/// FNV-1a, 64 bits: the same in every version of fatpath. The first bit stays 0, since a database has signed numbers.
fn hash(text: &str) -> u64 {
    let fold = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, fold) >> 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_flow_log_is_the_end_of_a_flow() {
        let line = r#"{"time":"2026-11-23T10:00:00.5Z","event":"flow_end","remote":"[2001:db8::1]:443","rule":"far","bytes_acked":7,"bytes_received":9}"#;
        let (kind, number, event) = import(line).unwrap();
        assert_eq!((kind, event.name.as_str()), (Kind::Flow, "flow.end"));
        assert_eq!(event.time_us, 1_795_428_000_500_000);
        assert_eq!(event.peer, Some("2001:db8::1".parse().unwrap()));
        assert_eq!(
            (event.rule.as_deref(), event.value),
            (Some("far"), Some(9.0))
        );
        assert_eq!(import(&format!("{line}\n")).unwrap().1, number);
    }

    #[test]
    fn a_line_of_the_event_log_is_an_event() {
        let line = r#"{"timestamp":"2026-11-23T10:00:00Z","program":"fatpath","event":"finding","destination_host":"192.0.2.1","value":"FP-RWND","attributes":{"rule":"far"}}"#;
        let (kind, _, event) = import(line).unwrap();
        assert_eq!((kind, event.rule.as_deref()), (Kind::Event, Some("far")));
        assert_eq!(
            (event.peer, event.value),
            (Some("192.0.2.1".parse().unwrap()), None)
        );
    }

    #[test]
    fn what_is_no_event_is_refused_with_its_reason() {
        let refused = |line: &str| import(line).unwrap_err();
        assert_eq!(refused("{"), BadLine::NotJson);
        assert_eq!(refused("7"), BadLine::NoDate);
        assert_eq!(
            refused(r#"{"timestamp":"yesterday","event":"finding"}"#),
            BadLine::NoDate
        );
        assert_eq!(
            refused(r#"{"timestamp":"2026-11-23T10:00:00Z"}"#),
            BadLine::NoEvent
        );
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a listener says of itself: a line for each event, for people on standard error, or as JSON on standard output.

use fatpath_peer::Refusals;
use fatpath_units::{show_bytes, show_count};
use serde::Serialize;
use serde_json::Value;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

/// What happened.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event<'a> {
    /// It listens.
    Listening {
        address: SocketAddr,
        folder: String,
        key: String,
    },
    /// Somebody was not let in; `unlisted`: others, who are not listed.
    Refused {
        from: SocketAddr,
        why: String,
        unlisted: u32,
    },
    /// A transfer begins.
    Began { from: SocketAddr, name: &'a str },
    /// The process of a transfer said something that is no report.
    Said { name: &'a str, text: &'a str },
    /// A transfer ended; `report`: what `--json` prints at its other end.
    Ended {
        from: SocketAddr,
        name: &'a str,
        report: &'a Value,
    },
    /// It listens no more; transfers that ran have ended.
    Stopped { transfers: usize },
}

/// Where events go.
pub struct Log {
    is_json: bool,
    /// Of those who proved no key.
    nameless: Mutex<Refusals>,
    /// Of those who proved one: the nameless do not keep them out of the log.
    named: Mutex<Refusals>,
}

impl Log {
    /// As JSON, or for people.
    pub fn new(is_json: bool) -> Log {
        Log {
            is_json,
            nameless: Mutex::default(),
            named: Mutex::default(),
        }
    }

    /// Writes a line.
    pub fn note(&self, event: &Event<'_>) {
        // Nobody may read any more; transfers go on.
        let _ = match self.is_json {
            true => writeln!(std::io::stdout().lock(), "{}", line(event)),
            false => writeln!(std::io::stderr().lock(), "fatpath: {}", sentence(event)),
        };
    }

    /// Writes a line about somebody who proved no key, unless there were many.
    pub fn refused_nameless(&self, from: SocketAddr, why: String) {
        self.refused(&self.nameless, from, why);
    }

    /// Writes a line about somebody who proved a key, unless there were many.
    pub fn refused_named(&self, from: SocketAddr, why: String) {
        self.refused(&self.named, from, why);
    }

    fn refused(&self, others: &Mutex<Refusals>, from: SocketAddr, why: String) {
        let unlisted = others.lock().map_or(None, |mut others| others.another());
        if let Some(unlisted) = unlisted {
            self.note(&Event::Refused {
                from,
                why,
                unlisted,
            });
        }
    }
}

fn line(event: &Event<'_>) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let mut value = serde_json::to_value(event).unwrap_or_default();
    value["time"] = now.map_or(0.0, |now| now.as_secs_f64()).into();
    value.to_string()
}

fn sentence(event: &Event<'_>) -> String {
    match event {
        Event::Listening {
            address,
            folder,
            key,
        } => format!("listening at {address} for files into {folder}; this end's key is {key}"),
        Event::Refused {
            from,
            why,
            unlisted: 0,
        } => format!("{from} was not let in: {why}"),
        Event::Refused {
            from,
            why,
            unlisted,
        } => format!(
            "{from} was not let in: {why}; and {} before it",
            show_count(*unlisted, "other")
        ),
        Event::Began { from, name } => format!("{name} ({from}) begins a transfer"),
        Event::Said { name, text } => format!("{name}: {text}"),
        Event::Ended { from, name, report } => format!("{name} ({from}): {}", became(report)),
        Event::Stopped { transfers } => format!(
            "stopped; {} ended before the time, and can go on",
            show_count(*transfers as u64, "transfer")
        ),
    }
}

fn became(report: &Value) -> String {
    let number = |name: &str| report[name].as_u64().unwrap_or_default();
    let (stored, skipped, failed) = (number("stored"), number("skipped"), number("failed"));
    let counts = format!(
        "{stored} stored, {skipped} there already, {failed} failed; {}",
        show_bytes(number("bytes"))
    );
    match report["errors"][0]["message"].as_str() {
        Some(message) => format!("{counts}; {message}"),
        None => counts,
    }
}

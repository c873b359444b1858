// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a listener says of itself.

use fatpath_units::{show_bytes, show_count};
use serde::Serialize;
use serde_json::Value;
use std::net::SocketAddr;

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

impl fatpath_peer::Event for Event<'_> {
    fn sentence(&self) -> String {
        match self {
            Event::Listening {
                address,
                folder,
                key,
            } => format!("listening at {address} for files into {folder}; this end's key is {key}"),
            Event::Began { from, name } => format!("{name} ({from}) begins a transfer"),
            Event::Said { name, text } => format!("{name}: {text}"),
            Event::Ended { from, name, report } => format!("{name} ({from}): {}", became(report)),
            Event::Stopped { transfers } => format!(
                "stopped; {} ended before the time, and can go on",
                show_count(*transfers as u64, "transfer")
            ),
        }
    }
}

fn became(report: &Value) -> String {
    let number = |name: &str| report[name].as_u64().unwrap_or_default();
    let (stored, skipped, failed) = (number("stored"), number("skipped"), number("failed"));
    let verb = match report["is_given"].as_bool() {
        Some(true) => "given",
        _ => "stored",
    };
    let counts = format!(
        "{stored} {verb}, {skipped} there already, {failed} failed; {}",
        show_bytes(number("bytes"))
    );
    match report["errors"][0]["message"].as_str() {
        Some(message) => format!("{counts}; {message}"),
        None => counts,
    }
}

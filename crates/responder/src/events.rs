// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a responder says of itself: a line for each event, for people on standard error, or as JSON on standard output.

use fatpath_measure::Kind;
use fatpath_peer::Refusals;
use fatpath_units::{show_bytes, show_count};
use serde::Serialize;
use serde_json::{Value, json};
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
        key: String,
        peers: usize,
    },
    /// Somebody, or a test of a peer, was refused; `unlisted`: others, who are not listed.
    Refused {
        from: SocketAddr,
        why: String,
        unlisted: u32,
    },
    /// A test begins.
    Began {
        from: SocketAddr,
        name: &'a str,
        kind: Kind,
    },
    /// A test has ended.
    Ended {
        from: SocketAddr,
        name: &'a str,
        answered: u64,
        bytes: u64,
    },
    /// The file was read again; `error`: it is wrong, and all is as it was.
    Read { peers: usize, error: Option<String> },
    /// What peers have used cannot be kept.
    NotKept { error: String },
    /// It listens no more.
    Stopped {},
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
        // Nobody may read any more; tests go on.
        let _ = match self.is_json {
            true => writeln!(std::io::stdout().lock(), "{}", line(event)),
            false => writeln!(std::io::stderr().lock(), "fatpath: {}", sentence(event)),
        };
    }

    /// Writes a line about somebody who proved no key, unless there were many.
    pub fn refused_nameless(&self, from: SocketAddr, why: impl Into<String>) {
        self.refused(&self.nameless, from, why.into());
    }

    /// Writes a line about somebody who proved a key, unless there were many.
    pub fn refused_named(&self, from: SocketAddr, why: impl Into<String>) {
        self.refused(&self.named, from, why.into());
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

fn line(event: &Event<'_>) -> Value {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let mut value = serde_json::to_value(event).unwrap_or_default();
    value["time"] = json!(now.map_or(0.0, |now| now.as_secs_f64()));
    value
}

fn sentence(event: &Event<'_>) -> String {
    match event {
        Event::Listening {
            address,
            key,
            peers,
        } => format!(
            "listening at {address} for tests of {}; this end's key is {key}",
            show_count(*peers, "peer")
        ),
        Event::Refused {
            from,
            why,
            unlisted: 0,
        } => format!("{from} was refused: {why}"),
        Event::Refused {
            from,
            why,
            unlisted,
        } => format!(
            "{from} was refused: {why}; and {} before it",
            show_count(*unlisted, "other")
        ),
        Event::Began { from, name, kind } => format!("{name} ({from}) begins a test: {kind}"),
        Event::Ended {
            from,
            name,
            answered,
            bytes,
        } => format!(
            "{name} ({from}): {} answered, {}",
            show_count(*answered, "datagram"),
            show_bytes(*bytes)
        ),
        Event::Read { peers, error: None } => {
            format!("read the file again: {}", show_count(*peers, "peer"))
        }
        Event::Read {
            error: Some(error), ..
        } => format!("the file is wrong, and all is as it was: {error}"),
        Event::NotKept { error } => format!("what peers have used cannot be kept: {error}"),
        Event::Stopped {} => "stopped".to_owned(),
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a responder says of itself.

use fatpath_measure::Kind;
use fatpath_units::{show_bytes, show_count};
use serde::Serialize;
use std::net::SocketAddr;

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
        kind: Kind,
        /// Datagrams that were sent back, or of trains recorded; servers of iperf3.
        answered: u64,
        /// Sent back, or of the trains that were announced; of iperf3 sent or received, whichever is more.
        bytes: u64,
    },
    /// The file was read again; `error`: it is wrong, and all is as it was.
    Read { peers: usize, error: Option<String> },
    /// What peers have used cannot be kept.
    NotKept { error: String },
    /// It listens no more.
    Stopped {},
}

impl fatpath_peer::Event for Event<'_> {
    fn sentence(&self) -> String {
        match self {
            Event::Listening {
                address,
                key,
                peers,
            } => format!(
                "listening at {address} for tests of {}; this end's key is {key}",
                show_count(*peers, "peer")
            ),
            Event::Began { from, name, kind } => format!("{name} ({from}) begins a test: {kind}"),
            Event::Ended {
                from,
                name,
                kind,
                answered,
                bytes,
            } => {
                let (what, how) = match kind {
                    Kind::Echo | Kind::OneWay => ("datagram", "answered"),
                    Kind::Rate => ("datagram", "recorded"),
                    Kind::Iperf3 => ("iperf3 test", "served"),
                };
                let (count, bytes) = (show_count(*answered, what), show_bytes(*bytes));
                format!("{name} ({from}): {count} {how}, {bytes}")
            }
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
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a host asks of a responder, and what it is answered: one line of JSON each.

use crate::server::{DURATIONS_US, RATES_BPS};
use crate::{Clock, Kind, Peer, Rate, Served, Server};
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// A line is no longer.
pub const MOST_LINE_BYTES: usize = 4096;
/// UDP and IPv6 headers, which count.
const HEADER_BYTES: u64 = 48;
/// Of a datagram: its header, to what a jumbo frame of IPv6 holds.
const PACKET_BYTES: RangeInclusive<u16> = crate::echo::HEADER_BYTES as u16..=8952;
const PACKETS: RangeInclusive<u32> = 1..=1_000_000;
/// From one datagram to the next, in µs.
const INTERVAL_US: RangeInclusive<u32> = 1_000..=60_000_000;

/// A test that somebody wants to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Ask {
    /// Datagrams are sent back.
    Echo(Datagrams),
    /// The same, with the responder's times.
    OneWay(Datagrams),
    /// The arrival of packet trains is recorded.
    Rate(Trains),
    /// A server of iperf3 is started.
    Iperf3(Server),
}

/// Datagrams that are to be sent back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Datagrams {
    /// The UDP port from which the datagrams come.
    pub port: u16,
    /// How many.
    pub packets: u32,
    /// UDP payload of each.
    pub packet_bytes: u16,
    /// From one to the next.
    pub interval_us: u32,
}

/// Trains that are to be recorded. Each is announced by a line of its own ([`crate::trains::read`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trains {
    /// The UDP port from which they come.
    pub port: u16,
    /// The test is over by then.
    pub duration_us: u64,
    /// How long the responder may wait until no other test loads its path.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub patience_us: u64,
}

fn is_zero(us: &u64) -> bool {
    *us == 0
}

/// What a test costs the responder at most, as far as it is known before it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Of which kind it is.
    pub kind: Kind,
    /// How long it lasts by itself.
    pub duration_us: u64,
    /// What it makes the responder send, of iperf3 or receive. What trains bring is not known yet ([`crate::Ledger::more`]).
    pub bytes: u64,
    /// The same in a second.
    pub rate_bps: u64,
}

/// Packets of a train that arrived together: ns after the run before it, sequence number of the first, how many.
pub type Run = (u32, u32, u32);

/// What is answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// Datagrams to the UDP port of the responder's number are sent back; in a test of trains, the next line or the train that
    /// was announced is waited for.
    Granted {},
    /// The server of iperf3 waits for the peer.
    Serves(Served),
    /// Of the train that was announced, the packets that arrived.
    Arrived {
        /// In order of arrival; several lines follow one another.
        runs: Vec<Run>,
        /// Packets that the responder's kernel dropped when they had arrived.
        overrun: u32,
        /// No more follow.
        is_last: bool,
    },
    /// A test that is about the responder's times has ended.
    Ended {
        /// What the responder knows of its clock; none: nothing any more.
        clock: Option<Clock>,
    },
    /// The test, or the train that was announced, is not granted.
    Refused {
        /// For people.
        why: String,
    },
}

/// A line is none that is said here.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadLine {
    /// It cannot be read.
    #[error("it is no line of this protocol")]
    Form,
    /// A number is out of its range.
    #[error("{0} is out of range")]
    Range(&'static str),
}

impl Ask {
    /// Reads a line.
    ///
    /// # Errors
    /// See [`BadLine`].
    pub fn read(line: &str) -> Result<Ask, BadLine> {
        let ask: Ask = read(line)?;
        match &ask {
            Ask::Echo(datagrams) | Ask::OneWay(datagrams) => datagrams.check()?,
            Ask::Rate(trains) => in_range([
                ("port", trains.port > 0),
                (
                    "duration_us",
                    Rate::DURATIONS_US.contains(&trains.duration_us),
                ),
            ])?,
            Ask::Iperf3(server) => in_range([
                ("duration_us", DURATIONS_US.contains(&server.duration_us)),
                (
                    "rate_bps",
                    server.rate_bps.is_none_or(|bps| RATES_BPS.contains(&bps)),
                ),
            ])?,
        }
        Ok(ask)
    }

    /// Of which kind it is.
    pub fn kind(&self) -> Kind {
        match self {
            Ask::Echo(_) => Kind::Echo,
            Ask::OneWay(_) => Kind::OneWay,
            Ask::Rate(_) => Kind::Rate,
            Ask::Iperf3(_) => Kind::Iperf3,
        }
    }

    /// Of a test that loads the path: how long it may wait, in µs, until no other one does. `None`: it runs beside others.
    pub fn patience_us(&self) -> Option<u64> {
        match self {
            Ask::Echo(_) | Ask::OneWay(_) => None,
            Ask::Rate(trains) => Some(trains.patience_us),
            Ask::Iperf3(server) => Some(server.patience_us),
        }
    }

    /// What it costs if the peer makes it.
    pub fn cost(&self, peer: &Peer) -> Cost {
        let kind = self.kind();
        match self {
            Ask::Echo(datagrams) | Ask::OneWay(datagrams) => Cost {
                kind,
                duration_us: datagrams.duration_us(),
                bytes: datagrams.bytes(),
                rate_bps: datagrams.rate_bps(),
            },
            Ask::Rate(trains) => Cost {
                kind,
                duration_us: trains.duration_us,
                bytes: 0,
                rate_bps: 0,
            },
            Ask::Iperf3(server) => {
                let rate_bps = server.rate_bps(peer.rate_bps);
                Cost {
                    kind,
                    duration_us: server.duration_us,
                    bytes: server.bytes(rate_bps),
                    rate_bps,
                }
            }
        }
    }
}

impl Datagrams {
    fn check(&self) -> Result<(), BadLine> {
        in_range([
            ("port", self.port > 0),
            ("packets", PACKETS.contains(&self.packets)),
            ("packet_bytes", PACKET_BYTES.contains(&self.packet_bytes)),
            ("interval_us", INTERVAL_US.contains(&self.interval_us)),
        ])
    }

    /// How long the test lasts by itself.
    pub fn duration_us(&self) -> u64 {
        u64::from(self.packets) * u64::from(self.interval_us)
    }

    /// What it makes the responder send.
    pub fn bytes(&self) -> u64 {
        u64::from(self.packets) * self.wire_bytes()
    }

    /// What each datagram makes it send.
    pub fn wire_bytes(&self) -> u64 {
        u64::from(self.packet_bytes) + HEADER_BYTES
    }

    /// The same in a second.
    pub fn rate_bps(&self) -> u64 {
        self.wire_bytes() * 8_000_000 / u64::from(self.interval_us).max(1)
    }
}

impl Reply {
    /// Reads a line.
    ///
    /// # Errors
    /// See [`BadLine`].
    pub fn read(line: &str) -> Result<Reply, BadLine> {
        read(line)
    }
}

/// The first of these that is out of its range.
pub(crate) fn in_range<const N: usize>(numbers: [(&'static str, bool); N]) -> Result<(), BadLine> {
    match numbers.iter().find(|(_, is_in)| !is_in) {
        Some((name, _)) => Err(BadLine::Range(name)),
        None => Ok(()),
    }
}

pub(crate) fn read<'l, T: Deserialize<'l>>(line: &'l str) -> Result<T, BadLine> {
    match line.len() <= MOST_LINE_BYTES {
        true => serde_json::from_str(line).map_err(|_| BadLine::Form),
        false => Err(BadLine::Form),
    }
}

/// What another host says, for a terminal.
pub fn shown(text: &str) -> String {
    let shown = text.chars().filter(|char| !char.is_control());
    shown.take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ASK: &str =
        r#"{"kind":"echo","port":9,"packets":100,"packet_bytes":64,"interval_us":100000}"#;

    #[test]
    fn an_ask_says_what_it_costs() {
        let ask = Ask::read(ASK).unwrap();
        let peer = peer();
        let cost = ask.cost(&peer);
        assert_eq!((cost.duration_us, cost.bytes), (10_000_000, 11_200));
        assert_eq!((cost.kind, cost.rate_bps), (Kind::Echo, 8960));
        assert_eq!(serde_json::to_string(&ask).unwrap(), ASK);
        let trains = Ask::read(TRAINS).unwrap();
        assert_eq!(
            (trains.kind(), trains.cost(&peer).duration_us),
            (Kind::Rate, 10_000_000)
        );
        assert_eq!(serde_json::to_string(&trains).unwrap(), TRAINS);
    }

    const TRAINS: &str = r#"{"kind":"rate","port":9,"duration_us":10000000}"#;
    const SERVER: &str =
        r#"{"kind":"iperf3","duration_us":10000000,"rate_bps":8000,"patience_us":5}"#;

    fn peer() -> Peer {
        Peer {
            name: "a".into(),
            prefixes: vec![],
            key: String::new(),
            kinds: vec![],
            longest_us: 0,
            bytes_a_day: 0,
            rate_bps: 16_000,
        }
    }

    #[test]
    fn a_server_costs_what_it_was_asked_for_or_the_peers_limit() {
        let ask = Ask::read(SERVER).unwrap();
        let cost = ask.cost(&peer());
        assert_eq!((cost.kind, cost.rate_bps), (Kind::Iperf3, 8000));
        assert_eq!((cost.bytes, ask.patience_us()), (12_500, Some(5)));
        assert_eq!(serde_json::to_string(&ask).unwrap(), SERVER);
        let any = Ask::read(&SERVER.replace(r#""rate_bps":8000,"#, "")).unwrap();
        assert_eq!(any.cost(&peer()).rate_bps, 16_000);
        for (from, to) in [
            ("us\":10000000", "us\":1"),
            ("us\":10000000", "us\":3600000001"),
            ("bps\":8000", "bps\":1"),
        ] {
            assert!(Ask::read(&SERVER.replace(from, to)).is_err(), "{to}");
        }
    }

    #[test]
    fn what_is_absurd_is_refused() {
        for (from, to) in [
            ("\"port\":9", "\"port\":0"),
            ("packets\":100", "packets\":1000001"),
            ("packets\":100", "packets\":0"),
            ("packets\":100", "packets\":-1"),
            ("bytes\":64", "bytes\":55"),
            ("bytes\":64", "bytes\":60000"),
            ("us\":100000", "us\":1"),
            ("echo", "flood"),
        ] {
            assert!(Ask::read(&ASK.replace(from, to)).is_err(), "{to}");
        }
        for (from, to) in [
            ("\"port\":9", "\"port\":0"),
            ("us\":10000000", "us\":1"),
            ("us\":10000000", "us\":3600000001"),
            ("rate", "echo"),
        ] {
            assert!(Ask::read(&TRAINS.replace(from, to)).is_err(), "{to}");
        }
        assert!(Ask::read(&format!("{ASK}{}", " ".repeat(MOST_LINE_BYTES))).is_err());
    }

    #[test]
    fn what_others_say_cannot_move_a_cursor() {
        assert_eq!(shown("no\u{1b}[2J\nmore"), "no[2Jmore");
        assert_eq!(shown(&"x".repeat(1000)).len(), 300);
    }

    proptest! {
        #[test]
        fn whatever_is_said_is_in_range_or_refused(line in "\\PC{0,80}|[0-9a-z{}\":,]{0,120}") {
            if let Ok(ask) = Ask::read(&line) {
                prop_assert!(ask.cost(&peer()).duration_us > 0, "{ask:?}");
            }
            let _ = Reply::read(&line);
        }
    }
}

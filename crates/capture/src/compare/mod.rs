// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two captures of one connection: what passed both, what only one of them, and how long it took from one to the other.
//!
//! A transmission is found again by its bytes, its timestamp and its IPv4 identification, not by its packet: an interface
//! that cuts or joins segments makes others of them. Each may come first, so that clocks may be wrong by seconds.

mod delays;
mod lost;
mod pieces;
mod report;
mod way;

pub use lost::Lost;
pub use report::{Compared, ComparedWay, DelaySummary};

use crate::report::{Connection, Direction};
use crate::segment::{End, Segment};
use way::Way;

/// What was not seen by the other capture for so long will not be: clocks and one-way delays may differ by it.
pub(crate) const WINDOW_NS: i64 = 10_000_000_000;

/// One of the two captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capture {
    /// The one that was named first.
    First,
    /// The other one.
    Second,
}

impl Capture {
    pub(crate) fn other(self) -> Capture {
        match self {
            Capture::First => Capture::Second,
            Capture::Second => Capture::First,
        }
    }

    pub(crate) fn place(self) -> usize {
        self as usize
    }
}

/// What an [`crate::Analysis`] has found of the connection and of the file around it.
#[derive(Clone, Copy, Debug)]
pub struct Known<'c> {
    /// The connection.
    pub connection: &'c Connection,
    /// Time of the capture's first frame, since 1970.
    pub first_ns: i64,
    /// Of its last.
    pub last_ns: i64,
}

/// Clocks and places of two captures, as the handshake tells them; where one has none, clocks are taken as equal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    /// Of the second clock, ahead of the first.
    pub offset_ns: i64,
    /// From one capture to the other.
    pub one_way_ns: i64,
    pub nearer_client: Capture,
    pub first_ns: [i64; 2],
    pub last_ns: [i64; 2],
}

/// Follows one connection in two captures.
pub struct Comparison {
    ends: [End; 2],
    flows: [u64; 2],
    /// When the connection was there, by each clock: other connections may have had the same ends.
    begin_ns: [i64; 2],
    end_ns: [i64; 2],
    places: Places,
    ways: [Way; 2],
}

impl Comparison {
    /// Of a connection that both captures have, `None` if its ends differ. `seed`: see [`crate::Limits`].
    pub fn new(known: [Known<'_>; 2], seed: u64) -> Option<Comparison> {
        let [a, b] = known.map(|one| one.connection);
        if (a.client, a.server) != (b.client, b.server) {
            return None;
        }
        let places = Places::of(&known);
        let begin_ns = [a.first_ns, b.first_ns];
        let end_ns = [a, b].map(|one| {
            let lasted_ns = (one.duration_us * 1000.0).ceil() as i64;
            one.first_ns.saturating_add(lasted_ns).saturating_add(1)
        });
        let middle_ns = begin_ns[0].midpoint(end_ns[0]);
        let way = |own: fn(&Connection) -> &Direction, peer: fn(&Connection) -> &Direction| {
            let segment_bytes = segment_bytes([own(a), own(b)], [peer(a), peer(b)]);
            Way::new(segment_bytes, middle_ns, seed)
        };
        Some(Comparison {
            ends: [a.client, a.server],
            flows: [a.flow, b.flow],
            begin_ns,
            end_ns,
            places,
            ways: [
                way(|c| &c.from_client, |c| &c.from_server),
                way(|c| &c.from_server, |c| &c.from_client),
            ],
        })
    }

    /// How far the second clock is ahead of the first, as the handshake tells: segments are to be taken in the order of
    /// their times, the second capture's less this.
    pub fn offset_ns(&self) -> i64 {
        self.places.offset_ns
    }

    /// Takes the next segment of a capture; those of other connections are passed over.
    pub fn take(&mut self, capture: Capture, segment: &Segment) {
        let at = capture.place();
        let is_during = (self.begin_ns[at]..=self.end_ns[at]).contains(&segment.time_ns);
        let [client, server] = self.ends;
        let way = match (segment.source, segment.destination) {
            ends if !is_during || ends.0 == ends.1 => return,
            ends if ends == (client, server) => 0,
            ends if ends == (server, client) => 1,
            _ => return,
        };
        self.ways[way].take(capture, segment, &self.places);
    }

    /// The report; nothing more is to come.
    pub fn finish(mut self) -> Compared {
        for way in &mut self.ways {
            way.finish(&self.places);
        }
        report::report(self.ends, self.flows, &self.places, &self.ways)
    }
}

/// Of data in a segment as it is on the wire: what the receiver takes less the options of each, or less.
fn segment_bytes(own: [&Direction; 2], peer: [&Direction; 2]) -> i64 {
    let longest = own.map(|way| way.segment_max_bytes).into_iter().max();
    let options_bytes = match own.iter().any(|way| way.has_timestamps) {
        true => 12,
        false => 0,
    };
    let mss_bytes = peer.iter().find_map(|way| way.mss_bytes);
    let most = mss_bytes.map_or(u64::MAX, |mss| u64::from(mss.saturating_sub(options_bytes)));
    longest.unwrap_or(0).min(most).max(1) as i64
}

impl Places {
    fn of(known: &[Known<'_>; 2]) -> Places {
        let [a, b] = known.map(|one| one.connection);
        let [server_a, server_b] = [a, b].map(|one| one.handshake.and_then(|h| h.server_rtt_us));
        let between = |a_us: f64, b_us: f64| ((a_us - b_us) * 1000.0) as i64;
        // A SYN and its answer passed both captures; the first of them took as long as the second.
        let (offset_ns, round_trip_ns) = match (server_a, server_b) {
            (Some(a_us), Some(b_us)) => {
                let round_trip_ns = between(a_us, b_us);
                let syn_ns = b.first_ns.saturating_sub(a.first_ns);
                (syn_ns.saturating_sub(round_trip_ns / 2), round_trip_ns)
            }
            _ => (0, between(to_server_us(a), to_server_us(b))),
        };
        Places {
            offset_ns,
            one_way_ns: (round_trip_ns / 2).saturating_abs(),
            nearer_client: match round_trip_ns >= 0 {
                true => Capture::First,
                false => Capture::Second,
            },
            first_ns: known.map(|one| one.first_ns),
            last_ns: known.map(|one| one.last_ns),
        }
    }

    /// Whether the other capture was there when this would have passed it.
    pub fn is_judged(&self, capture: Capture, time_ns: i64) -> bool {
        let offset_ns = match capture {
            Capture::First => self.offset_ns,
            Capture::Second => self.offset_ns.saturating_neg(),
        };
        let expected_ns = time_ns.saturating_add(offset_ns);
        let expected_ns = expected_ns.saturating_add(self.one_way_ns);
        let other = capture.other().place();
        (self.first_ns[other]..=self.last_ns[other]).contains(&expected_ns)
    }
}

/// From the capture to the server and back, least.
fn to_server_us(connection: &Connection) -> f64 {
    let way = &connection.from_client;
    let least = way.rtt.or(way.rtt_by_timestamps);
    least.map_or(0.0, |rtt| rtt.min_us)
}

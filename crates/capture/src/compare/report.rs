// SPDX-License-Identifier: MIT OR Apache-2.0
//! What two captures say together, as `fatpath analyse --compare --json` prints it.

use super::lost::Lost;
use super::way::Way;
use super::{Capture, Places};
use crate::segment::End;
use serde::Serialize;

/// A connection in two captures. Delays need the difference of the clocks, and no packet tells it: it is taken as if the
/// least delays were equal in the two directions, and `clock_doubt_us` is how wrong that may be.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// Its number in each capture.
    pub flows: [u64; 2],
    /// Who connected.
    pub client: End,
    /// The other end.
    pub server: End,
    /// The capture that is nearer to the client: 1 or 2.
    pub nearer_client: u8,
    /// Least from one capture to the other and back, µs, whatever the clocks say. None where one direction has nothing in
    /// common.
    pub round_trip_us: Option<f64>,
    /// How far the second capture's clock is ahead of the first's, µs.
    pub clock_offset_us: Option<f64>,
    /// By how much that, and with it each delay, may be wrong: half of `round_trip_us`.
    pub clock_doubt_us: Option<f64>,
    /// By how much the difference of the clocks in the second half of the connection is above that in the first, µs. Queues
    /// that were never empty in one half look the same.
    pub clock_drift_us: Option<f64>,
    /// Data of the client, and its ACKs.
    pub from_client: ComparedWay,
    /// Data of the server, and its ACKs.
    pub from_server: ComparedWay,
}

/// What one end sent, from the capture that is nearer to it to the other one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedWay {
    /// Data that passed the nearer capture, with what was sent again.
    pub sent_bytes: u64,
    /// Of them, what did not pass the other one.
    pub lost_bytes: u64,
    /// The same in segments of the wire.
    pub lost_segments: u64,
    /// Of them, retransmissions.
    pub lost_retransmissions: u64,
    /// Segments without data that passed the nearer capture.
    pub sent_bare: u64,
    /// Of them, those that did not pass the other one.
    pub lost_bare: u64,
    /// Data that only the farther capture has: copies that the network made, or missed by the nearer one.
    pub added_bytes: u64,
    /// The same in segments.
    pub added_segments: u64,
    /// Segments without data that only the farther one has.
    pub added_bare: u64,
    /// Passed one capture when the other one had not begun, or had ended.
    pub not_judged: u64,
    /// Given up early, because too much was on the way at once: taken as lost, or added, and may be neither.
    pub given_up: u64,
    /// From one capture to the other.
    pub delay: Option<DelaySummary>,
    /// The first 10,000 losses of data, in the order of time.
    pub lost: Vec<Lost>,
}

/// One-way delays, by clocks whose difference has been taken off.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DelaySummary {
    /// How many.
    pub samples: u64,
    /// The least, µs.
    pub min_us: f64,
    /// The middle one; of this and the next, of 65,536 at most.
    pub median_us: f64,
    /// 99 % are below.
    pub p99_us: f64,
    /// The greatest.
    pub max_us: f64,
}

/// What the clocks say of each direction: second less first, turned so that it is the delay, more or less the offset.
struct Turned<'w> {
    way: &'w Way,
    near: Capture,
}

pub(crate) fn report(
    ends: [End; 2],
    flows: [u64; 2],
    places: &Places,
    ways: &[Way; 2],
) -> Compared {
    let client = Turned {
        way: &ways[0],
        near: places.nearer_client,
    };
    let server = Turned {
        way: &ways[1],
        near: places.nearer_client.other(),
    };
    let least = |half: Option<usize>| Some((client.least(half)?, server.least(half)?));
    // Ahead of the clock near the client.
    let ahead = |(client_ns, server_ns): (i64, i64)| client_ns.saturating_sub(server_ns) / 2;
    let whole = least(None);
    let server_ahead_ns = whole.map(ahead);
    let round_trip_us = whole.map(|(a, b)| us(a.saturating_add(b)));
    let drift_ns = least(Some(0)).zip(least(Some(1)));
    let drift_ns = drift_ns.map(|(before, after)| ahead(after).saturating_sub(ahead(before)));
    let sign = match places.nearer_client {
        Capture::First => 1.0,
        Capture::Second => -1.0,
    };
    Compared {
        flows,
        client: ends[0],
        server: ends[1],
        nearer_client: places.nearer_client.place() as u8 + 1,
        round_trip_us,
        clock_offset_us: server_ahead_ns.map(|ns| us(ns) * sign),
        clock_doubt_us: round_trip_us.map(|us| us / 2.0),
        clock_drift_us: drift_ns.map(|ns| us(ns) * sign),
        from_client: client.report(server_ahead_ns),
        from_server: server.report(server_ahead_ns.map(i64::saturating_neg)),
    }
}

fn us(ns: i64) -> f64 {
    ns as f64 / 1000.0
}

impl Turned<'_> {
    fn turned(&self, range: (i64, i64)) -> (i64, i64) {
        match self.near {
            Capture::First => range,
            Capture::Second => (range.1.saturating_neg(), range.0.saturating_neg()),
        }
    }

    fn least(&self, half: Option<usize>) -> Option<i64> {
        let delays = &self.way.delays;
        let range = match half {
            None => delays.whole_range(),
            Some(half) => delays.range(half),
        };
        range.map(|range| self.turned(range).0)
    }

    fn report(&self, ahead_ns: Option<i64>) -> ComparedWay {
        let [sent, arrived] = [self.near, self.near.other()].map(|at| self.way.counts(at));
        ComparedWay {
            sent_bytes: sent.data_bytes,
            lost_bytes: sent.only_bytes,
            lost_segments: sent.only_segments,
            lost_retransmissions: sent.only_again_segments,
            sent_bare: sent.bare,
            lost_bare: sent.only_bare,
            added_bytes: arrived.only_bytes,
            added_segments: arrived.only_segments,
            added_bare: arrived.only_bare,
            not_judged: sent.not_judged + arrived.not_judged,
            given_up: sent.given_up + arrived.given_up,
            delay: self.delay(ahead_ns),
            lost: self.way.lost(self.near).to_vec(),
        }
    }

    /// `ahead_ns`: the clock of the farther capture, of which no direction tells alone.
    fn delay(&self, ahead_ns: Option<i64>) -> Option<DelaySummary> {
        let (least, most) = self.turned(self.way.delays.whole_range()?);
        let ahead_ns = ahead_ns?;
        let mut sorted = self.way.delays.sorted();
        if self.near == Capture::Second {
            sorted = sorted.iter().rev().map(|ns| ns.saturating_neg()).collect();
        }
        let delay_us = |ns: i64| us(ns.saturating_sub(ahead_ns));
        let at = |share: f64| sorted[((sorted.len() - 1) as f64 * share) as usize];
        Some(DelaySummary {
            samples: self.way.delays.count,
            min_us: delay_us(least),
            median_us: delay_us(at(0.5)),
            p99_us: delay_us(at(0.99)),
            max_us: delay_us(most),
        })
    }
}

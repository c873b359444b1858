// SPDX-License-Identifier: MIT OR Apache-2.0
//! The congestion window, as far as what is in flight shows it, and where slow start ended.
//!
//! No packet carries the window. A sender that it limits has as much in flight as it allows, once each round trip; what
//! limits it otherwise (its program, the receiver) makes the estimate too small.

use super::Half;

/// A round trip in which less is gained than this is none of slow start; after three of them it is over: as BBR tells that
/// a path is full (draft-ietf-ccwg-bbr, section 5.3.1.2).
const GROWTH: f64 = 1.25;
const STILL_ROUNDS: u32 = 3;

/// Most in flight of each round trip.
#[derive(Clone, Debug, Default)]
pub(super) struct Flight {
    /// The round trip ends when more than this is acknowledged.
    round_end: i64,
    most_bytes: i64,
    last_bytes: Option<i64>,
    rounds: u64,
    sum_bytes: f64,
    max_bytes: i64,
    /// Most in flight when it had grown by [`GROWTH`] last, and when that was.
    grown: (i64, i64),
    still_rounds: u32,
    slow_start_end: Option<(i64, i64)>,
    /// What was lost below this was sent again.
    resent_end: i64,
}

impl Flight {
    /// After a segment of data; `in_flight_bytes` has it.
    fn sent(&mut self, in_flight_bytes: i64) {
        self.most_bytes = self.most_bytes.max(in_flight_bytes);
    }

    /// Everything below `ack` is acknowledged; `highest` is one past the highest that was sent.
    fn acked(&mut self, ack: i64, highest: i64, time_ns: i64) {
        if ack <= self.round_end || self.most_bytes == 0 {
            return;
        }
        let most_bytes = std::mem::take(&mut self.most_bytes);
        self.round_end = highest;
        self.last_bytes = Some(most_bytes);
        self.rounds += 1;
        self.sum_bytes += most_bytes as f64;
        self.max_bytes = self.max_bytes.max(most_bytes);
        if self.slow_start_end.is_some() {
            return;
        }
        if most_bytes as f64 >= self.grown.1 as f64 * GROWTH {
            self.grown = (time_ns, most_bytes);
            self.still_rounds = 0;
            return;
        }
        self.still_rounds += 1;
        if self.still_rounds >= STILL_ROUNDS {
            self.slow_start_end = Some(self.grown);
        }
    }

    /// The sender has reduced its window.
    fn reduced(&mut self, time_ns: i64) {
        let most_bytes = self.most_bytes.max(self.last_bytes.unwrap_or_default());
        self.slow_start_end.get_or_insert((time_ns, most_bytes));
    }
}

impl Half {
    /// Sent and not acknowledged, less what the receiver has by SACK and what is lost: all below the highest SACKed byte,
    /// or sent before a timeout, that was not sent again.
    pub fn in_flight_bytes(&self) -> i64 {
        let known = self.sacked.end().max(self.repair.loss_point());
        let Some(floor) = known.filter(|floor| *floor > self.una) else {
            return self.highest - self.una;
        };
        let floor = floor.min(self.highest);
        let resent_end = self.flight.resent_end.clamp(self.una, floor);
        let resent = resent_end - self.una - self.sacked.covered(self.una, resent_end);
        self.highest - floor + resent
    }

    /// Most in flight of the round trip that ended last, bytes.
    pub fn cwnd_estimate_bytes(&self) -> Option<i64> {
        self.flight.last_bytes
    }

    /// A segment of data was sent for the first time.
    pub(super) fn flies(&mut self) {
        let in_flight_bytes = self.in_flight_bytes();
        self.flight.sent(in_flight_bytes);
    }

    /// A segment up to `end` was sent again, because it was lost.
    pub(super) fn flies_again(&mut self, end: i64, is_timeout: bool, time_ns: i64) {
        let before = if is_timeout {
            self.una
        } else {
            self.flight.resent_end
        };
        self.flight.resent_end = before.max(end);
        self.flight.reduced(time_ns);
        self.flies();
    }

    /// An ACK of data came.
    pub(super) fn lands(&mut self, time_ns: i64) {
        self.flight.acked(self.una, self.highest, time_ns);
    }

    /// The sender says that it has reduced its window (CWR, RFC 3168).
    pub(super) fn has_reduced(&mut self, time_ns: i64) {
        self.flight.reduced(time_ns);
    }

    pub(super) fn report_flight(&mut self) {
        let flight = &self.flight;
        let report = &mut self.report;
        report.cwnd_estimate_max_bytes = flight.max_bytes as u64;
        if flight.rounds > 0 {
            report.cwnd_estimate_mean_bytes = flight.sum_bytes / flight.rounds as f64;
        }
        let ended = flight.slow_start_end.zip(self.first_data_ns);
        report.slow_start_us =
            ended.map(|((at_ns, _), from_ns)| at_ns.saturating_sub(from_ns) as f64 / 1000.0);
        report.slow_start_bytes = ended.map(|((_, bytes), _)| bytes as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Round trips with so much in flight each, of 1 ms.
    fn after(rounds: &[i64]) -> Flight {
        let mut flight = Flight::default();
        let mut highest = 0;
        for (number, bytes) in rounds.iter().enumerate() {
            highest += bytes;
            flight.sent(*bytes);
            flight.acked(flight.round_end + 1, highest, number as i64);
        }
        flight
    }

    #[test]
    fn slow_start_ends_where_what_is_in_flight_grew_last() {
        let flight = after(&[10, 20, 40, 80, 85, 90, 95]);
        assert_eq!(flight.slow_start_end, Some((3, 80)));
        assert_eq!((flight.last_bytes, flight.max_bytes), (Some(95), 95));
        assert_eq!(after(&[10, 20, 40, 80, 85, 90]).slow_start_end, None);
        let slow = after(&[100, 110, 115, 120]);
        assert_eq!(slow.slow_start_end, Some((0, 100)), "it never was in it");
    }

    #[test]
    fn a_reduction_ends_slow_start() {
        let mut flight = after(&[10, 20, 40]);
        flight.sent(70);
        flight.reduced(9);
        assert_eq!(flight.slow_start_end, Some((9, 70)));
        flight.reduced(10);
        assert_eq!(flight.slow_start_end, Some((9, 70)), "once");
    }

    #[test]
    fn a_round_trip_ends_when_what_came_after_the_last_is_acknowledged() {
        let mut flight = after(&[10]);
        flight.sent(20);
        flight.acked(10, 30, 5);
        assert_eq!(flight.last_bytes, Some(10));
        flight.acked(11, 30, 6);
        assert_eq!(flight.last_bytes, Some(20));
    }
}

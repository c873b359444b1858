// SPDX-License-Identifier: MIT OR Apache-2.0
//! The round-trip time and the retransmission timeout (RFC 6298), by Linux's estimator: the variation
//! is the largest mean deviation of the last round trip, it falls by a quarter a round trip, and
//! round trips that get faster count for little.

/// The longest timeout, Linux's `TCP_RTO_MAX`.
const RTO_MAX_US: u64 = 120_000_000;

/// The estimator. Fixed point as Linux: `srtt_x8_us` is eight times the smoothed time, `mdev_x4_us` and
/// those that follow from it are four times the deviation.
#[derive(Debug)]
pub(super) struct RttEstimator {
    srtt_x8_us: u64,
    mdev_x4_us: u64,
    mdev_max_x4_us: u64,
    rttvar_x4_us: u64,
    round_ends_at: u64,
    min_rtt_ns: u64,
    rto_us: u64,
    rto_min_us: u64,
}

impl RttEstimator {
    /// From the round-trip time of the handshake.
    pub(super) fn new(rtt_ns: u64, rto_min_ns: u64) -> RttEstimator {
        let (rtt_us, rto_min_us) = ((rtt_ns / 1000).max(1), rto_min_ns / 1000);
        let rttvar_x4_us = (2 * rtt_us).max(rto_min_us);
        let mut estimator = RttEstimator {
            srtt_x8_us: 8 * rtt_us,
            mdev_x4_us: 2 * rtt_us,
            mdev_max_x4_us: rttvar_x4_us,
            rttvar_x4_us,
            round_ends_at: 0,
            min_rtt_ns: rtt_ns,
            rto_us: 0,
            rto_min_us,
        };
        estimator.end_backoff();
        estimator
    }

    /// A round trip took `rtt_ns`; `una` and `next` tell when a round is over.
    pub(super) fn sample(&mut self, rtt_ns: u64, una: u64, next: u64) {
        let rtt_us = rtt_ns / 1000;
        let srtt_us = self.srtt_x8_us / 8;
        self.srtt_x8_us = (self.srtt_x8_us - srtt_us + rtt_us).max(1);
        self.deviate(rtt_us.abs_diff(srtt_us), rtt_us < srtt_us);
        if una > self.round_ends_at {
            self.end_round(next);
        }
        self.end_backoff();
    }

    /// The least round-trip time of any segment.
    pub(super) fn sample_min(&mut self, rtt_ns: u64) {
        self.min_rtt_ns = self.min_rtt_ns.min(rtt_ns.max(1));
    }

    fn deviate(&mut self, error_us: u64, is_faster: bool) {
        let mean_us = self.mdev_x4_us / 4;
        if error_us <= mean_us {
            self.mdev_x4_us -= mean_us - error_us;
        } else if is_faster {
            self.mdev_x4_us += (error_us - mean_us) / 8;
        } else {
            self.mdev_x4_us += error_us - mean_us;
        }
        self.mdev_max_x4_us = self.mdev_max_x4_us.max(self.mdev_x4_us);
        self.rttvar_x4_us = self.rttvar_x4_us.max(self.mdev_max_x4_us);
    }

    fn end_round(&mut self, next: u64) {
        self.rttvar_x4_us -= self.rttvar_x4_us.saturating_sub(self.mdev_max_x4_us) / 4;
        self.mdev_max_x4_us = self.rto_min_us;
        self.round_ends_at = next;
    }

    /// The timer ran out (RFC 6298, 5.5).
    pub(super) fn back_off(&mut self) {
        self.rto_us = (2 * self.rto_us).min(RTO_MAX_US);
    }

    /// The timeout is what the estimate says again.
    pub(super) fn end_backoff(&mut self) {
        self.rto_us = (self.srtt_x8_us / 8 + self.rttvar_x4_us).min(RTO_MAX_US);
    }

    pub(super) fn srtt_us(&self) -> u64 {
        self.srtt_x8_us / 8
    }

    pub(super) fn srtt_ns(&self) -> u64 {
        self.srtt_x8_us * 125
    }

    pub(super) fn min_rtt_ns(&self) -> u64 {
        self.min_rtt_ns
    }

    pub(super) fn rto_us(&self) -> u64 {
        self.rto_us
    }

    pub(super) fn rto_ns(&self) -> u64 {
        self.rto_us * 1000
    }

    pub(super) fn rto_min_ns(&self) -> u64 {
        self.rto_min_us * 1000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn the_first_timeout_is_three_round_trips_or_the_least_variation() {
        assert_eq!(RttEstimator::new(300 * MS, 200 * MS).rto_us(), 900_000);
        assert_eq!(RttEstimator::new(10 * MS, 200 * MS).rto_us(), 210_000);
    }

    #[test]
    fn a_steady_round_trip_leaves_it_and_the_least_variation() {
        let mut rtt = RttEstimator::new(100 * MS, 200 * MS);
        for round in 1..200 {
            rtt.sample(100 * MS, 10 * round, 10 * round + 9);
        }
        assert_eq!((rtt.srtt_us(), rtt.rto_us()), (100_000, 300_000));
    }

    #[test]
    fn backoff_doubles_to_two_minutes_and_ends_with_a_sample() {
        let mut rtt = RttEstimator::new(100 * MS, 200 * MS);
        rtt.back_off();
        assert_eq!(rtt.rto_us(), 600_000);
        (0..20).for_each(|_| rtt.back_off());
        assert_eq!(rtt.rto_us(), RTO_MAX_US);
        rtt.sample(100 * MS, 1, 2);
        assert!(rtt.rto_us() < 400_000);
    }

    #[test]
    fn variation_rises_at_once_and_falls_by_a_quarter_a_round() {
        let mut rtt = RttEstimator::new(100 * MS, 20 * MS);
        for round in 1..100 {
            rtt.sample(100 * MS, round, round);
        }
        assert!(rtt.rto_us() < 125_000, "{}", rtt.rto_us());
        rtt.sample(300 * MS, 100, 100);
        assert!(rtt.rto_us() > 300_000, "{}", rtt.rto_us());
        let before = rtt.rttvar_x4_us;
        rtt.sample(125 * MS, 101, 101);
        assert!((before / 4 * 3..before).contains(&rtt.rttvar_x4_us));
    }
}

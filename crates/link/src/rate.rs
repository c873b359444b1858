// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long bytes take at a rate, exactly: no rounding is ever carried from packet to packet.

use std::ops::RangeInclusive;

/// A constant rate, with the arithmetic of time in units of 1/rate nanoseconds.
///
/// In these units (*ticks*) a byte lasts a whole number, 8 × 10⁹, so sums never drift. A `u128` of
/// ticks holds 10¹⁹ ns at 1 Tb/s with room to spare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateClock {
    rate_bps: u64,
}

const TICKS_PER_BYTE: u128 = 8 * 1_000_000_000;

impl RateClock {
    /// Rates that [`RateClock::new`] takes: 1 kb/s to 1 Tb/s.
    pub const RANGE_BPS: RangeInclusive<u64> = 1_000..=1_000_000_000_000;

    /// A clock of `rate_bps` bits per second, brought into [`RateClock::RANGE_BPS`].
    pub fn new(rate_bps: u64) -> Self {
        RateClock {
            rate_bps: rate_bps.clamp(*Self::RANGE_BPS.start(), *Self::RANGE_BPS.end()),
        }
    }

    /// The moment `now_ns` in ticks.
    pub fn ticks(&self, now_ns: u64) -> u128 {
        u128::from(now_ns) * u128::from(self.rate_bps)
    }

    /// How many ticks `len_bytes` take.
    pub fn ticks_of_bytes(&self, len_bytes: u64) -> u128 {
        u128::from(len_bytes) * TICKS_PER_BYTE
    }

    /// The first whole nanosecond that is not before `ticks`.
    pub fn ns_not_before(&self, ticks: u128) -> u64 {
        ticks.div_ceil(u128::from(self.rate_bps)) as u64
    }

    /// The least number of whole bytes that covers a span of `ticks`.
    pub fn bytes_covering(&self, ticks: u128) -> u64 {
        ticks.div_ceil(TICKS_PER_BYTE) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_rate_does_not_drift_in_a_billion_packets() {
        let clock = RateClock::new(7_777);
        let ticks = clock.ticks_of_bytes(1500) * 1_000_000_000;
        let exact_ns = 1500u128 * 8 * 1_000_000_000 * 1_000_000_000 / 7_777 + 1;
        assert_eq!(u128::from(clock.ns_not_before(ticks)), exact_ns);
    }

    #[test]
    fn a_fast_rate_keeps_parts_of_a_nanosecond() {
        let clock = RateClock::new(1_000_000_000_000);
        assert_eq!(clock.ns_not_before(clock.ticks_of_bytes(1)), 1);
        assert_eq!(clock.ns_not_before(clock.ticks_of_bytes(125)), 1);
        assert_eq!(clock.ns_not_before(clock.ticks_of_bytes(126)), 2);
    }
}

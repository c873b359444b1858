// SPDX-License-Identifier: MIT OR Apache-2.0
//! What datagrams that left together are spread over when they arrive: the bottleneck serves one after the other, so their
//! bytes by that time are the rate that it gives them.

/// A reading is late by far less: over so much, a few datagrams tell the rate.
const LONG_NS: u64 = 10_000_000;

/// Of datagrams as they were read.
#[derive(Debug, Default)]
pub(crate) struct Dispersion {
    first_ns: Option<u64>,
    last_ns: u64,
    /// Those that were read at once with the first had come by then.
    bytes_after: u64,
}

impl Dispersion {
    /// So many bytes more were read at this time.
    pub(crate) fn read(&mut self, at_ns: u64, bytes: u64) {
        let first_ns = *self.first_ns.get_or_insert(at_ns);
        if at_ns > first_ns {
            self.bytes_after += bytes;
            self.last_ns = self.last_ns.max(at_ns);
        }
    }

    /// Bits a second; `None`: fewer than `least_bytes` were read after the first reading, and soon after it, which says nothing
    /// of the path.
    pub(crate) fn rate_bps(&self, least_bytes: u64) -> Option<u64> {
        let ns = self.last_ns.checked_sub(self.first_ns?)?;
        let bits = u128::from(self.bytes_after) * 8;
        let rate_bps = (bits * 1_000_000_000).checked_div(ns.into())?;
        let is_known = self.bytes_after >= least_bytes || ns >= LONG_NS;
        is_known.then_some(u64::try_from(rate_bps).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The rate of a bottleneck is found, to what one reading holds, however readings divide the datagrams.
        #[test]
        fn the_rate_is_that_of_the_bottleneck(
            rate_mbps in 1u64..10_000,
            sizes in prop::collection::vec(1u64..4, 12..30),
        ) {
            let ns = |pkts: u64| pkts * 1500 * 8 * 1000 / rate_mbps;
            let (mut dispersion, mut pkts) = (Dispersion::default(), 0);
            for size in &sizes {
                pkts += size;
                dispersion.read(1 + ns(pkts), size * 1500);
            }
            let found = dispersion.rate_bps(9 * 1500).unwrap() as f64;
            prop_assert!((found / (rate_mbps as f64 * 1e6) - 1.0).abs() < 0.02, "{found}");
        }

        /// Whatever the other end says of its clock.
        #[test]
        fn any_times_are_taken(times in prop::collection::vec(any::<(u64, u64)>(), 0..20)) {
            let mut dispersion = Dispersion::default();
            for (at_ns, bytes) in times {
                dispersion.read(at_ns, bytes >> 8);
            }
            let _ = dispersion.rate_bps(0);
        }
    }

    #[test]
    fn what_was_read_at_once_says_nothing() {
        let mut dispersion = Dispersion::default();
        assert_eq!(dispersion.rate_bps(0), None);
        dispersion.read(5, 30_000);
        assert_eq!(dispersion.rate_bps(0), None);
        dispersion.read(1005, 1_500);
        assert_eq!(dispersion.rate_bps(1_501), None);
        assert_eq!(dispersion.rate_bps(1_500), Some(12_000_000_000));
        dispersion.read(20_000_005, 1_000);
        assert_eq!(dispersion.rate_bps(1_000_000), Some(1_000_000));
    }
}

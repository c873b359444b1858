// SPDX-License-Identifier: MIT OR Apache-2.0
//! How late the forwarder itself is: with what leaves, from the moment at which a packet was due to
//! the one at which it was handed to the receiving kernel; with what comes, see `waiting`.

use fatpath_observation::{Lateness, LatenessBucket};
use hdrhistogram::Histogram;

/// Beyond an hour all is equally late.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Counts while the forwarder runs. Never allocates after it was made.
#[derive(Debug)]
pub(crate) struct LatenessCounter(Histogram<u64>);

impl LatenessCounter {
    pub(crate) fn new() -> LatenessCounter {
        let histogram = Histogram::new_with_bounds(1, LONGEST_NS, 2);
        LatenessCounter(histogram.expect("two digits from 1 ns to an hour are a valid histogram"))
    }

    pub(crate) fn record(&mut self, lateness_ns: u64) {
        self.0.saturating_record(lateness_ns);
    }

    pub(crate) fn summary(&self) -> Lateness {
        let quantile_us = |quantile| us(self.0.value_at_quantile(quantile));
        // Each step of the iterator ends just below the next power of two microseconds.
        let bars = self.0.iter_log(1_000, 2.0).map(|bar| LatenessBucket {
            up_to_us: us(bar.value_iterated_to() + 1),
            count: bar.count_since_last_iteration(),
        });
        Lateness {
            count: self.0.len(),
            p50_us: quantile_us(0.5),
            p90_us: quantile_us(0.9),
            p99_us: quantile_us(0.99),
            max_us: us(self.0.max()),
            histogram: bars.collect(),
        }
    }
}

fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_and_bars_are_those_of_what_was_recorded() {
        let mut counter = LatenessCounter::new();
        (1..=1000).for_each(|us| counter.record(us * 1000));
        counter.record(u64::MAX);
        let lateness = counter.summary();
        assert_eq!(lateness.count, 1001);
        for (quantile, us) in [
            (lateness.p50_us, 500.0),
            (lateness.p90_us, 900.0),
            (lateness.p99_us, 990.0),
        ] {
            assert!((us..us * 1.01).contains(&quantile), "{quantile} for {us}");
        }
        assert_eq!(
            lateness.histogram.iter().map(|bar| bar.count).sum::<u64>(),
            1001
        );
        let up_to: Vec<f64> = lateness.histogram.iter().map(|bar| bar.up_to_us).collect();
        assert_eq!(up_to[..4], [1.0, 2.0, 4.0, 8.0]);
        assert_eq!(lateness.histogram[0].count, 0, "{lateness:?}");
        assert_eq!(lateness.histogram[3].count, 4, "{lateness:?}");
    }

    #[test]
    fn nothing_recorded_is_no_lateness() {
        assert_eq!(LatenessCounter::new().summary().max_us, 0.0);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Many times in little room: count, least, mean, deviation, greatest exactly; the median to 1 %.

use serde::Serialize;

/// A power of two is divided into so many buckets, so that a bucket's middle is within 0.8 % of each of its values.
const BUCKETS_PER_OCTAVE_LOG2: u32 = 6;

/// What is known of a set of times.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// How many.
    pub samples: u64,
    /// The least, µs.
    pub min_us: f64,
    /// The middle one, µs, to 1 %.
    pub median_us: f64,
    /// µs.
    pub mean_us: f64,
    /// Standard deviation, µs.
    pub deviation_us: f64,
    /// The greatest, µs.
    pub max_us: f64,
}

/// A set of times.
#[derive(Clone, Debug, Default)]
pub(crate) struct Distribution {
    count: u64,
    min_ns: u64,
    max_ns: u64,
    sum_us: f64,
    sum_us2: f64,
    /// Only buckets that hold something, in order: a connection's times fill few. At most 64 buckets in each of 58
    /// octaves.
    buckets: Vec<(u16, u32)>,
    /// The bucket of the last time, and how many of it are not yet among `buckets`: the next one is often the same.
    last: (u16, u32),
}

impl Distribution {
    /// Adds a time; a negative one, where clocks ran back, is none.
    pub fn add(&mut self, ns: i64) {
        let Ok(ns) = u64::try_from(ns) else { return };
        let us = ns as f64 / 1000.0;
        self.min_ns = if self.count == 0 {
            ns
        } else {
            self.min_ns.min(ns)
        };
        self.max_ns = self.max_ns.max(ns);
        self.count += 1;
        self.sum_us += us;
        self.sum_us2 += us * us;
        let bucket = bucket_of(ns);
        if bucket != self.last.0 {
            self.put_last();
            self.last = (bucket, 0);
        }
        self.last.1 = self.last.1.saturating_add(1);
    }

    fn put_last(&mut self) {
        let (bucket, count) = std::mem::take(&mut self.last);
        if count == 0 {
            return;
        }
        match self.buckets.binary_search_by_key(&bucket, |(b, _)| *b) {
            Ok(at) => self.buckets[at].1 = self.buckets[at].1.saturating_add(count),
            Err(at) => self.buckets.insert(at, (bucket, count)),
        }
    }

    /// What it holds besides its own size.
    pub fn heap_bytes(&self) -> usize {
        self.buckets.capacity() * size_of::<(u16, u32)>()
    }

    pub fn min_ns(&self) -> Option<i64> {
        (self.count > 0).then_some(self.min_ns as i64)
    }

    pub fn summary(&mut self) -> Option<Summary> {
        self.put_last();
        if self.count == 0 {
            return None;
        }
        let mean_us = self.sum_us / self.count as f64;
        let variance = self.sum_us2 / self.count as f64 - mean_us * mean_us;
        let [min_us, max_us] = [self.min_ns, self.max_ns].map(|ns| ns as f64 / 1000.0);
        Some(Summary {
            samples: self.count,
            min_us,
            median_us: self.median_us().clamp(min_us, max_us),
            mean_us,
            deviation_us: variance.max(0.0).sqrt(),
            max_us,
        })
    }

    fn median_us(&self) -> f64 {
        let half = self.count.div_ceil(2);
        let mut before = 0;
        let is_there = |(_, count): &&(u16, u32)| {
            before += u64::from(*count);
            before >= half
        };
        let found = self.buckets.iter().find(is_there);
        found.map_or(0.0, |(bucket, _)| middle_ns(*bucket) / 1000.0)
    }
}

/// Below 64 ns each value is its own bucket.
fn bucket_of(ns: u64) -> u16 {
    let octave = (ns.max(1).ilog2()).saturating_sub(BUCKETS_PER_OCTAVE_LOG2);
    ((u64::from(octave) << BUCKETS_PER_OCTAVE_LOG2) + (ns >> octave)) as u16
}

fn middle_ns(bucket: u16) -> f64 {
    let bucket = u32::from(bucket);
    let per_octave = 1 << BUCKETS_PER_OCTAVE_LOG2;
    if bucket < per_octave {
        return f64::from(bucket);
    }
    // The values of an octave run from 64 to 127.
    let octave = bucket / per_octave - 1;
    let value = bucket - octave * per_octave;
    (f64::from(value) + 0.5) * f64::from(octave).exp2()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_has_no_summary_and_a_clock_that_ran_back_is_no_time() {
        let mut times = Distribution::default();
        times.add(-5);
        assert_eq!(times.summary(), None);
    }

    proptest! {
        #[test]
        fn the_median_is_within_a_hundredth(
            mut times in prop::collection::vec(prop_oneof![0_i64..1 << 40, 0_i64..5], 1..200),
        ) {
            let mut distribution = Distribution::default();
            times.iter().for_each(|ns| distribution.add(*ns));
            times.sort_unstable();
            let median_us = times[(times.len() - 1) / 2] as f64 / 1000.0;
            let summary = distribution.summary().unwrap();
            prop_assert!((summary.median_us - median_us).abs() <= 0.01 * median_us + 0.001);
            prop_assert_eq!(summary.min_us, times[0] as f64 / 1000.0);
        }

        #[test]
        fn buckets_are_in_the_order_of_their_values(a in 0_u64..u64::MAX, b in 0_u64..u64::MAX) {
            prop_assert_eq!(a.min(b) == a || bucket_of(a) >= bucket_of(b), true);
            prop_assert!(bucket_of(a) as usize <= 59 * 64 + 64);
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts of positive numbers in bins of a constant ratio. Histograms of several times or hosts are merged by adding
//! their counts, so that quantiles over any time are right to half a bin.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Bins of each doubling: a bin spans 4.4 %.
const BINS_PER_DOUBLING: f64 = 16.0;

/// The bin of zero and of what is no number.
const ZERO: i16 = i16::MIN;

/// Counts by bin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram(BTreeMap<i16, u64>);

impl Histogram {
    /// Counts a value so many times.
    pub fn add(&mut self, value: f64, times: u64) {
        *self.0.entry(bin(value)).or_default() += times;
    }

    /// Adds another's counts.
    pub fn merge(&mut self, other: &Histogram) {
        for (bin, count) in &other.0 {
            *self.0.entry(*bin).or_default() += count;
        }
    }

    /// The value below which a share of the counted values is, 0 to 1; none without values.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let total: u64 = self.0.values().sum();
        let rank = (share * total as f64).ceil().max(1.0) as u64;
        let mut below = 0;
        let bins = self.0.iter();
        let mut bins = bins.skip_while(|(_, count)| {
            below += **count;
            below < rank
        });
        bins.next().map(|(bin, _)| middle(*bin))
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        postcard::to_stdvec(self).expect("numbers are encodable")
    }

    /// Of bytes that are damaged nothing is left.
    pub(super) fn from_bytes(bytes: &[u8]) -> Histogram {
        postcard::from_bytes(bytes).unwrap_or_default()
    }
}

fn bin(value: f64) -> i16 {
    match value > 0.0 {
        // A cast saturates; -32,768 itself is the bin of zero.
        true => ((value.log2() * BINS_PER_DOUBLING).floor() as i16).max(ZERO + 1),
        false => ZERO,
    }
}

fn middle(bin: i16) -> f64 {
    match bin {
        ZERO => 0.0,
        bin => ((f64::from(bin) + 0.5) / BINS_PER_DOUBLING).exp2(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[f64]) -> Histogram {
        let mut histogram = Histogram::default();
        values.iter().for_each(|value| histogram.add(*value, 1));
        histogram
    }

    proptest! {
        #[test]
        fn a_quantile_is_right_to_half_a_bin(
            mut values in prop::collection::vec(1e-6..1e12f64, 1..50), share in 0.0..=1.0f64,
        ) {
            let estimated = of(&values).quantile(share).unwrap();
            values.sort_by(f64::total_cmp);
            let rank = (share * values.len() as f64).ceil().max(1.0) as usize;
            let ratio = estimated / values[rank - 1];
            prop_assert!((0.978..1.023).contains(&ratio), "{ratio}");
        }

        #[test]
        fn merged_is_as_counted_together(
            a in prop::collection::vec(0.0..1e9f64, 0..20), b in prop::collection::vec(0.0..1e9f64, 0..20),
        ) {
            let mut merged = of(&a);
            merged.merge(&of(&b));
            prop_assert_eq!(&merged, &of(&[a, b].concat()));
            prop_assert_eq!(Histogram::from_bytes(&merged.to_bytes()), merged);
        }
    }

    #[test]
    fn zero_has_a_bin_of_its_own() {
        assert_eq!(of(&[0.0, 0.0, 5e-3]).quantile(0.5), Some(0.0));
        assert_eq!(Histogram::default().quantile(0.5), None);
    }
}

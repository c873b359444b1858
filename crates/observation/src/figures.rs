// SPDX-License-Identifier: MIT OR Apache-2.0
//! What passed a direction of a link, as a few figures.
//!
//! Pure, plain values. Start with [`DirectionFigures`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One direction of a link over a stretch of time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DirectionFigures {
    /// The link.
    pub link: String,
    /// The host that sends.
    pub from: String,
    /// The host that receives.
    pub to: String,
    /// What left it, in bits from the IP header on.
    pub left_mbps: f64,
    /// That and the rate's overhead, as a share of the rate (1: all of it); `None` unless the rate
    /// was one all the time.
    pub utilisation: Option<f64>,
    /// Mean over all intervals of the deepest queue in each.
    pub mean_queue_bytes: f64,
    /// Of 95 % of the intervals the deepest queue is no deeper, to 1 %.
    #[serde(default)]
    pub p95_queue_bytes: u64,
    /// The deepest queue.
    pub peak_queue_bytes: u64,
    /// Segments dropped, by cause.
    pub dropped: BTreeMap<String, u64>,
    /// Segments marked: congestion met.
    pub marked: u64,
}

impl DirectionFigures {
    /// For people and as the name of a column: `wan.client-server`.
    pub fn name(&self) -> String {
        format!("{}.{}-{}", self.link, self.from, self.to)
    }

    /// Every figure by its name in tables; `None` of what it does not have.
    pub fn figures(&self) -> Vec<(String, Option<f64>)> {
        let mut figures = vec![
            ("left_mbps".to_owned(), Some(self.left_mbps)),
            ("utilisation".to_owned(), self.utilisation),
            ("mean_queue_bytes".to_owned(), Some(self.mean_queue_bytes)),
            (
                "p95_queue_bytes".to_owned(),
                Some(self.p95_queue_bytes as f64),
            ),
            (
                "peak_queue_bytes".to_owned(),
                Some(self.peak_queue_bytes as f64),
            ),
        ];
        let dropped = self.dropped.iter();
        figures.extend(
            dropped.map(|(cause, count)| (format!("dropped_{cause}"), Some(*count as f64))),
        );
        figures.push(("marked".to_owned(), Some(self.marked as f64)));
        figures
    }
}

/// How often a queue was how deep: to 1 %, in little memory however long it is watched.
#[derive(Clone, Debug, Default)]
pub struct Depths {
    counts: BTreeMap<u64, u64>,
}

impl Depths {
    /// The depth in one interval.
    pub fn note(&mut self, bytes: u64) {
        *self.counts.entry(rounded(bytes)).or_default() += 1;
    }

    /// What `share` of so many intervals do not exceed; the queue was empty in those that were not noted.
    pub fn quantile(&self, share: f64, intervals: u64) -> u64 {
        let most_above = ((1.0 - share) * intervals as f64) as u64;
        let mut above = 0;
        let deepest_first = self.counts.iter().rev();
        let mut reached = deepest_first.skip_while(|(_, count)| {
            above += **count;
            above <= most_above
        });
        reached.next().map_or(0, |(bytes, _)| *bytes)
    }
}

/// Down to eight significant bits.
fn rounded(bytes: u64) -> u64 {
    let bits = (u64::BITS - bytes.leading_zeros()).saturating_sub(8);
    bytes >> bits << bits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_counts_empty_intervals() {
        let mut depths = Depths::default();
        (1..=100).for_each(|bytes| depths.note(bytes));
        assert_eq!(depths.quantile(0.95, 100), 95);
        assert_eq!(depths.quantile(0.95, 200), 90);
        assert_eq!(depths.quantile(0.95, 2_000), 0);
        assert_eq!(Depths::default().quantile(0.95, 10), 0);
    }

    #[test]
    fn a_depth_is_kept_to_one_percent() {
        for bytes in [1, 255, 256, 999, 12_500_000, u64::MAX] {
            let kept = rounded(bytes);
            assert!(
                kept <= bytes && bytes - kept <= bytes / 100,
                "{bytes}: {kept}"
            );
        }
    }
}

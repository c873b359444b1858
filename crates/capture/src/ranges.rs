// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ranges of sequence numbers that do not touch: what was seen of a sender, and what its receiver has.

use crate::prefetch::prefetch;

/// Above it the two lowest ranges become one. A receiver reports the latest ranges first (RFC 2018, section 4), so the
/// lowest matter least; a search among so many costs little.
const MAX_RANGES: usize = 256;

/// One range, and when it began to exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub start: i64,
    pub end: i64,
    /// When its first byte was seen.
    pub since_ns: i64,
    /// How many segments of data had been seen before it.
    pub after_packets: u64,
}

/// Sorted ranges.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges {
    ranges: Vec<Range>,
}

impl Ranges {
    /// Adds a range, and joins it with those that it touches.
    pub fn add(&mut self, new: Range) {
        if new.start >= new.end {
            return;
        }
        // In order, which nearly all of a connection is.
        if let Some(last) = self.ranges.last_mut()
            && last.start <= new.start
            && new.start <= last.end
        {
            last.end = last.end.max(new.end);
            return;
        }
        let from = self.ranges.partition_point(|r| r.end < new.start);
        let to = self.ranges.partition_point(|r| r.start <= new.end);
        let joined = self.ranges[from..to].iter().fold(new, |sum, r| Range {
            start: sum.start.min(r.start),
            end: sum.end.max(r.end),
            since_ns: sum.since_ns.min(r.since_ns),
            after_packets: sum.after_packets.min(r.after_packets),
        });
        self.ranges.splice(from..to, [joined]);
        if self.ranges.len() > MAX_RANGES {
            self.ranges[1].start = self.ranges[0].start;
            self.ranges.remove(0);
        }
    }

    /// What the next segments touch beside its own bytes.
    pub fn prefetch(&self) {
        self.ranges.last().into_iter().for_each(prefetch);
    }

    /// How many bytes of `start..end` are in it.
    pub fn covered(&self, start: i64, end: i64) -> i64 {
        let from = self.ranges.partition_point(|r| r.end <= start);
        let overlapping = self.ranges[from..].iter().take_while(|r| r.start < end);
        overlapping
            .map(|r| r.end.min(end) - r.start.max(start))
            .sum()
    }

    /// Forgets what lies below; answers how many bytes of `floor..below` were not in it.
    pub fn forget_below(&mut self, floor: i64, below: i64) -> i64 {
        let missing = (below - floor - self.covered(floor, below)).max(0);
        let gone = self.ranges.partition_point(|r| r.end <= below);
        self.ranges.drain(..gone);
        if let Some(first) = self.ranges.first_mut() {
            first.start = first.start.max(below);
        }
        missing
    }

    /// What it holds besides its own size.
    pub fn heap_bytes(&self) -> usize {
        self.ranges.capacity() * size_of::<Range>()
    }

    /// The lowest range that begins after `seq`.
    pub fn first_above(&self, seq: i64) -> Option<Range> {
        let at = self.ranges.partition_point(|r| r.start <= seq);
        self.ranges.get(at).copied()
    }

    /// One past the highest number.
    pub fn end(&self) -> Option<i64> {
        self.ranges.last().map(|r| r.end)
    }

    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn range(start: i64, end: i64) -> Range {
        Range {
            start,
            end,
            since_ns: 0,
            after_packets: 0,
        }
    }

    proptest! {
        #[test]
        fn it_holds_what_a_set_of_numbers_holds(
            added in prop::collection::vec((0_i64..100, 0_i64..12), 0..40),
            asked in (0_i64..100, 0_i64..50),
            below in 0_i64..100,
        ) {
            let mut ranges = Ranges::default();
            let mut numbers = BTreeSet::new();
            for (start, length) in added {
                ranges.add(range(start, start + length));
                numbers.extend(start..start + length);
            }
            let (start, end) = (asked.0, asked.0 + asked.1);
            prop_assert_eq!(ranges.covered(start, end), numbers.range(start..end).count() as i64);
            let missing = (0..below).filter(|n| !numbers.contains(n)).count();
            prop_assert_eq!(ranges.forget_below(0, below), missing as i64);
            prop_assert_eq!(ranges.covered(0, 200), numbers.range(below..).count() as i64);
            for pair in ranges.ranges.windows(2) {
                prop_assert!(pair[0].end < pair[1].start);
            }
        }
    }

    #[test]
    fn holes_without_end_are_bounded() {
        let mut ranges = Ranges::default();
        (0..10_000).for_each(|i| ranges.add(range(i * 10, i * 10 + 1)));
        assert_eq!(ranges.ranges.len(), MAX_RANGES);
        assert_eq!(ranges.end(), Some(99_991));
    }
}

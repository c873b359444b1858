// SPDX-License-Identifier: MIT OR Apache-2.0
//! Disjoint ranges of segment numbers: what arrived beyond a hole. Memory goes by the holes.

use std::collections::VecDeque;

use super::Block;

/// Ranges in rising order; no two touch.
#[derive(Debug, Default)]
pub(super) struct Ranges {
    held: VecDeque<Block>,
}

impl Ranges {
    /// Adds `block`, and tells of each part of it that was not held, in rising order.
    pub(super) fn insert(&mut self, block: Block, mut fresh: impl FnMut(Block)) {
        let begin = self.first_reaching(block.from);
        let (mut end, mut merged, mut from) = (begin, block, block.from);
        while let Some(&held) = self.held.get(end).filter(|held| held.from <= block.until) {
            if from < held.from {
                let until = held.from;
                fresh(Block { from, until });
            }
            from = from.max(held.until);
            merged.from = merged.from.min(held.from);
            merged.until = merged.until.max(held.until);
            end += 1;
        }
        if from < block.until {
            let until = block.until;
            fresh(Block { from, until });
        }
        self.replace(begin, end, merged);
    }

    /// The range that holds `number`.
    pub(super) fn containing(&self, number: u64) -> Option<Block> {
        let found = self.held.get(self.first_reaching(number + 1))?;
        found.contains(number).then_some(*found)
    }

    /// The lowest range.
    pub(super) fn first(&self) -> Option<Block> {
        self.held.front().copied()
    }

    /// One past the highest number.
    pub(super) fn end(&self) -> Option<u64> {
        self.held.back().map(|last| last.until)
    }

    /// Forgets all numbers below `limit`.
    pub(super) fn forget_below(&mut self, limit: u64) {
        while let Some(first) = self.held.front_mut() {
            if first.until > limit {
                first.from = first.from.max(limit);
                return;
            }
            self.held.pop_front();
        }
        if self.held.capacity() > 0 {
            self.held = VecDeque::new();
        }
    }

    /// The place of the first range that ends at `number` or later; most often asked of the last.
    fn first_reaching(&self, number: u64) -> usize {
        let count = self.held.len();
        match count.checked_sub(2).map(|place| self.held[place]) {
            Some(before_last) if before_last.until >= number => {
                self.held.partition_point(|held| held.until < number)
            }
            _ => match self.held.back() {
                Some(last) if last.until >= number => count - 1,
                _ => count,
            },
        }
    }

    /// `merged` instead of the ranges at `begin..end`.
    fn replace(&mut self, begin: usize, end: usize, merged: Block) {
        if begin == end {
            self.held.insert(begin, merged);
            return;
        }
        self.held[begin] = merged;
        self.held.drain(begin + 1..end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Against a set of numbers: what is fresh, what is held, and that ranges are disjoint.
        #[test]
        fn ranges_are_a_set_of_numbers(
            steps in prop::collection::vec((0u64..200, 1u64..30, 0u64..20), 1..80),
        ) {
            let (mut ranges, mut set) = (Ranges::default(), BTreeSet::new());
            let mut low = 0;
            for (from, length, forget) in steps {
                let block = Block { from: low + from, until: low + from + length };
                let mut told = Vec::new();
                ranges.insert(block, |part| told.extend(part.from..part.until));
                let fresh: Vec<u64> = (block.from..block.until).filter(|n| set.insert(*n)).collect();
                prop_assert_eq!(told, fresh);
                low += forget / 10 * forget;
                ranges.forget_below(low);
                set = set.split_off(&low);
                prop_assert_eq!(ranges.first().map(|first| first.from), set.first().copied());
                prop_assert_eq!(ranges.end(), set.last().map(|last| last + 1));
                prop_assert!(ranges.held.iter().zip(ranges.held.iter().skip(1)).all(|(a, b)| a.until < b.from));
                for number in low..low + 240 {
                    prop_assert_eq!(ranges.containing(number).is_some(), set.contains(&number));
                }
            }
        }
    }
}

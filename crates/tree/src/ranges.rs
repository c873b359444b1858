// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which bytes of a file are there.

use std::collections::BTreeMap;

/// A set of bytes, as stretches that do not touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges {
    /// First byte, and one past the last.
    stretches: BTreeMap<u64, u64>,
    bytes: u64,
}

impl Ranges {
    /// Adds the bytes from `from` to before `until`.
    pub fn insert(&mut self, from: u64, until: u64) {
        if from >= until {
            return;
        }
        let (mut begin, mut end) = (from, until);
        while let Some((&first, &last)) = self.stretches.range(..=end).next_back() {
            if last < begin {
                break;
            }
            (begin, end) = (begin.min(first), end.max(last));
            self.bytes -= last - first;
            self.stretches.remove(&first);
        }
        self.bytes += end - begin;
        self.stretches.insert(begin, end);
    }

    /// How many there are.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// All before this one are there.
    pub fn prefix(&self) -> u64 {
        self.stretches.get(&0).copied().unwrap_or_default()
    }

    /// The stretches, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.stretches.iter().map(|(from, until)| (*from, *until))
    }

    /// What lacks from `from` to before `until`.
    pub fn missing_of(&self, from: u64, until: u64) -> Vec<(u64, u64)> {
        let before = self.stretches.range(..=from).next_back();
        let mut at = before.map_or(from, |(_, last)| from.max(*last));
        let mut missing = Vec::new();
        for (first, last) in self.stretches.range(at..until.max(at)) {
            if at < *first {
                missing.push((at, *first));
            }
            at = *last;
        }
        if at < until {
            missing.push((at, until));
        }
        missing
    }

    /// What lacks of a file of `size` bytes, in `most` stretches at most: beyond that the last one goes over what is there.
    pub fn missing(&self, size: u64, most: usize) -> Vec<(u64, u64)> {
        let mut missing = Vec::new();
        let mut from = 0;
        for (first, last) in self.iter().chain([(size, size)]) {
            let until = first.min(size);
            if from < until {
                missing.push((from, until));
            }
            from = from.max(last);
        }
        if missing.len() > most {
            missing.truncate(most);
            if let Some(last) = missing.last_mut() {
                last.1 = size;
            }
        }
        missing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against one flag for each byte.
        #[test]
        fn it_is_the_set_of_bytes(pieces in prop::collection::vec((0u64..200, 0u64..40), 0..40), most in 1usize..8, size in 1u64..256) {
            let (mut ranges, mut flags) = (Ranges::default(), [false; 256]);
            for (from, bytes) in pieces {
                ranges.insert(from, from + bytes);
                flags[from as usize..(from + bytes) as usize].fill(true);
                prop_assert_eq!(ranges.bytes(), flags.iter().filter(|flag| **flag).count() as u64);
                prop_assert_eq!(ranges.prefix(), flags.iter().take_while(|flag| **flag).count() as u64);
                let stretches: Vec<_> = ranges.iter().collect();
                prop_assert!(stretches.windows(2).all(|pair| pair[0].1 < pair[1].0));
            }
            // What is there may go beyond the size that is asked for.
            let filled = |missing: &[(u64, u64)]| {
                let mut filled = flags;
                for (from, until) in missing {
                    filled[*from as usize..*until as usize].fill(true);
                }
                filled[..size as usize].iter().all(|flag| *flag)
            };
            for (from, until) in [(0, size), (size / 2, size), (size / 3, size / 2)] {
                let of = ranges.missing_of(from, until);
                prop_assert!(of.iter().all(|(from, until)| from < until));
                let missing: Vec<_> = of.iter().flat_map(|(from, until)| *from..*until).collect();
                let unset = (from..until).filter(|at| !flags[*at as usize]);
                prop_assert_eq!(missing, unset.collect::<Vec<_>>());
            }
            let all = ranges.missing(size, usize::MAX);
            for (from, until) in &all {
                prop_assert!(from < until && *until <= size);
                prop_assert!(flags[*from as usize..*until as usize].iter().all(|flag| !flag));
            }
            prop_assert!(filled(&all));
            let few = ranges.missing(size, most);
            prop_assert!(few.len() <= most && filled(&few));
        }
    }
}

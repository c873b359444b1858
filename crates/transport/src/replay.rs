// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which numbers were opened: a window that slides with the highest one (RFC 4303, 3.4.3).

/// Numbers that are told apart below the highest: more than are reordered on a path of 10 Gb/s by 4 ms.
const WINDOW: u64 = 4096;
const WORDS: usize = (WINDOW / 64) as usize;

/// The numbers seen.
#[derive(Debug)]
pub(crate) struct ReplayWindow {
    /// One past the highest number.
    end: u64,
    /// Of number n: bit n % 64 of word n / 64 % [`WORDS`].
    seen: [u64; WORDS],
}

impl ReplayWindow {
    pub(crate) fn new() -> ReplayWindow {
        ReplayWindow {
            end: 0,
            seen: [0; WORDS],
        }
    }

    /// Whether it is new, and not so old that nobody knows.
    pub(crate) fn is_new(&self, number: u64) -> bool {
        if number >= self.end {
            return true;
        }
        let (word, bit) = place(number);
        !self.is_too_old(number) && self.seen[word] & bit == 0
    }

    /// Whether it, and every number below, is so old that nobody knows.
    pub(crate) fn is_too_old(&self, number: u64) -> bool {
        // The oldest word is shared with numbers to come.
        self.end.saturating_sub(number) > WINDOW - 64
    }

    /// It was opened.
    pub(crate) fn note(&mut self, number: u64) {
        if number >= self.end {
            self.slide(number);
        }
        let (word, bit) = place(number);
        self.seen[word] |= bit;
    }

    fn slide(&mut self, number: u64) {
        let newest = self.end.div_ceil(64).max(number / 64 + 1);
        let fresh = (self.end.div_ceil(64)..newest).rev().take(WORDS);
        for word in fresh {
            self.seen[word as usize % WORDS] = 0;
        }
        self.end = number + 1;
    }
}

fn place(number: u64) -> (usize, u64) {
    (((number / 64) as usize) % WORDS, 1 << (number % 64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Against a set: nothing is new twice, and all that is new and recent is taken.
        #[test]
        fn no_number_is_new_twice(steps in prop::collection::vec((0u64..3, 0u64..9000), 1..300)) {
            let (mut window, mut seen) = (ReplayWindow::new(), BTreeSet::new());
            for (kind, step) in steps {
                let end = seen.last().map_or(0, |last| last + 1);
                let number = match kind {
                    0 => end + step % 3,
                    1 => end.saturating_sub(step % 100),
                    _ => (end + 4500).saturating_sub(step),
                };
                let is_recent = number + WINDOW - 64 >= end;
                prop_assert_eq!(window.is_new(number), is_recent && !seen.contains(&number), "{} of {}", number, end);
                if window.is_new(number) {
                    window.note(number);
                    seen.insert(number);
                }
            }
        }
    }
}

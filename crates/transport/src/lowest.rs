// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lowest byte that is on its way, at any moment. Segments leave in the order of what was given, which is not that of the
//! bytes where another connection left some of them.

use std::collections::VecDeque;

/// Of segments from some number on.
#[derive(Debug, Default)]
pub(crate) struct Lowest {
    /// Segment and its lowest byte; each is lower than all of later segments: both rise.
    segments: VecDeque<(u64, (u32, u64))>,
}

impl Lowest {
    /// A new segment begins so, if it has bytes.
    pub(crate) fn push(&mut self, segment: u64, lowest: Option<(u32, u64)>) {
        let Some(lowest) = lowest else { return };
        while self
            .segments
            .back()
            .is_some_and(|(_, last)| *last >= lowest)
        {
            self.segments.pop_back();
        }
        self.segments.push_back((segment, lowest));
    }

    /// Segments before this one have arrived.
    pub(crate) fn forget_below(&mut self, segment: u64) {
        while self
            .segments
            .front()
            .is_some_and(|(first, _)| *first < segment)
        {
            self.segments.pop_front();
        }
    }

    /// `None`: no bytes are on their way.
    pub(crate) fn get(&self) -> Option<(u32, u64)> {
        self.segments.front().map(|(_, lowest)| *lowest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_the_lowest_of_all(lowest in prop::collection::vec(prop::option::of((0u32..3, 0u64..50)), 1..60), step in 1usize..8) {
            let mut kept = Lowest::default();
            for (segment, one) in lowest.iter().enumerate() {
                kept.push(segment as u64, *one);
                let first = segment / step * (step - 1);
                kept.forget_below(first as u64);
                prop_assert_eq!(kept.get(), lowest[first..=segment].iter().flatten().min().copied());
            }
        }
    }
}

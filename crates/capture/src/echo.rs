// SPDX-License-Identifier: MIT OR Apache-2.0
//! Round-trip times by timestamps: from a TSval that passes the capture to its first echo (RFC 7323; the method of
//! passive ping, Nichols 2017). It works where data flows in one direction only, for the side that sends it.

use crate::prefetch::prefetch;
use std::collections::VecDeque;

/// Values that wait for their echo; when there are more, every second one is no longer waited for.
const MAX_WAITING: usize = 64;

#[derive(Clone, Debug, Default)]
pub(crate) struct Echoes {
    waiting: VecDeque<(u32, i64)>,
    last_value: Option<u32>,
}

impl Echoes {
    /// A segment with this TSval passes the capture.
    pub fn sent(&mut self, tsval: u32, time_ns: i64) {
        let is_new = |last: u32| tsval.wrapping_sub(last) as i32 > 0;
        if !self.last_value.is_none_or(is_new) {
            return;
        }
        self.last_value = Some(tsval);
        if self.waiting.len() == MAX_WAITING {
            let mut keep = false;
            self.waiting.retain(|_| {
                keep = !keep;
                keep
            });
        }
        self.waiting.push_back((tsval, time_ns));
    }

    /// What the next segments touch beside its own bytes.
    pub fn prefetch(&self) {
        let ends = [self.waiting.front(), self.waiting.back()];
        ends.into_iter().flatten().for_each(prefetch);
    }

    /// What it holds besides its own size.
    pub fn heap_bytes(&self) -> usize {
        self.waiting.capacity() * size_of::<(u32, i64)>()
    }

    /// A segment of the other end echoes this value: how long that took, if it is the first echo.
    pub fn echoed(&mut self, tsecr: u32, time_ns: i64) -> Option<i64> {
        while let Some((tsval, sent_ns)) = self.waiting.front().copied() {
            if tsval.wrapping_sub(tsecr) as i32 > 0 {
                return None;
            }
            self.waiting.pop_front();
            if tsval == tsecr {
                return Some(time_ns.saturating_sub(sent_ns));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_echo_of_a_value_counts() {
        let mut echoes = Echoes::default();
        echoes.sent(10, 100);
        echoes.sent(10, 150);
        echoes.sent(12, 300);
        assert_eq!(echoes.echoed(10, 400), Some(300));
        assert_eq!(echoes.echoed(10, 500), None);
        assert_eq!(echoes.echoed(11, 600), None, "never sent");
        assert_eq!(echoes.echoed(12, 700), Some(400));
    }

    #[test]
    fn what_is_never_echoed_is_bounded() {
        let mut echoes = Echoes::default();
        (0..10_000).for_each(|i| echoes.sent(i, i64::from(i)));
        assert!(echoes.waiting.len() <= MAX_WAITING);
    }
}

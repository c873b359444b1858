// SPDX-License-Identifier: MIT OR Apache-2.0
//! When each datagram was sent, for those that an acknowledgement may still echo.

use std::collections::VecDeque;

/// Datagrams that are remembered beyond those on their way, for acknowledgements that come late.
const SPARE: usize = 4096;

/// Times of datagrams of consecutive numbers.
#[derive(Debug, Default)]
pub(crate) struct Departures {
    first: u64,
    times_ns: VecDeque<u64>,
}

impl Departures {
    /// The next number left; `on_way` segments have not been acknowledged.
    pub(crate) fn note(&mut self, now_ns: u64, on_way: usize) {
        self.times_ns.push_back(now_ns);
        while self.times_ns.len() > 2 * on_way + SPARE {
            self.times_ns.pop_front();
            self.first += 1;
        }
    }

    /// When it was sent; of those that are forgotten, a later time. `None`: never.
    pub(crate) fn at_ns(&self, number: u64) -> Option<u64> {
        let place = number.saturating_sub(self.first);
        self.times_ns.get(usize::try_from(place).ok()?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_times_are_forgotten_and_what_never_left_has_none() {
        let mut departures = Departures::default();
        for number in 0..10_000 {
            departures.note(number + 5, 100);
        }
        let oldest = 10_000 - 200 - SPARE as u64;
        let times =
            [0, oldest, oldest + 1, 9_999, 10_000, u64::MAX].map(|number| departures.at_ns(number));
        let known = |number: u64| Some(number + 5);
        assert_eq!(
            times,
            [
                known(oldest),
                known(oldest),
                known(oldest + 1),
                known(9_999),
                None,
                None
            ]
        );
    }
}

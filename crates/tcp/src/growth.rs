// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an acknowledgement counts for the window's growth.

use fatpath_cc::Window;

use super::spec::Growth;

/// RFC 3465, 2.2: slow start grows by two segments an acknowledgement at most (L).
const MOST_IN_SLOW_START_PKTS: u32 = 2;
/// RFC 3465, 2.3: by one in the slow start after a timeout.
const MOST_AFTER_TIMEOUT_PKTS: u32 = 1;

/// Counts for the window's growth.
#[derive(Debug)]
pub(super) struct GrowthCount {
    growth: Growth,
    /// The slow start that a timeout began goes on.
    follows_timeout: bool,
}

impl GrowthCount {
    pub(super) fn new(growth: Growth) -> GrowthCount {
        GrowthCount {
            growth,
            follows_timeout: false,
        }
    }

    pub(super) fn timed_out(&mut self) {
        self.follows_timeout = true;
    }

    /// Segments that count, of `delivered_pkts` that an acknowledgement says have arrived.
    pub(super) fn pkts(&mut self, window: &Window, delivered_pkts: u32) -> u32 {
        let is_slow_start = window.cwnd_pkts < window.ssthresh_pkts;
        self.follows_timeout &= is_slow_start;
        match self.growth {
            Growth::Segments => delivered_pkts,
            Growth::Acks => delivered_pkts.min(1),
            Growth::AppropriateBytes if !is_slow_start => delivered_pkts,
            Growth::AppropriateBytes => delivered_pkts.min(match self.follows_timeout {
                true => MOST_AFTER_TIMEOUT_PKTS,
                false => MOST_IN_SLOW_START_PKTS,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_start_counts_two_at_most_and_one_after_a_timeout() {
        let mut window = Window::new(10);
        let mut count = GrowthCount::new(Growth::AppropriateBytes);
        let counted = |count: &mut GrowthCount, window: &Window| {
            [1, 2, 9].map(|pkts| count.pkts(window, pkts))
        };
        assert_eq!(counted(&mut count, &window), [1, 2, 2]);
        count.timed_out();
        assert_eq!(counted(&mut count, &window), [1, 1, 1]);
        window.ssthresh_pkts = 10;
        assert_eq!(counted(&mut count, &window), [1, 2, 9]);
        window.ssthresh_pkts = 20;
        assert_eq!(
            counted(&mut count, &window),
            [1, 2, 2],
            "another slow start"
        );
    }

    #[test]
    fn acknowledgements_count_one_where_they_are_counted() {
        let mut count = GrowthCount::new(Growth::Acks);
        assert_eq!(
            [0, 1, 9].map(|pkts| count.pkts(&Window::new(10), pkts)),
            [0, 1, 1]
        );
    }
}

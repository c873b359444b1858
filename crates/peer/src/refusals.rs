// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which of those who were not let in are listed: strangers do not fill a log.

use std::time::{Duration, Instant};

/// Lines in [`PER`].
const MOST_LISTED: u32 = 20;
const PER: Duration = Duration::from_secs(60);

/// Counts those who were not let in.
pub struct Refusals {
    since: Instant,
    listed: u32,
    unlisted: u32,
}

impl Default for Refusals {
    fn default() -> Refusals {
        Refusals {
            since: Instant::now(),
            listed: 0,
            unlisted: 0,
        }
    }
}

impl Refusals {
    /// How many were not listed before this one; `None`: nor is this one.
    pub fn another(&mut self) -> Option<u32> {
        if self.since.elapsed() >= PER {
            (self.since, self.listed) = (Instant::now(), 0);
        }
        if self.listed >= MOST_LISTED {
            self.unlisted += 1;
            return None;
        }
        self.listed += 1;
        Some(std::mem::take(&mut self.unlisted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_who_are_refused_are_counted() {
        let mut refused = Refusals::default();
        let listed = (0..2 * MOST_LISTED).filter_map(|_| refused.another());
        assert_eq!(listed.collect::<Vec<_>>(), [0; MOST_LISTED as usize]);
        refused.since = Instant::now()
            .checked_sub(PER)
            .expect("the host has run for longer");
        assert_eq!(refused.another(), Some(MOST_LISTED));
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! How often rules take what is measured of their paths: each time the policy is published, and all sockets are walked.

use std::time::{Duration, Instant};

/// So long after values were applied only an increase follows. A flow whose buffer is too small loses at once, one whose
/// buffer is too large can wait.
const LEAST_TIME_TO_FALL: Duration = Duration::from_secs(10);

/// And nothing but an increase for so many times what applying them took.
const REST_TO_FALL: u32 = 20;

/// And nothing for so many times. Whether a larger buffer brings something is judged by the next few looks: it is not to
/// come after them.
const LEAST_REST: u32 = 4;

/// When values were applied last.
#[derive(Clone, Copy, Default)]
pub(crate) struct Pace(Option<Applied>);

#[derive(Clone, Copy)]
struct Applied {
    at: Instant,
    took: Duration,
}

/// What may be applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Allowed {
    Nothing,
    Increases,
    All,
}

impl Pace {
    /// Values were applied, or it was tried in vain.
    pub(crate) fn applied(begun: Instant, ended: Instant) -> Pace {
        Pace(Some(Applied {
            at: ended,
            took: ended.duration_since(begun),
        }))
    }

    pub(crate) fn allowed(self, now: Instant) -> Allowed {
        let Some(Applied { at, took }) = self.0 else {
            return Allowed::All;
        };
        let since = now.duration_since(at);
        if since < took.saturating_mul(LEAST_REST) {
            Allowed::Nothing
        } else if since < LEAST_TIME_TO_FALL.max(took.saturating_mul(REST_TO_FALL)) {
            Allowed::Increases
        } else {
            Allowed::All
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(took_ms: u64, since_ms: u64) -> Allowed {
        let begun = Instant::now();
        let ended = begun + Duration::from_millis(took_ms);
        Pace::applied(begun, ended).allowed(ended + Duration::from_millis(since_ms))
    }

    #[test]
    fn only_an_increase_follows_soon() {
        assert_eq!(Pace::default().allowed(Instant::now()), Allowed::All);
        assert_eq!(allowed(5, 19), Allowed::Nothing);
        assert_eq!(allowed(5, 20), Allowed::Increases);
        assert_eq!(allowed(5, 9_999), Allowed::Increases);
        assert_eq!(allowed(5, 10_000), Allowed::All);
    }

    #[test]
    fn what_takes_long_is_not_done_often() {
        assert_eq!(allowed(1_000, 3_999), Allowed::Nothing);
        assert_eq!(allowed(1_000, 19_999), Allowed::Increases);
        assert_eq!(allowed(1_000, 20_000), Allowed::All);
    }

    /// How often the rule of a path that rises and falls at every look is applied in 1000 s.
    fn times_of_one_that_wavers(took: Duration) -> u32 {
        let begun = Instant::now();
        let (mut now, mut pace, mut is_high, mut times) = (begun, Pace::default(), false, 0);
        while now.duration_since(begun) < Duration::from_secs(1_000) {
            let is_allowed = match pace.allowed(now) {
                Allowed::Nothing => false,
                Allowed::Increases => !is_high,
                Allowed::All => true,
            };
            if is_allowed {
                pace = Pace::applied(now, now + took);
                (is_high, times, now) = (!is_high, times + 1, now + took);
            }
            now += Duration::from_secs(2);
        }
        times
    }

    #[test]
    fn a_path_that_wavers_is_followed_now_and_then() {
        for took_ms in [1, 99, 101, 500, 3_000] {
            let took = Duration::from_millis(took_ms);
            let times = times_of_one_that_wavers(took);
            assert!((10..=200).contains(&times), "{took:?}: {times}");
            let share = took * (times - 1);
            assert!(share <= Duration::from_secs(1_000) / 10, "{took:?}");
        }
    }
}

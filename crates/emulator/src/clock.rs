// SPDX-License-Identifier: MIT OR Apache-2.0
//! The forwarder's time: monotonic nanoseconds since it began.

use rustix::time::{ClockId, Timespec, clock_gettime};

const SECOND_NS: u64 = 1_000_000_000;

/// Monotonic time from the start of the forwarder.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start_ns: u64,
}

impl Clock {
    pub(crate) fn start() -> Clock {
        Clock {
            start_ns: monotonic_ns(),
        }
    }

    pub(crate) fn now_ns(&self) -> u64 {
        monotonic_ns() - self.start_ns
    }

    /// A moment of this clock, as the kernel's timers count. One beyond their end does not come.
    pub(crate) fn moment(&self, at_ns: u64) -> Timespec {
        let at_ns = self.start_ns.saturating_add(at_ns);
        Timespec {
            tv_sec: (at_ns / SECOND_NS) as i64,
            tv_nsec: (at_ns % SECOND_NS) as i64,
        }
    }

    /// A moment of the monotonic clock on this one; 0 if it was before the start.
    pub(crate) fn at_monotonic_ns(&self, at_ns: u64) -> u64 {
        at_ns.saturating_sub(self.start_ns)
    }
}

pub(crate) fn monotonic_ns() -> u64 {
    ns_of(clock_gettime(ClockId::Monotonic))
}

/// Since 1970.
pub(crate) fn unix_ns() -> u64 {
    ns_of(clock_gettime(ClockId::Realtime))
}

fn ns_of(now: Timespec) -> u64 {
    // Not negative, and 584 years fit.
    now.tv_sec as u64 * SECOND_NS + now.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Such as the end of an outage of 584 years. In the past, the timer would ring at once, for ever.
    #[test]
    fn the_last_moment_is_not_in_the_past() {
        let clock = Clock { start_ns: 7 };
        let last = clock.moment(u64::MAX - 1);
        assert!(last.tv_sec >= clock.moment(u64::MAX / 2).tv_sec);
    }
}

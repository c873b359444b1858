// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the time of a thread goes: it waits for what it knows, it works, or something else stops it, which is a disk where the
//! thread does nothing else that could. The clocks are read some times a second, whatever the thread does meanwhile.

use rustix::time::{ClockId, clock_gettime};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// What a thread's clocks show, nanoseconds since any moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Time.
    pub now_ns: u64,
    /// For how long a processor ran the thread.
    pub ran_ns: u64,
    /// For how long it could have run, and others did; 0 where the kernel does not tell.
    pub queued_ns: u64,
}

/// Where a stretch of a thread's time went, nanoseconds: the sum is its length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// It waited for what it knows of.
    pub waited_ns: u64,
    /// It ran, or could have run.
    pub worked_ns: u64,
    /// It stood in calls of the kernel.
    pub stood_ns: u64,
}

impl Spent {
    /// From one reading to another, of which the thread knows that it waited for `waited_ns`.
    pub fn between(before: Reading, after: Reading, waited_ns: u64) -> Spent {
        let since = |after: u64, before: u64| after.saturating_sub(before);
        let length_ns = since(after.now_ns, before.now_ns);
        let waited_ns = waited_ns.min(length_ns);
        let ran_ns = since(after.ran_ns, before.ran_ns);
        let queued_ns = since(after.queued_ns, before.queued_ns);
        // Some of both belongs to the waits, which end late on a busy machine: what stood may be less than it was.
        let worked_ns = (length_ns - waited_ns).min(ran_ns.saturating_add(queued_ns));
        Spent {
            waited_ns,
            worked_ns,
            stood_ns: length_ns - waited_ns - worked_ns,
        }
    }
}

/// The clocks of the thread that made it.
pub struct ThreadClock {
    begun: Instant,
    /// `None`: the kernel does not tell how long a thread waits for a processor.
    schedstat: Option<File>,
    last: Reading,
}

impl ThreadClock {
    /// For how long what [`ThreadClock::take`] tells is worth a reading, which takes about a microsecond.
    pub const EVERY: Duration = Duration::from_millis(100);

    /// Of this thread, from now on.
    pub fn start() -> ThreadClock {
        let mut clock = ThreadClock {
            begun: Instant::now(),
            schedstat: File::open("/proc/thread-self/schedstat").ok(),
            last: Reading::default(),
        };
        clock.last = clock.read();
        clock
    }

    /// Where its time went since the last call, of which it knows that it waited for `waited_ns`.
    pub fn take(&mut self, waited_ns: u64) -> Spent {
        let now = self.read();
        let before = std::mem::replace(&mut self.last, now);
        Spent::between(before, self.last, waited_ns)
    }

    /// The next reading is worth it.
    pub fn is_due(&self) -> bool {
        let since_ns = self.begun.elapsed().as_nanos() as u64 - self.last.now_ns;
        since_ns >= ThreadClock::EVERY.as_nanos() as u64
    }

    fn read(&self) -> Reading {
        let ran = clock_gettime(ClockId::ThreadCPUTime);
        Reading {
            now_ns: self.begun.elapsed().as_nanos() as u64,
            ran_ns: ran.tv_sec as u64 * 1_000_000_000 + ran.tv_nsec as u64,
            queued_ns: self.queued_ns().unwrap_or_default(),
        }
    }

    /// The second of the numbers that the kernel tells.
    fn queued_ns(&self) -> Option<u64> {
        let mut text = [0; 64];
        let length = self.schedstat.as_ref()?.read_at(&mut text, 0).ok()?;
        let text = std::str::from_utf8(&text[..length]).ok()?;
        text.split_whitespace().nth(1)?.parse().ok()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test ends where it cannot go on
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::hint::black_box;
    use std::thread;

    proptest! {
        /// Whatever the clocks show, each nanosecond is counted once.
        #[test]
        fn what_was_spent_is_the_time_that_passed(
            (before, after) in any::<([u64; 3], [u64; 3])>(),
            waited_ns in any::<u64>(),
        ) {
            let reading = |[now_ns, ran_ns, queued_ns]: [u64; 3]| Reading { now_ns, ran_ns, queued_ns };
            let spent = Spent::between(reading(before), reading(after), waited_ns);
            let sum = spent.waited_ns + spent.worked_ns + spent.stood_ns;
            prop_assert_eq!(sum, after[0].saturating_sub(before[0]));
            prop_assert!(spent.waited_ns <= waited_ns);
        }
    }

    /// A thread that sleeps where it knows of no wait stands; one that reckons works, however busy the machine is.
    #[test]
    fn a_thread_stands_or_works() {
        let mut clock = ThreadClock::start();
        thread::sleep(Duration::from_millis(50));
        let slept = clock.take(0);
        assert!(slept.stood_ns > 40_000_000, "{slept:?}");
        let begun = Instant::now();
        let mut sum = 0_u64;
        while begun.elapsed() < Duration::from_millis(50) {
            sum = black_box(sum.wrapping_add(1));
        }
        let worked = clock.take(0);
        assert!(worked.stood_ns < worked.worked_ns / 4, "{worked:?}");
        thread::sleep(Duration::from_millis(20));
        let waited = clock.take(20_000_000);
        assert_eq!(waited.waited_ns, 20_000_000);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The emulator on one processor, and what the hosts run on the others.
//!
//! The emulator delivers packets one after the other, and the kernel wakes who reads them where they are delivered
//! (`wake_affine`): there a program waits until a burst is over, for the kernel does not interrupt itself (PREEMPT_NONE). It
//! then reads all at once, and a window that does not grow is acknowledged when it is read. Start with [`Processors::begin`].

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Where this thread may run, and what it starts.
pub(crate) struct Processors {
    /// As it was given; `None`: all is left as it is.
    given: Option<CpuSet>,
}

impl Processors {
    /// What is started now is on the first processor; if there is a second one, and it `is_apart`.
    pub(crate) fn begin(is_apart: bool) -> Processors {
        let given = sched_getaffinity(None).ok();
        let processors = Processors {
            given: given.filter(|given| is_apart && given.count() > 1),
        };
        processors.put(|is_first| is_first);
        processors
    }

    /// What is started from now on is on the others.
    pub(crate) fn others(&self) {
        self.put(|is_first| !is_first);
    }

    fn put(&self, is_wanted: impl Fn(bool) -> bool) {
        let Some(given) = &self.given else {
            return;
        };
        let all = (0..CpuSet::MAX_CPU).filter(|cpu| given.is_set(*cpu));
        let mut wanted = CpuSet::new();
        for (place, cpu) in all.enumerate() {
            if is_wanted(place == 0) {
                wanted.set(cpu);
            }
        }
        let _ = sched_setaffinity(None, &wanted); // they were this thread's
    }
}

impl Drop for Processors {
    fn drop(&mut self) {
        self.put(|_| true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here() -> Vec<usize> {
        let set = sched_getaffinity(None).unwrap();
        (0..CpuSet::MAX_CPU)
            .filter(|cpu| set.is_set(*cpu))
            .collect()
    }

    #[test]
    fn the_first_processor_is_apart_until_the_end() {
        let given = here();
        let processors = Processors::begin(true);
        if let [first, others @ ..] = &given[..]
            && !others.is_empty()
        {
            assert_eq!(here(), [*first]);
            processors.others();
            assert_eq!(here(), others);
        }
        drop(processors);
        assert_eq!(here(), given);
        Processors::begin(false).others();
        assert_eq!(here(), given);
    }
}

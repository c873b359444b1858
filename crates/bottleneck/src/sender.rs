// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the time of the sending thread goes, from the first data on: it waits for something, reads files, or works. The
//! carrier knows what it waits for while it has something to send; the sender, while it has nothing.

use crate::SenderTimes;
use fatpath_driver::{Spent, ThreadClock, Waits};

/// Why there is nothing to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// More is not read, or not found.
    Source,
    /// A file that went in part is read for its checksum.
    Disk,
    /// It is hashed.
    Processor,
    /// The last data are on their way.
    Path,
    /// The other end has not answered.
    Answers,
}

/// Sums, nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    source: u64,
    disk: u64,
    processor: u64,
    rate: u64,
    path: u64,
    window: u64,
    receiver: u64,
    answers: u64,
}

impl Sums {
    fn idled(&mut self, why: Idle, ns: u64) {
        *match why {
            Idle::Source => &mut self.source,
            Idle::Disk => &mut self.disk,
            Idle::Processor => &mut self.processor,
            Idle::Path => &mut self.path,
            Idle::Answers => &mut self.answers,
        } += ns;
    }

    /// A stretch of time has passed, of which the thread waited for `waits`, beside what it idled.
    fn passed(&mut self, waits: &Waits, spent: &Spent) {
        self.path += waits.path_ns;
        self.rate += waits.rate_ns;
        self.window += waits.window_ns;
        self.receiver += waits.receiver_ns;
        self.processor += spent.worked_ns;
        self.disk += spent.stood_ns; // it calls nothing else that blocks
    }

    fn times(&self) -> SenderTimes {
        SenderTimes {
            source_us: self.source / 1000,
            disk_us: self.disk / 1000,
            processor_us: self.processor / 1000,
            rate_us: self.rate / 1000,
            path_us: self.path / 1000,
            window_us: self.window / 1000,
            receiver_us: self.receiver / 1000,
            answers_us: self.answers / 1000,
        }
    }
}

/// The account of this thread.
#[derive(Default)]
pub struct Account {
    sums: Sums,
    /// `None`: no data have been given to the carrier.
    clock: Option<ThreadClock>,
    /// Idle since the clock was read.
    idle_ns: u64,
}

impl Account {
    /// Data are given to the carrier, which had waited for nothing so far. Says whether they are the first.
    pub fn begin(&mut self) -> bool {
        let is_first = self.clock.is_none();
        self.clock.get_or_insert_with(ThreadClock::start);
        is_first
    }

    /// It had nothing to send.
    pub fn idled(&mut self, why: Idle, ns: u64) {
        if self.clock.is_some() {
            self.idle_ns += ns;
            self.sums.idled(why, ns);
        }
    }

    /// [`Account::settle`] is worth it.
    pub fn is_due(&self) -> bool {
        self.clock.as_ref().is_some_and(ThreadClock::is_due)
    }

    /// What the carrier waited for since the last call, beside what was idle.
    pub fn settle(&mut self, waits: &Waits) {
        if let Some(clock) = &mut self.clock {
            let idle_ns = std::mem::take(&mut self.idle_ns);
            self.sums.idled(Idle::Path, waits.data_ns); // what was not asked for
            let spent = clock.take(idle_ns + waits.total_ns());
            self.sums.passed(waits, &spent);
        }
    }

    /// As far as it was settled.
    pub fn times(&self) -> SenderTimes {
        self.sums.times()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn total(sums: &Sums) -> u64 {
        let waits = sums.rate + sums.path + sums.window + sums.receiver + sums.answers;
        sums.source + sums.disk + sums.processor + waits
    }

    proptest! {
        /// Each nanosecond is counted once.
        #[test]
        fn the_sums_are_all_of_the_time(
            idle in prop::collection::vec((0..5usize, 0..1u64 << 40), 0..20),
            lengths in any::<[u32; 6]>(),
        ) {
            let whys = [Idle::Source, Idle::Disk, Idle::Processor, Idle::Path, Idle::Answers];
            let mut sums = Sums::default();
            let mut length_ns = 0;
            for (why, ns) in idle {
                sums.idled(whys[why], ns);
                length_ns += ns;
            }
            let [path_ns, rate_ns, window_ns, receiver_ns, worked_ns, stood_ns] = lengths.map(u64::from);
            let waits = Waits { path_ns, rate_ns, window_ns, receiver_ns, ..Waits::default() };
            let spent = Spent { waited_ns: 0, worked_ns, stood_ns };
            sums.passed(&waits, &spent);
            length_ns += waits.total_ns() + worked_ns + stood_ns;
            prop_assert_eq!(total(&sums), length_ns);
        }
    }
}

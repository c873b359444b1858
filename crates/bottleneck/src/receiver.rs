// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the time of the thread that writes goes, while somebody may wait for it: while much waits to be written, and while
//! files become what they are to be.

use crate::ReceiverTimes;
use fatpath_driver::{Spent, ThreadClock};

/// What is behind, at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Behind {
    /// Much waits in memory to be written.
    pub holds_much: bool,
    /// Files wait to be opened, or, of a stream, for its end to be on the disk.
    pub has_backlog: bool,
}

/// What others do for the thread while it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finishing {
    /// Nothing: it waits for the network.
    Nothing,
    /// They wait for a disk.
    Disk,
    /// They hash.
    Processor,
}

/// Who takes what is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Into {
    /// Files.
    Files,
    /// Standard output.
    Output,
}

/// Sums, nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    disk: u64,
    processor: u64,
    output: u64,
    finish_disk: u64,
    finish_processor: u64,
}

impl Sums {
    fn waited(&mut self, finishing: Finishing, ns: u64) {
        match finishing {
            Finishing::Nothing => {}
            Finishing::Disk => self.finish_disk += ns,
            Finishing::Processor => self.finish_processor += ns,
        }
    }

    /// A stretch of time has passed, in which `behind` was so at some moment.
    fn passed(&mut self, behind: Behind, into: Into, spent: &Spent) {
        let (worked_ns, stood_ns) = (spent.worked_ns, spent.stood_ns);
        match (behind.holds_much, into) {
            (true, Into::Files) => self.disk += stood_ns,
            (true, Into::Output) => self.output += stood_ns,
            (false, _) if behind.has_backlog => self.finish_disk += stood_ns,
            (false, _) => {}
        }
        match (behind.holds_much, behind.has_backlog) {
            (true, _) => self.processor += worked_ns,
            (false, true) => self.finish_processor += worked_ns,
            (false, false) => {}
        }
    }
}

/// The account of this thread.
pub struct Account {
    into: Into,
    sums: Sums,
    clock: ThreadClock,
    /// Since the clock was read.
    waited_ns: u64,
    behind: Behind,
}

impl Account {
    /// Of this thread, from now on.
    pub fn start(into: Into) -> Account {
        Account {
            into,
            sums: Sums::default(),
            clock: ThreadClock::start(),
            waited_ns: 0,
            behind: Behind::default(),
        }
    }

    /// A step has passed, of which the thread waited for so long for something to arrive.
    pub fn stepped(&mut self, behind: Behind, finishing: Finishing, waited_ns: u64) {
        self.behind.holds_much |= behind.holds_much;
        self.behind.has_backlog |= behind.has_backlog;
        self.waited_ns += waited_ns;
        self.sums.waited(finishing, waited_ns);
        if self.clock.is_due() {
            self.settle();
        }
    }

    fn settle(&mut self) {
        let spent = self.clock.take(std::mem::take(&mut self.waited_ns));
        let behind = std::mem::take(&mut self.behind);
        self.sums.passed(behind, self.into, &spent);
    }

    /// Until now; `overrun_us`: for how long the thread that reads the network never had to wait.
    pub fn times(&mut self, overrun_us: u64) -> ReceiverTimes {
        self.settle();
        ReceiverTimes {
            disk_us: self.sums.disk / 1000,
            processor_us: self.sums.processor / 1000,
            output_us: self.sums.output / 1000,
            finish_disk_us: self.sums.finish_disk / 1000,
            finish_processor_us: self.sums.finish_processor / 1000,
            overrun_us,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// No moment counts twice, and none at which nobody could have waited for this end.
        #[test]
        fn no_more_is_counted_than_passed(
            steps in prop::collection::vec((any::<[bool; 3]>(), 0..3usize, any::<[u32; 3]>()), 0..20),
        ) {
            let finishings = [Finishing::Nothing, Finishing::Disk, Finishing::Processor];
            let (mut sums, mut length_ns) = (Sums::default(), 0);
            for ([holds_much, has_backlog, is_output], finishing, lengths) in steps {
                let [waited_ns, worked_ns, stood_ns] = lengths.map(u64::from);
                let into = if is_output { Into::Output } else { Into::Files };
                let behind = Behind { holds_much, has_backlog };
                sums.waited(finishings[finishing], waited_ns);
                sums.passed(behind, into, &Spent { waited_ns, worked_ns, stood_ns });
                let is_behind = u64::from(holds_much || has_backlog);
                length_ns += waited_ns * u64::from(finishing > 0) + is_behind * (worked_ns + stood_ns);
            }
            let finish = sums.finish_disk + sums.finish_processor;
            prop_assert_eq!(sums.disk + sums.processor + sums.output + finish, length_ns);
        }
    }
}

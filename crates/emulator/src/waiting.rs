// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long a packet waited in a device before it was read, at most. The kernel does not say when it
//! came, so what counts is the time since the device was last found empty.
//!
//! Time in the poller is left out: a packet that comes then ends it. So what waking the thread takes is
//! not in it.

/// The rounds of the forwarder, and its busy time: that outside the poller.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    number: u64,
    polled_ns: u64,
    /// Busy time when this round began, and the one before.
    begun_ns: u64,
    before_ns: u64,
}

impl Rounds {
    /// A round begins: the poller, called at `called_ns`, has returned at `now_ns`.
    pub(crate) fn begin(&mut self, called_ns: u64, now_ns: u64) {
        self.number += 1;
        self.polled_ns += now_ns - called_ns;
        self.before_ns = self.begun_ns;
        self.begun_ns = self.busy_ns(now_ns);
    }

    fn busy_ns(&self, now_ns: u64) -> u64 {
        now_ns - self.polled_ns
    }
}

/// The packets in one device that are yet to be read.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    /// Busy time when it was last found empty; at first, when the forwarder began.
    empty_ns: u64,
    /// The last round in which there were packets.
    filled_in: u64,
}

impl Ring {
    /// The poller found packets in this round. It tells of 64 devices at most; with more, the bound may
    /// be short by a round.
    pub(crate) fn found_filled(&mut self, rounds: &Rounds) {
        if self.filled_in + 1 < rounds.number {
            // Else the poller would have said so in the round before, too.
            self.empty_ns = self.empty_ns.max(rounds.before_ns);
        }
        self.filled_in = rounds.number;
    }

    /// There was nothing to read, at `at_ns` or later.
    pub(crate) fn found_empty(&mut self, at_ns: u64, rounds: &Rounds) {
        self.empty_ns = rounds.busy_ns(at_ns);
    }

    /// How long a packet that is read at `now_ns` may have waited.
    pub(crate) fn waited_ns(&self, now_ns: u64, rounds: &Rounds) -> u64 {
        rounds.busy_ns(now_ns) - self.empty_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleep_is_no_wait() {
        let (mut rounds, mut ring) = (Rounds::default(), Ring::default());
        rounds.begin(100, 1_000_000);
        ring.found_filled(&rounds);
        assert_eq!(
            ring.waited_ns(1_000_050, &rounds),
            150,
            "since the beginning"
        );
        ring.found_empty(1_000_060, &rounds);
        rounds.begin(1_000_080, 9_000_000);
        ring.found_filled(&rounds);
        assert_eq!(ring.waited_ns(9_000_005, &rounds), 25);
    }

    #[test]
    fn a_device_that_is_never_emptied_waits_ever_longer() {
        let (mut rounds, mut ring) = (Rounds::default(), Ring::default());
        for round in 1..=5 {
            rounds.begin(round * 100, round * 100 + 1);
            ring.found_filled(&rounds);
            assert_eq!(ring.waited_ns(round * 100 + 51, &rounds), round * 99 + 51);
        }
    }

    /// Its packets came after the poller last looked, while others were served.
    #[test]
    fn a_device_that_the_poller_did_not_name_was_empty_then() {
        let (mut rounds, mut ring) = (Rounds::default(), Ring::default());
        for round in 1..=5 {
            rounds.begin(round * 100, round * 100);
        }
        ring.found_filled(&rounds);
        assert_eq!(ring.waited_ns(510, &rounds), 110);
        assert_eq!(ring.waited_ns(530, &rounds), 130);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The responder's end of a test: sends back each datagram once, as long as it came, and none before it is due.

use crate::proof::Proof;
use crate::socket::{Pair, now_ns};
use fatpath_measure::Datagrams;
use fatpath_measure::echo::{Datagram, Way};
use std::io;
use std::time::{Duration, Instant};

/// After the test has lasted as long as it was asked for: for what is still on its way.
const GRACE: Duration = Duration::from_secs(10);
/// How many datagrams may come before they are due, by the unevenness of clocks.
const EARLY: u64 = 8;

/// Answers until the connection says something or ends, or the time is over.
///
/// # Errors
/// The kernel's.
pub fn answer(pair: &mut Pair<'_>, proof: &Proof, answers: &mut Answers<'_>) -> io::Result<()> {
    let asked = answers.asked;
    let begun = Instant::now();
    let end = begun + Duration::from_micros(asked.duration_us()) + GRACE;
    // One byte more, to see what is too long.
    let mut bytes = vec![0; usize::from(asked.packet_bytes) + 1];
    loop {
        let rest = end.saturating_duration_since(Instant::now());
        if pair.wait(rest)? || rest.is_zero() {
            return Ok(());
        }
        let Some(came) = pair.receive(&mut bytes) else {
            continue;
        };
        let bytes = &mut bytes[..came.bytes];
        let datagram = match bytes.len() == usize::from(asked.packet_bytes) {
            true => proof.open(bytes),
            false => None,
        };
        if let Some(datagram) = datagram.filter(|it| answers.take(it, begun.elapsed())) {
            let (received_ns, answered_ns) = match answers.with_times {
                true => (came.at_ns, now_ns()),
                false => (0, 0),
            };
            let back = Datagram {
                way: Way::Back,
                received_ns,
                answered_ns,
                ..datagram
            };
            proof.seal(&back, bytes);
            pair.send(bytes);
        }
    }
}

/// What was answered.
pub struct Answers<'a> {
    asked: &'a Datagrams,
    with_times: bool,
    is_answered: Vec<bool>,
    count: u64,
}

impl Answers<'_> {
    /// Of a test that begins; `with_times`: each says when its question came, and when it left itself.
    pub fn new(asked: &Datagrams, with_times: bool) -> Answers<'_> {
        Answers {
            asked,
            with_times,
            is_answered: vec![false; asked.packets as usize],
            count: 0,
        }
    }

    /// How many datagrams.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether it is answered: once, and no faster than was asked for.
    fn take(&mut self, datagram: &Datagram, elapsed: Duration) -> bool {
        let due = elapsed.as_micros() as u64 / u64::from(self.asked.interval_us).max(1) + EARLY;
        let place = self.is_answered.get_mut(datagram.sequence as usize);
        match place {
            Some(is_answered @ false) if datagram.way == Way::There && self.count < due => {
                *is_answered = true;
                self.count += 1;
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_datagram_is_answered_once_when_it_is_due() {
        let asked = Datagrams {
            port: 9,
            packets: 20,
            packet_bytes: 64,
            interval_us: 1_000_000,
        };
        let mut answers = Answers::new(&asked, false);
        let mut take = |way, sequence, seconds| {
            let datagram = Datagram {
                way,
                sequence,
                nonce: 0,
                received_ns: 0,
                answered_ns: 0,
            };
            answers.take(&datagram, Duration::from_secs(seconds))
        };
        assert!(take(Way::There, 0, 0));
        assert!(!take(Way::There, 0, 0), "again");
        assert!(!take(Way::Back, 1, 0), "an answer");
        assert!(!take(Way::There, 20, 0), "beyond what was asked for");
        let at_once = (1..20).filter(|sequence| take(Way::There, *sequence, 0));
        assert_eq!(at_once.count() as u64, EARLY - 1);
        assert!(take(Way::There, 19, 1));
        assert!(!take(Way::There, 18, 1), "not yet");
    }
}

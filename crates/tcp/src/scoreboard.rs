// SPDX-License-Identifier: MIT OR Apache-2.0
//! The segments that are sent and not yet acknowledged, and what became of each (RFC 6675, RFC 8985).
//!
//! An acknowledgement costs the segments that it tells of for the first time, never the window: counts
//! are kept and not taken, SACKed ranges are known, the segments that may be lost next stand in the
//! order in which they were sent, the lost ones in a heap. Only a timeout and an undo walk.

mod losses;
mod unnamed;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::arrivals::Arrivals;
use super::rack::Rack;
use super::ranges::Ranges;
use super::{Ack, Block};

/// Its SACK has come.
const SACKED: u8 = 1;
/// It counts as lost; it stays so while its retransmission is on its way.
const LOST: u8 = 2;
/// Its retransmission is on its way.
const RESENT: u8 = 4;
/// It was sent more than once.
const EVER_RESENT: u8 = 8;

#[derive(Clone, Copy, Debug)]
struct Sent {
    /// Last sent.
    sent_ns: u64,
    payload_bytes: u32,
    marks: u8,
}

impl Sent {
    fn is(&self, marks: u8) -> bool {
        self.marks & marks != 0
    }
}

/// A retransmission; the newest of its segment if the time is that segment's.
#[derive(Clone, Copy, Debug)]
struct Resent {
    number: u64,
    sent_ns: u64,
}

/// How many segments are marked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) sacked: u32,
    pub(super) lost: u32,
    pub(super) resent: u32,
}

/// What is sent and not acknowledged.
#[derive(Debug, Default)]
pub(super) struct Scoreboard {
    una: u64,
    queue: VecDeque<Sent>,
    bytes: u64,
    counts: Counts,
    /// Segments that arrived, by duplicate acknowledgements, which do not name them; 0 with SACK.
    unnamed: u32,
    sacked: Ranges,
    lost: BinaryHeap<Reverse<u64>>,
    /// Below it no segment is on its way for the first time.
    first_sent_from: u64,
    /// Retransmissions in the order of time.
    resent: VecDeque<Resent>,
    /// Below it `dupthresh` segments were SACKed beyond every segment.
    counted_until: u64,
    /// SACKed segments below `counted_until`.
    sacked_below: u32,
    /// Times that a segment was found lost.
    ever_lost: u64,
    #[cfg(test)]
    pub(super) steps: u64,
}

impl Scoreboard {
    /// The oldest segment that is not acknowledged.
    pub(super) fn una(&self) -> u64 {
        self.una
    }

    /// The number of the next new segment.
    pub(super) fn next(&self) -> u64 {
        self.una + self.queue.len() as u64
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Data in it.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn packets_out(&self) -> u32 {
        self.queue.len() as u32
    }

    pub(super) fn counts(&self) -> Counts {
        self.counts
    }

    /// Times that a segment, or its retransmission, was found lost since the connection began.
    pub(super) fn ever_lost_pkts(&self) -> u64 {
        self.ever_lost
    }

    /// Segments in the network, as far as is known: `pipe` of RFC 6675.
    pub(super) fn in_flight(&self) -> u32 {
        self.packets_out() + self.counts.resent - self.arrived_beyond() - self.counts.lost
    }

    /// Segments that arrived beyond a hole.
    pub(super) fn arrived_beyond(&self) -> u32 {
        self.counts.sacked + self.unnamed
    }

    /// One past the highest segment that arrived.
    pub(super) fn highest_arrived(&self) -> u64 {
        self.sacked.end().unwrap_or(self.una)
    }

    /// When the oldest segment was last sent.
    pub(super) fn oldest_sent_ns(&self) -> Option<u64> {
        self.queue.front().map(|sent| sent.sent_ns)
    }

    /// Whether the oldest segment was sent more than once or any retransmission is on its way.
    pub(super) fn has_resent(&self) -> bool {
        self.counts.resent > 0 || self.queue.front().is_some_and(|sent| sent.is(EVER_RESENT))
    }

    /// A new segment leaves.
    pub(super) fn send(&mut self, now_ns: u64, payload_bytes: u32) -> u64 {
        let number = self.next();
        self.queue.push_back(Sent {
            sent_ns: now_ns,
            payload_bytes,
            marks: 0,
        });
        self.bytes += u64::from(payload_bytes);
        number
    }

    /// The lowest lost segment that is not on its way again.
    pub(super) fn next_lost(&mut self) -> Option<u64> {
        while let Some(&Reverse(number)) = self.lost.peek() {
            if self
                .get(number)
                .is_some_and(|sent| sent.is(LOST) && !sent.is(RESENT))
            {
                return Some(number);
            }
            self.lost.pop();
        }
        None
    }

    /// Retransmits; gives the segment's data.
    pub(super) fn resend(&mut self, number: u64, now_ns: u64) -> u32 {
        self.counts.resent += 1;
        self.leave_again(number, now_ns, RESENT | EVER_RESENT)
    }

    /// Retransmits the newest segment as a probe, which is no sign that it is lost.
    pub(super) fn probe_tail(&mut self, now_ns: u64) -> (u64, u32) {
        let number = self.next() - 1;
        (number, self.leave_again(number, now_ns, EVER_RESENT))
    }

    fn leave_again(&mut self, number: u64, now_ns: u64, marks: u8) -> u32 {
        let sent = &mut self.queue[(number - self.una) as usize];
        sent.marks |= marks;
        sent.sent_ns = now_ns;
        self.resent.push_back(Resent {
            number,
            sent_ns: now_ns,
        });
        sent.payload_bytes
    }

    fn get(&self, number: u64) -> Option<&Sent> {
        self.queue.get(number.checked_sub(self.una)? as usize)
    }

    /// Segments `block` have arrived, says a SACK.
    pub(super) fn sack(&mut self, block: Block, rack: &mut Rack, arrivals: &mut Arrivals) {
        let highest = self.highest_arrived();
        let block = Block {
            from: block.from.max(self.una),
            until: block.until.min(self.next()),
        };
        if block.from >= block.until {
            return;
        }
        let mut ranges = std::mem::take(&mut self.sacked);
        ranges.insert(block, |fresh| {
            for number in fresh.from..fresh.until {
                self.sack_one(number, highest, rack, arrivals);
            }
        });
        self.sacked = ranges;
    }

    fn sack_one(&mut self, number: u64, highest: u64, rack: &mut Rack, arrivals: &mut Arrivals) {
        self.count_step();
        let sent = &mut self.queue[(number - self.una) as usize];
        arrivals.advance(rack, number, sent.sent_ns, sent.is(EVER_RESENT));
        if !sent.is(EVER_RESENT) {
            arrivals.original_sacked(number, sent.sent_ns, highest);
        }
        if sent.is(LOST) {
            self.counts.lost -= 1;
            self.counts.resent -= u32::from(sent.is(RESENT));
            sent.marks &= !(LOST | RESENT);
        }
        sent.marks |= SACKED;
        self.counts.sacked += 1;
        self.sacked_below += u32::from(number < self.counted_until);
        arrivals.sacked_pkts += 1;
    }

    /// A DSACK tells of `block`: how many of its segments had been sent more than once. One that is
    /// held by the receiver and on its way again is so no more.
    pub(super) fn duplicates(&mut self, block: Block) -> u32 {
        let mut count = 0;
        for number in block.from.max(self.una)..block.until.min(self.next()) {
            let sent = &mut self.queue[(number - self.una) as usize];
            count += u32::from(sent.is(EVER_RESENT));
            if sent.is(RESENT) && (sent.is(SACKED) || !sent.is(LOST)) {
                sent.marks &= !RESENT;
                self.counts.resent -= 1;
            }
        }
        count
    }

    /// All segments below `ack.next` have arrived.
    pub(super) fn acknowledge(&mut self, ack: &Ack, rack: &mut Rack, arrivals: &mut Arrivals) {
        while self.una < ack.next
            && let Some(sent) = self.queue.pop_front()
        {
            self.count_step();
            self.forget(&sent);
            arrivals.acked_bytes += u64::from(sent.payload_bytes);
            arrivals.acked_pkts += 1;
            arrivals.resent_acked |= sent.is(EVER_RESENT);
            if !sent.is(SACKED) {
                arrivals.delivered_pkts += 1;
                let is_spurious = sent.is(EVER_RESENT) && ack.echo_ns < sent.sent_ns;
                if !is_spurious {
                    arrivals.advance(rack, self.una, sent.sent_ns, sent.is(EVER_RESENT));
                }
                if !sent.is(EVER_RESENT) {
                    arrivals.original_acked(self.una, sent.sent_ns);
                }
            }
            self.una += 1;
        }
        if arrivals.acked_pkts > 0 {
            self.follow_una();
        }
    }

    fn forget(&mut self, sent: &Sent) {
        self.bytes -= u64::from(sent.payload_bytes);
        self.counts.sacked -= u32::from(sent.is(SACKED));
        self.counts.lost -= u32::from(sent.is(LOST));
        self.counts.resent -= u32::from(sent.is(RESENT));
        if self.una < self.counted_until && sent.is(SACKED) {
            self.sacked_below -= 1;
        }
    }

    fn follow_una(&mut self) {
        self.sacked.forget_below(self.una);
        self.first_sent_from = self.first_sent_from.max(self.una);
        self.counted_until = self.counted_until.max(self.una);
        if self.queue.is_empty() {
            self.release();
        }
    }

    /// Gives memory back that a large window needed.
    fn release(&mut self) {
        self.lost = BinaryHeap::new();
        self.resent = VecDeque::new();
        if self.queue.capacity() > 64 {
            self.queue = VecDeque::new();
        }
    }

    fn count_step(&mut self) {
        #[cfg(test)]
        {
            self.steps += 1;
        }
    }
}

#[cfg(test)]
impl Scoreboard {
    /// The counts are those that a walk over the queue finds.
    pub(super) fn check_counts(&self) {
        let count = |marks| self.queue.iter().filter(|sent| sent.is(marks)).count() as u32;
        let counted = Counts {
            sacked: count(SACKED),
            lost: count(LOST),
            resent: count(RESENT),
        };
        assert_eq!(self.counts, counted);
        assert!(
            !self
                .queue
                .iter()
                .any(|sent| sent.is(SACKED) && sent.is(LOST))
        );
        let bytes: u64 = self
            .queue
            .iter()
            .map(|sent| u64::from(sent.payload_bytes))
            .sum();
        assert_eq!(self.bytes, bytes);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The segments of one sender that are not acknowledged: when each was sent, for round-trip times, and how to tell a
//! copy that the network made from a retransmission.

use crate::prefetch::prefetch;
use std::collections::VecDeque;

/// Of acknowledged segments, how many are remembered: a copy that the network made may arrive just after the ACK.
const KEPT_ACKED: usize = 8;

/// A retransmission that covers more segments than this makes one of them: an attacker's tiny segments would cost a
/// walk over all of them again and again.
const MAX_MARKED: usize = 64;

/// A segment as it was last sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub start: i64,
    pub end: i64,
    pub time_ns: i64,
    /// TSval; 0 without timestamps.
    pub tsval: u32,
    /// Identification of IPv4; 0 where there is none.
    pub ip_id: u16,
    pub is_retransmitted: bool,
}

/// Segments, by sequence number; the acknowledged ones come first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outstanding {
    segments: VecDeque<Sent>,
    acked: usize,
}

/// Segments that one that is late may overtake.
const MOST_MOVED: usize = 1_024;

/// What an ACK acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Acked {
    /// The newest segment that it covers wholly.
    pub newest: Option<Sent>,
    /// Whether a retransmitted one is among them.
    pub any_retransmitted: bool,
    /// When the one that was sent last of them was sent.
    pub last_sent_ns: Option<i64>,
}

impl Outstanding {
    /// Adds a segment; `most` bounds how many are held. One that comes very late is left out, which costs a round-trip
    /// time: to find it a place would move all that follow.
    pub fn push(&mut self, sent: Sent, most: usize) {
        let at = match self.segments.back() {
            Some(last) if last.start > sent.start => {
                self.segments.partition_point(|s| s.start <= sent.start)
            }
            _ => self.segments.len(),
        };
        if self.segments.len() - at > MOST_MOVED {
            return;
        }
        self.segments.insert(at.max(self.acked), sent);
        if self.segments.len() - self.acked > most.max(2) {
            self.thin();
        }
    }

    /// Every second one goes: fewer round-trip times are measured, nothing else depends on them.
    fn thin(&mut self) {
        let acked = self.acked;
        let mut at = 0;
        self.segments.retain(|_| {
            at += 1;
            at <= acked || at % 2 == 0
        });
    }

    /// What the next segments touch beside its own bytes.
    pub fn prefetch(&self) {
        let length = self.segments.len();
        let acked_next = [0, 2, 4].map(|after| self.acked + after);
        let newest = [1, 2].map(|back| length.wrapping_sub(back));
        let places = acked_next.into_iter().chain(newest);
        places
            .filter_map(|place| self.segments.get(place))
            .for_each(prefetch);
    }

    /// What it holds besides its own size.
    pub fn heap_bytes(&self) -> usize {
        self.segments.capacity() * size_of::<Sent>()
    }

    /// Everything below `ack` has been received. What was sent again after `before_ns` cannot be what was received: its
    /// original was (RFC 8985, section 6.2, step 2).
    pub fn ack(&mut self, ack: i64, before_ns: i64) -> Acked {
        let mut acked = Acked::default();
        while let Some(sent) = self.segments.get(self.acked).filter(|s| s.end <= ack) {
            acked.any_retransmitted |= sent.is_retransmitted;
            acked.newest = Some(*sent);
            if !sent.is_retransmitted || sent.time_ns <= before_ns {
                acked.last_sent_ns = acked.last_sent_ns.max(Some(sent.time_ns));
            }
            self.acked += 1;
        }
        while self.acked > KEPT_ACKED {
            self.segments.pop_front();
            self.acked -= 1;
        }
        acked
    }

    /// Whether this was seen before, with the same identification, or with the same timestamp less than `within_ns` ago.
    pub fn has_copy(&self, copy: &Sent, within_ns: i64) -> bool {
        let is_copy = |sent: &&Sent| {
            let is_same = sent.start == copy.start && sent.end == copy.end;
            let same_id = sent.ip_id == copy.ip_id && copy.ip_id != 0;
            let is_soon = copy.time_ns.saturating_sub(sent.time_ns) < within_ns;
            let same_time = copy.ip_id == 0 && copy.tsval != 0 && sent.tsval == copy.tsval;
            is_same && (same_id || same_time && is_soon)
        };
        let acked = self.segments.iter().take(self.acked);
        if acked.rev().any(|sent| is_copy(&sent)) {
            return true;
        }
        let from = self.first_from(copy.start);
        let from = self.segments.iter().skip(from).take(4);
        from.take_while(|sent| sent.start <= copy.start)
            .any(|sent| is_copy(&sent))
    }

    /// Whether the first segment that is not acknowledged was sent once.
    pub fn is_first_sent_once(&self) -> bool {
        let first = self.segments.get(self.acked);
        first.is_some_and(|sent| !sent.is_retransmitted)
    }

    /// When the segment with this byte was sent last.
    pub fn sent_ns(&self, place: i64) -> Option<i64> {
        let sent = self.segments.get(self.first_from(place))?;
        (sent.start <= place).then_some(sent.time_ns)
    }

    /// These bytes were sent again.
    pub fn mark(&mut self, again: &Sent) {
        let from = self.first_from(again.start);
        let covered = self.segments.iter().skip(from);
        let count = covered.take_while(|s| s.start < again.end).count();
        if count > MAX_MARKED {
            let end = self.segments[from + count - 1].end;
            self.segments[from].end = end;
            self.segments.drain(from + 1..from + count);
        }
        for sent in self.segments.iter_mut().skip(from) {
            if sent.start >= again.end {
                break;
            }
            sent.is_retransmitted = true;
            sent.time_ns = again.time_ns;
            sent.tsval = again.tsval;
            sent.ip_id = again.ip_id;
        }
    }

    fn first_from(&self, start: i64) -> usize {
        let found = self.segments.partition_point(|s| s.end <= start);
        found.max(self.acked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(start: i64, time_ns: i64) -> Sent {
        Sent {
            start,
            end: start + 10,
            time_ns,
            tsval: 1,
            ip_id: 0,
            is_retransmitted: false,
        }
    }

    #[test]
    fn an_ack_answers_the_newest_segment_that_it_covers() {
        let mut outstanding = Outstanding::default();
        (0..4).for_each(|i| outstanding.push(sent(i * 10, i), 100));
        let acked = outstanding.ack(25, i64::MAX);
        assert_eq!(acked.newest.map(|s| s.time_ns), Some(1));
        assert!(!acked.any_retransmitted);
        assert_eq!(acked.last_sent_ns, Some(1));
        assert_eq!(outstanding.sent_ns(35), Some(3));
        outstanding.mark(&sent(20, 9));
        let acked = outstanding.ack(40, i64::MAX);
        assert!(acked.any_retransmitted);
        assert_eq!(outstanding.ack(40, i64::MAX), Acked::default());
    }

    #[test]
    fn a_copy_has_the_same_identification_or_the_same_time() {
        let mut outstanding = Outstanding::default();
        outstanding.push(sent(0, 100), 100);
        assert!(outstanding.has_copy(&sent(0, 150), 100));
        assert!(!outstanding.has_copy(&sent(0, 250), 100), "too late");
        outstanding.ack(10, i64::MAX);
        assert!(
            outstanding.has_copy(&sent(0, 150), 100),
            "also when acknowledged"
        );
        let other = Sent {
            ip_id: 7,
            ..sent(0, 150)
        };
        assert!(!outstanding.has_copy(&other, 100), "sent by itself");
    }

    #[test]
    fn what_is_never_acknowledged_is_bounded() {
        let mut outstanding = Outstanding::default();
        (0..100_000).for_each(|i| outstanding.push(sent(i * 10, i), 64));
        assert!(outstanding.segments.len() <= 65);
        outstanding.mark(&Sent {
            end: i64::MAX,
            ..sent(0, 5)
        });
        assert!(outstanding.ack(i64::MAX, i64::MAX).any_retransmitted);
    }
}

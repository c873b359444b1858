// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a segment was sent again, told from ACKs and silence, and whether that was needed. docs/capture.md states the
//! rules for readers.

use crate::verdict::Retransmission;
use std::collections::VecDeque;

/// RFC 5681, section 3.2.
const DUPLICATE_THRESHOLD: u32 = 3;

/// A sender whose round trip is not known yet, and one on a LAN, may need this long to answer an ACK.
const ANSWER_NS: i64 = 3_000_000;

/// An answer to an ACK that comes later than this many round trips is none: RACK waits a quarter of one at most (RFC
/// 8985, section 6.2), a tail-loss probe comes after two (section 7.2), a timeout later.
const ANSWER_ROUND_TRIPS: f64 = 1.25;

/// Linux's least retransmission timeout, and the delay of an ACK that its probe allows for.
const RTO_MIN_NS: i64 = 200_000_000;

/// What is sent again, and the moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Again {
    pub start: i64,
    pub end: i64,
    pub time_ns: i64,
    pub tsval: Option<u32>,
}

/// The sender at that moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// Lowest byte that is not acknowledged.
    pub una: i64,
    /// One past the highest that was sent.
    pub highest: i64,
    /// From one end to the other and back, where it is known.
    pub rtt_ns: Option<i64>,
    /// When the sender had sent data last.
    pub last_sent_ns: i64,
    /// Whether the receiver has bytes above the segment.
    pub is_sacked_above: bool,
    /// Whether something that was sent after it has been acknowledged: that tells of a loss, too (RFC 8985, section 6.2).
    pub is_overtaken: bool,
    /// Without SACK there is no tail-loss probe (RFC 8985, section 7.1).
    pub uses_sack: bool,
}

#[derive(Clone, Copy, Debug)]
struct Judged {
    again: Again,
    /// Not acknowledged yet.
    is_open: bool,
    is_dsacked: bool,
}

/// The repair of losses in one direction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Repair {
    /// Duplicate ACKs since the last that acknowledged something.
    pub duplicate_acks: u32,
    last_ack_ns: Option<i64>,
    /// Fast recovery lasts until this is acknowledged (RFC 6675, section 2: RecoveryPoint).
    recovery_point: Option<i64>,
    /// What was sent before the last timeout ends here.
    loss_point: Option<i64>,
    is_probed: bool,
    judged: VecDeque<Judged>,
    /// How many of `judged` are open: outside of a repair none is, and no ACK has to look.
    open: usize,
}

impl Repair {
    /// Judges a retransmission; `most` bounds how many are remembered.
    pub fn judge(&mut self, again: Again, moment: &Moment, most: usize) -> Retransmission {
        let kind = match self.is_answer(&again, moment) {
            true => self.answered(moment),
            false => self.timed(&again, moment),
        };
        match kind {
            Retransmission::Fast => {
                self.recovery_point.get_or_insert(moment.highest);
            }
            Retransmission::Timeout => {
                self.loss_point = Some(moment.highest);
                self.recovery_point = None;
            }
            Retransmission::TailLossProbe => self.is_probed = true,
            Retransmission::AfterTimeout | Retransmission::Unclear => {}
        }
        self.remember(again, most);
        kind
    }

    /// Whether an ACK came so lately that it may be what the sender answers.
    fn is_answer(&self, again: &Again, moment: &Moment) -> bool {
        let Some(last_ack_ns) = self.last_ack_ns else {
            return false;
        };
        let round_trips_ns = (moment.rtt_ns.unwrap_or(0) as f64 * ANSWER_ROUND_TRIPS) as i64;
        again.time_ns.saturating_sub(last_ack_ns) < round_trips_ns.max(ANSWER_NS)
    }

    fn answered(&self, moment: &Moment) -> Retransmission {
        let is_overtaken = moment.uses_sack && moment.is_overtaken;
        let is_told =
            moment.is_sacked_above || is_overtaken || self.duplicate_acks >= DUPLICATE_THRESHOLD;
        match () {
            () if self.loss_point.is_some() => Retransmission::AfterTimeout,
            () if is_told || self.recovery_point.is_some() => Retransmission::Fast,
            () => Retransmission::Unclear,
        }
    }

    fn timed(&self, again: &Again, moment: &Moment) -> Retransmission {
        let is_head = again.start <= moment.una;
        let is_tail = again.end >= moment.highest;
        let is_repairing = self.loss_point.is_some() || self.recovery_point.is_some();
        let may_probe = moment.uses_sack && !self.is_probed && !is_repairing;
        match () {
            () if may_probe && is_tail && (!is_head || self.is_soon(again, moment)) => {
                Retransmission::TailLossProbe
            }
            () if is_head => Retransmission::Timeout,
            () if self.loss_point.is_some() => Retransmission::AfterTimeout,
            () => Retransmission::Unclear,
        }
    }

    /// Of a single segment both timers send the same. The probe's waits for two round trips, and for an ACK that the
    /// receiver may delay, since the last data or the last ACK, whichever came later (RFC 8985, section 7.2).
    fn is_soon(&self, again: &Again, moment: &Moment) -> bool {
        let rtt_ns = moment.rtt_ns.unwrap_or(0);
        let latest_ns = rtt_ns.saturating_mul(2).saturating_add(RTO_MIN_NS);
        let since_ns = self
            .last_ack_ns
            .unwrap_or(i64::MIN)
            .max(moment.last_sent_ns);
        let waited_ns = again.time_ns.saturating_sub(since_ns);
        waited_ns < latest_ns.saturating_add(latest_ns / 8)
    }

    fn remember(&mut self, again: Again, most: usize) {
        while self.judged.len() >= most.max(1) {
            let oldest = self.judged.pop_front();
            self.open -= usize::from(oldest.is_some_and(|judged| judged.is_open));
        }
        self.open += 1;
        self.judged.push_back(Judged {
            again,
            is_open: true,
            is_dsacked: false,
        });
    }

    /// What it holds besides its own size.
    pub fn heap_bytes(&self) -> usize {
        self.judged.capacity() * size_of::<Judged>()
    }

    /// Until this is acknowledged, what was sent before a timeout is taken as lost.
    pub fn loss_point(&self) -> Option<i64> {
        self.loss_point
    }

    /// When the last ACK came.
    pub fn last_ack_ns(&self) -> Option<i64> {
        self.last_ack_ns
    }

    /// An ACK came, whatever it acknowledges.
    pub fn ack_came(&mut self, time_ns: i64) {
        self.last_ack_ns = Some(time_ns);
    }

    /// Everything from `una` to `ack` is acknowledged now. Answers how many retransmissions its echo of a timestamp
    /// shows to be unneeded.
    pub fn acked(&mut self, una: i64, ack: i64, tsecr: Option<u32>) -> u64 {
        self.duplicate_acks = 0;
        self.is_probed = false;
        for point in [&mut self.recovery_point, &mut self.loss_point] {
            if point.is_some_and(|point| ack >= point) {
                *point = None;
            }
        }
        match self.open {
            0 => 0,
            _ => self.close(una, ack, tsecr),
        }
    }

    /// Of the retransmission that the ACK was waiting for, the echo tells which copy the receiver got first. What began
    /// above is acknowledged along with it, and the echo is not its own.
    fn close(&mut self, una: i64, ack: i64, tsecr: Option<u32>) -> u64 {
        let mut spurious = 0;
        for judged in self.judged.iter_mut().filter(|judged| judged.is_open) {
            let again = &judged.again;
            let is_head = again.start <= una && una < again.end;
            if !is_head && ack < again.end {
                continue;
            }
            judged.is_open = false;
            self.open -= 1;
            if let (true, Some(sent), Some(echo)) = (is_head, again.tsval, tsecr) {
                spurious += u64::from((echo.wrapping_sub(sent) as i32) < 0);
            }
        }
        spurious
    }

    /// The receiver got these bytes twice: whether a retransmission was seen that explains it.
    pub fn dsacked(&mut self, start: i64, end: i64) -> bool {
        let is_it = |j: &&mut Judged| {
            !j.is_dsacked && j.again.start < end && start < j.again.end.max(j.again.start + 1)
        };
        let found = self.judged.iter_mut().rev().find(is_it);
        if let Some(judged) = found {
            judged.is_dsacked = true;
            return true;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn again(start: i64, time_ns: i64) -> Again {
        Again {
            start,
            end: start + 10,
            time_ns,
            tsval: Some(50),
        }
    }

    fn moment() -> Moment {
        Moment {
            una: 0,
            highest: 100,
            rtt_ns: Some(50 * MS),
            last_sent_ns: 0,
            is_sacked_above: false,
            is_overtaken: false,
            uses_sack: true,
        }
    }

    #[test]
    fn an_ack_of_what_was_sent_later_makes_it_fast_with_sack() {
        for (uses_sack, expected) in [
            (true, Retransmission::Fast),
            (false, Retransmission::Unclear),
        ] {
            let mut repair = Repair::default();
            repair.ack_came(MS);
            let overtaken = Moment {
                is_overtaken: true,
                uses_sack,
                ..moment()
            };
            assert_eq!(kind(&mut repair, again(0, MS), &overtaken), expected);
        }
    }

    fn kind(repair: &mut Repair, again: Again, moment: &Moment) -> Retransmission {
        repair.judge(again, moment, 100)
    }

    #[test]
    fn three_duplicates_or_a_sack_above_make_it_fast() {
        let mut repair = Repair::default();
        repair.ack_came(0);
        assert_eq!(
            kind(&mut repair, again(0, MS), &moment()),
            Retransmission::Unclear
        );
        repair.duplicate_acks = 3;
        assert_eq!(
            kind(&mut repair, again(0, MS), &moment()),
            Retransmission::Fast
        );
        let mut repair = Repair::default();
        repair.ack_came(0);
        let sacked = Moment {
            is_sacked_above: true,
            ..moment()
        };
        assert_eq!(
            kind(&mut repair, again(0, MS), &sacked),
            Retransmission::Fast
        );
        // NewReno: a partial ACK has no duplicates behind it.
        repair.acked(0, 10, None);
        repair.ack_came(50 * MS);
        assert_eq!(
            kind(&mut repair, again(10, 51 * MS), &moment()),
            Retransmission::Fast
        );
    }

    #[test]
    fn silence_is_a_timeout_and_what_follows_is_repair() {
        let mut repair = Repair::default();
        repair.ack_came(0);
        assert_eq!(
            kind(&mut repair, again(0, 300 * MS), &moment()),
            Retransmission::Timeout
        );
        repair.ack_came(350 * MS);
        repair.acked(0, 10, None);
        let later = Moment {
            una: 10,
            ..moment()
        };
        assert_eq!(
            kind(&mut repair, again(10, 351 * MS), &later),
            Retransmission::AfterTimeout
        );
        repair.acked(10, 100, None);
        repair.duplicate_acks = 3;
        let next = Moment {
            una: 100,
            highest: 200,
            ..moment()
        };
        assert_eq!(
            kind(&mut repair, again(100, 352 * MS), &next),
            Retransmission::Fast
        );
    }

    #[test]
    fn the_last_segment_after_silence_is_a_probe_once() {
        let mut repair = Repair::default();
        repair.ack_came(0);
        let tail = again(90, 110 * MS);
        assert_eq!(
            kind(&mut repair, tail, &moment()),
            Retransmission::TailLossProbe
        );
        assert_eq!(
            kind(&mut repair, again(0, 300 * MS), &moment()),
            Retransmission::Timeout
        );
        let single = Moment {
            una: 90,
            ..moment()
        };
        let late = again(90, 900 * MS);
        assert_eq!(
            kind(&mut Repair::default(), tail, &single),
            Retransmission::TailLossProbe
        );
        assert_eq!(
            kind(&mut Repair::default(), late, &single),
            Retransmission::Timeout
        );
        let without = Moment {
            uses_sack: false,
            una: 90,
            ..moment()
        };
        assert_eq!(
            kind(&mut Repair::default(), tail, &without),
            Retransmission::Timeout
        );
    }

    #[test]
    fn an_ack_starts_the_time_until_a_probe_again() {
        // Sent behind a queue of 800 ms: those before it are acknowledged for so long.
        let single = Moment {
            una: 90,
            rtt_ns: Some(800 * MS),
            ..moment()
        };
        let mut repair = Repair::default();
        repair.ack_came(800 * MS);
        let again = again(90, 2_200 * MS);
        assert_eq!(
            kind(&mut repair, again, &single),
            Retransmission::TailLossProbe
        );
        let silent = Moment {
            last_sent_ns: -MS,
            ..single
        };
        assert_eq!(
            kind(&mut Repair::default(), again, &silent),
            Retransmission::Timeout
        );
    }

    #[test]
    fn an_echo_of_the_original_and_a_dsack_show_that_it_was_unneeded() {
        let mut repair = Repair::default();
        kind(&mut repair, again(0, 300 * MS), &moment());
        assert_eq!(repair.acked(0, 10, Some(49)), 1);
        assert_eq!(repair.acked(0, 10, Some(49)), 0, "once");
        assert!(repair.dsacked(0, 10));
        assert!(!repair.dsacked(0, 10), "once");
        assert!(!repair.dsacked(500, 510), "never sent again");
    }
}

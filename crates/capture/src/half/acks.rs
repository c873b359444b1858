// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the other end answers: ACKs, SACKs, windows, and the round-trip times that they measure.

use super::{Half, smoothed, unwrapped};
use crate::ranges::Range;
use crate::report::Direction;
use crate::segment::{Segment, flag};
use crate::verdict::Verdict;

/// As `fatpath why` has it: an ACK that takes so much longer than the least was delayed.
const LATE_ACK_NS: i64 = 10_000_000;

impl Half {
    /// An ACK of the peer for this end's data. `window_bytes` is what it offers, `is_same_window` whether it offered the
    /// same before.
    pub fn acked(
        &mut self,
        segment: &Segment,
        window_bytes: i64,
        is_same_window: bool,
        verdict: &mut Verdict,
        peer: &mut Direction,
    ) {
        self.account(segment.time_ns);
        let base = *self.base.get_or_insert(segment.ack);
        let ack = unwrapped(base, self.una, segment.ack);
        self.take_dsack(segment, ack, peer);
        let is_bare =
            segment.payload_bytes == 0 && !segment.has_any(flag::SYN | flag::FIN | flag::RST);
        if ack > self.una {
            verdict.rtt_ns = self.advance(segment, ack);
            let is_late = verdict
                .rtt_ns
                .is_some_and(|rtt_ns| self.is_late_ack(rtt_ns));
            let is_all = self.una >= self.highest;
            self.late_ack_ns = (is_bare && is_late && is_all).then_some(segment.time_ns);
        } else if ack == self.una && is_bare && self.highest > self.una && is_same_window {
            verdict.is_duplicate_ack = true;
            peer.duplicate_acks += 1;
            self.repair.duplicate_acks += 1;
        }
        self.take_sack(segment, ack);
        if ack >= self.una {
            self.edge = Some(ack + window_bytes);
        }
        self.repair.ack_came(segment.time_ns);
        self.report.is_heard_after_timeout |= self.report.retransmissions.timeout > 0;
    }

    fn is_late_ack(&self, rtt_ns: i64) -> bool {
        let least_ns = self.min_rtt_ns().unwrap_or(rtt_ns);
        rtt_ns.saturating_sub(least_ns) >= LATE_ACK_NS
    }

    fn advance(&mut self, segment: &Segment, ack: i64) -> Option<i64> {
        let tsecr = segment.options.timestamps.map(|(_, tsecr)| tsecr);
        let was_late = !self.sacked.is_empty() && self.outstanding.is_first_sent_once();
        self.report.late_arrivals += u64::from(was_late);
        let was_whole = self.sacked.is_empty() && self.repair.duplicate_acks == 0;
        self.report.spurious_by_timestamp += self.repair.acked(self.una, ack, tsecr);
        let missing = self.seen.forget_below(self.una, ack) as u64;
        self.report.unseen_bytes = self.report.unseen_bytes.saturating_add(missing);
        self.highest = self.highest.max(ack);
        let least_ns = self.rtt.min_ns().unwrap_or(0);
        // The sender may know a shorter round trip: less of them is measured here.
        let before_ns = segment.time_ns.saturating_sub(least_ns - least_ns / 8);
        let acked = self.outstanding.ack(ack, before_ns);
        self.delivered_sent_ns = self.delivered_sent_ns.max(acked.last_sent_ns);
        let longest = acked
            .newest
            .map_or(0, |sent| (sent.end - sent.start) as u64);
        let most = &mut self.report.acked_segment_max_bytes;
        *most = longest.max(*most);
        let is_sample = was_whole && !acked.any_retransmitted;
        let newest = acked.newest.filter(|_| is_sample);
        let rtt_ns = newest.map(|sent| segment.time_ns.saturating_sub(sent.time_ns));
        let rtt_ns = rtt_ns.filter(|rtt_ns| *rtt_ns >= 0);
        if let Some(rtt_ns) = rtt_ns {
            self.rtt.add(rtt_ns);
            self.srtt_ns = Some(smoothed(self.srtt_ns, rtt_ns));
        }
        self.sacked.forget_below(self.una, ack);
        self.una = ack;
        self.lands(segment.time_ns);
        self.last_acked_ns = Some(segment.time_ns);
        self.outstanding_until_acked = self.outstanding_integral;
        rtt_ns
    }

    /// RFC 2883, section 4: the first block lies below the ACK, or within the second block.
    fn take_dsack(&mut self, segment: &Segment, ack: i64, peer: &mut Direction) {
        let (Some(base), [first, rest @ ..]) = (self.base, segment.options.sack()) else {
            return;
        };
        let place = |block: &(u32, u32)| {
            let start = unwrapped(base, ack, block.0);
            (start, unwrapped(base, ack, block.1))
        };
        let (start, end) = place(first);
        let is_within = |second: &(u32, u32)| {
            let (from, to) = place(second);
            from <= start && end <= to
        };
        if start >= end || end > ack && !rest.first().is_some_and(is_within) {
            return;
        }
        peer.dsacks += 1;
        match self.repair.dsacked(start, end) {
            true => self.report.spurious_by_dsack += 1,
            false => self.report.dsack_of_copies += 1,
        }
    }

    fn take_sack(&mut self, segment: &Segment, ack: i64) {
        let Some(base) = self.base else { return };
        for block in segment.options.sack() {
            let (start, end) = (unwrapped(base, ack, block.0), unwrapped(base, ack, block.1));
            // What nobody sent is not received.
            if start >= ack.max(self.una) && end <= self.highest {
                self.sacked.add(Range {
                    start,
                    end,
                    since_ns: segment.time_ns,
                    after_packets: 0,
                });
            }
        }
    }
}

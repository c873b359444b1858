// SPDX-License-Identifier: MIT OR Apache-2.0
//! The data of one end: what is new, what comes late, what was sent again.

use super::{Half, Room, Top, sum_ns, unwrapped};
use crate::loss::{Again, Moment};
use crate::outstanding::Sent;
use crate::ranges::Range;
use crate::segment::{Segment, flag};
use crate::verdict::{Retransmission, Verdict};

/// tshark's, and of use where no round trip is known: what is later than this is hardly reordered.
const REORDERING_NS: i64 = 3_000_000;

/// Linux counts the identification of IPv4 by segments; a super-packet has up to 45 of them.
const MAX_ID_STEP: u16 = 64;

/// A sender answers an ACK that it waited for within this time.
const HELD_NS: i64 = 1_000_000;

/// As `fatpath why` has it: fewer cannot draw three duplicate ACKs.
const MOST_TAIL_SEGMENTS: i64 = 3;

/// Where a segment's sequence numbers lie.
#[derive(Clone, Copy)]
struct Span {
    start: i64,
    end: i64,
}

impl Half {
    /// The data of a segment of this end. `rtt_ns` is from one end to the other and back, `is_peer_closed` whether the
    /// peer offers no window.
    pub fn data(
        &mut self,
        segment: &Segment,
        rtt_ns: Option<i64>,
        is_peer_closed: bool,
        room: Room,
        verdict: &mut Verdict,
    ) {
        self.account(segment.time_ns);
        let base = *self.base.get_or_insert(segment.seq);
        let start = unwrapped(base, self.highest, segment.seq);
        let span = Span {
            start,
            end: start + i64::from(segment.sequence_bytes()),
        };
        if self.is_probe(segment, span) {
            match is_peer_closed {
                true => verdict.is_window_probe = true,
                false => verdict.is_keep_alive = true,
            }
            self.report.window_probes += u64::from(is_peer_closed);
            self.report.keep_alives += u64::from(!is_peer_closed);
            return;
        }
        if span.end == span.start || segment.has(flag::RST) {
            return;
        }
        self.begin(segment, span);
        let sent = sent_of(segment, span);
        if segment.has(flag::CWR) && !segment.has(flag::SYN) {
            self.has_reduced(segment.time_ns);
        }
        match span.start >= self.highest {
            true => self.new_data(sent, segment, room, verdict),
            false => self.old_data(sent, segment, rtt_ns, room, verdict),
        }
        self.last_data_ns = segment.time_ns;
    }

    /// One number below what is next, without data or with one byte of it that was acknowledged.
    fn is_probe(&self, segment: &Segment, span: Span) -> bool {
        let is_bare = !segment.has_any(flag::SYN | flag::FIN | flag::RST);
        let is_short = match segment.payload_bytes {
            0 => true,
            1 => self.una == self.highest,
            _ => false,
        };
        is_bare && is_short && span.start == self.highest - 1
    }

    fn begin(&mut self, segment: &Segment, span: Span) {
        if segment.has(flag::SYN) {
            self.floor = span.start + 1;
        }
        if segment.has(flag::FIN) {
            self.fin = Some(span.end - 1);
        }
        if segment.payload_bytes == 0 {
            return;
        }
        if !self.has_data && !segment.has(flag::SYN) {
            self.floor = match self.floor {
                0 => span.start,
                floor => floor.min(span.start),
            };
        }
        self.has_data = true;
        self.first_data_ns.get_or_insert(segment.time_ns);
        self.idle_ns = sum_ns(self.idle_ns, std::mem::take(&mut self.pending_idle_ns));
    }

    fn new_data(&mut self, sent: Sent, segment: &Segment, room: Room, verdict: &mut Verdict) {
        verdict.is_after_hole = sent.start > self.highest;
        let waited_ns = self
            .late_ack_ns
            .take()
            .map(|at| sent.time_ns.saturating_sub(at));
        let is_held = waited_ns.is_some_and(|ns| ns < HELD_NS);
        self.report.held_segments += u64::from(is_held);
        let step = sent.ip_id.wrapping_sub(self.top.ip_id);
        self.top = Top {
            tsval: segment.options.timestamps.map(|(tsval, _)| tsval),
            ip_id: sent.ip_id,
            counts_ids: sent.ip_id != 0 && (1..=MAX_ID_STEP).contains(&step),
        };
        self.highest = sent.end;
        self.see(&sent);
        self.outstanding.push(sent, room.segments);
        let outstanding = (self.highest - self.una) as u64;
        let most = &mut self.report.outstanding_max_bytes;
        *most = outstanding.max(*most);
        if self.has_data {
            self.flies();
        }
    }

    fn see(&mut self, sent: &Sent) {
        self.seen.add(Range {
            start: sent.start.max(self.una),
            end: sent.end,
            since_ns: sent.time_ns,
            after_packets: self.report.data_packets,
        });
    }

    /// Something of it lies below what was seen before.
    fn old_data(
        &mut self,
        sent: Sent,
        segment: &Segment,
        rtt_ns: Option<i64>,
        room: Room,
        verdict: &mut Verdict,
    ) {
        let is_acked = sent.end <= self.una;
        let is_seen = self.seen.covered(sent.start.max(self.una), sent.end) > 0;
        let copy_ns = rtt_ns.map_or(REORDERING_NS, |ns| ns / 2);
        if (is_acked || is_seen) && self.outstanding.has_copy(&sent, copy_ns) {
            verdict.is_copy = true;
            self.report.copies += 1;
            return;
        }
        if segment.has(flag::SYN) {
            verdict.is_syn_again = true;
            self.report.syn_retransmissions += 1;
            self.outstanding.mark(&sent);
            return;
        }
        if !is_acked && !is_seen && self.is_late(&sent, rtt_ns) {
            self.late(&sent, room, verdict);
        } else {
            let kind = self.again(&sent, segment, rtt_ns, room);
            verdict.retransmission = Some(kind);
            verdict.is_already_acked = is_acked;
            self.report.already_acked += u64::from(is_acked);
            self.outstanding.mark(&sent);
        }
        self.see(&sent);
        if sent.end > self.highest {
            self.highest = sent.end;
        }
        match verdict.retransmission {
            // It asks whether something was lost.
            None | Some(Retransmission::TailLossProbe) => {}
            Some(kind) => {
                let is_timeout = kind == Retransmission::Timeout;
                self.flies_again(sent.end, is_timeout, sent.time_ns);
            }
        }
    }

    /// It fills a hole: whether it was sent before what lies above the hole, and overtaken; else it was lost before the
    /// capture, and this is its retransmission.
    fn is_late(&self, sent: &Sent, rtt_ns: Option<i64>) -> bool {
        let Some(above) = self.seen.first_above(sent.start) else {
            return false;
        };
        if let Some(top) = self.top.tsval.filter(|top| *top != sent.tsval) {
            return (sent.tsval.wrapping_sub(top) as i32) < 0;
        }
        if self.top.counts_ids && sent.ip_id != 0 {
            return (sent.ip_id.wrapping_sub(self.top.ip_id) as i16) < 0;
        }
        let late_ns = sent.time_ns.saturating_sub(above.since_ns);
        late_ns < rtt_ns.map_or(REORDERING_NS, |ns| (ns / 2).max(REORDERING_NS))
    }

    fn late(&mut self, sent: &Sent, room: Room, verdict: &mut Verdict) {
        verdict.is_out_of_order = true;
        let above = self.seen.first_above(sent.start);
        let report = &mut self.report;
        report.out_of_order += 1;
        if let Some(above) = above {
            let packets = report.data_packets.saturating_sub(above.after_packets);
            report.reordering_packets = report.reordering_packets.max(packets);
            let late_ns = sent.time_ns.saturating_sub(above.since_ns);
            self.reordering_ns = self.reordering_ns.max(late_ns);
        }
        let bytes = (self.highest - sent.start).max(0) as u64;
        report.reordering_bytes = report.reordering_bytes.max(bytes);
        self.outstanding.push(*sent, room.segments);
    }

    fn again(
        &mut self,
        sent: &Sent,
        segment: &Segment,
        rtt_ns: Option<i64>,
        room: Room,
    ) -> Retransmission {
        let again = Again {
            start: sent.start,
            end: sent.end,
            time_ns: sent.time_ns,
            tsval: segment.options.timestamps.map(|(tsval, _)| tsval),
        };
        let moment = Moment {
            una: self.una,
            highest: self.highest,
            rtt_ns,
            last_sent_ns: self.last_data_ns,
            is_sacked_above: self.sacked.end().is_some_and(|end| end > sent.start),
            is_overtaken: self.is_overtaken(sent.start),
            uses_sack: self.report.is_sack_permitted,
        };
        let heard_ns = self.repair.last_ack_ns().unwrap_or(self.last_data_ns);
        let kind = self.repair.judge(again, &moment, room.retransmissions);
        if kind == Retransmission::Timeout {
            let since_ns = self.last_data_ns.max(heard_ns);
            let waited_ns = sent.time_ns.saturating_sub(since_ns);
            self.timeout_wait_ns = sum_ns(self.timeout_wait_ns, waited_ns);
            let is_tail = self.outstanding_bytes() <= MOST_TAIL_SEGMENTS * self.full_bytes();
            self.report.tail_timeouts += u64::from(is_tail);
        }
        let report = &mut self.report;
        report.retransmitted_packets += 1;
        report.retransmitted_bytes += u64::from(segment.payload_bytes);
        let of_kind = match kind {
            Retransmission::Fast => &mut report.retransmissions.fast,
            Retransmission::Timeout => &mut report.retransmissions.timeout,
            Retransmission::AfterTimeout => &mut report.retransmissions.after_timeout,
            Retransmission::TailLossProbe => &mut report.retransmissions.tail_loss_probe,
            Retransmission::Unclear => &mut report.retransmissions.unclear,
        };
        *of_kind += 1;
        kind
    }

    /// Whether something has been acknowledged that was sent after this byte was sent last.
    fn is_overtaken(&self, place: i64) -> bool {
        let times = self.outstanding.sent_ns(place).zip(self.delivered_sent_ns);
        times.is_some_and(|(sent_ns, delivered_ns)| sent_ns < delivered_ns)
    }
}

fn sent_of(segment: &Segment, span: Span) -> Sent {
    Sent {
        start: span.start,
        end: span.end,
        time_ns: segment.time_ns,
        tsval: segment.options.timestamps.map_or(0, |(tsval, _)| tsval),
        ip_id: segment.ip_id.unwrap_or(0),
        is_retransmitted: false,
    }
}

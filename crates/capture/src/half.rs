// SPDX-License-Identifier: MIT OR Apache-2.0
//! One direction of a connection: the data that one end sends, and what the other end answers.
//!
//! Sequence numbers are counted from the first that was seen, without wrapping.

use crate::distribution::Distribution;
use crate::echo::Echoes;
use crate::loss::{Again, Moment, Repair};
use crate::outstanding::{Outstanding, Sent};
use crate::ranges::{Range, Ranges};
use crate::report::Direction;
use crate::segment::{Ecn, Segment, flag};
use crate::verdict::{Retransmission, Verdict};

/// RFC 6298, section 2: alpha.
const SRTT_SHARE: i64 = 8;

/// tshark's, and of use where no round trip is known: what is later than this is hardly reordered.
const REORDERING_NS: i64 = 3_000_000;

/// Linux counts the identification of IPv4 by segments; a super-packet has up to 45 of them.
const MAX_ID_STEP: u16 = 64;

/// RFC 9293, section 3.7.1: the largest segment without an option, IPv4.
const DEFAULT_MSS_BYTES: i64 = 536;

/// How much may be remembered of a connection; it shrinks as connections become many.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    pub segments: usize,
    pub retransmissions: usize,
}

/// The direction's data as its newest segment left it.
#[derive(Clone, Copy, Debug, Default)]
struct Top {
    tsval: Option<u32>,
    ip_id: u16,
    /// Whether this end counts its identifications up.
    counts_ids: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Half {
    /// Sequence number that counts as 0.
    base: Option<u32>,
    highest: i64,
    una: i64,
    /// Of the first byte of data.
    floor: i64,
    /// Of a FIN.
    fin: Option<i64>,
    has_data: bool,
    top: Top,
    seen: Ranges,
    sacked: Ranges,
    outstanding: Outstanding,
    repair: Repair,
    /// Right edge of the window that the peer offers.
    edge: Option<i64>,
    peer_mss_bytes: Option<u16>,

    rtt: Distribution,
    srtt_ns: Option<i64>,
    echoes: Echoes,
    echo_rtt: Distribution,
    echo_srtt_ns: Option<i64>,

    /// What this end offers: the last window, not scaled, and since when it is closed.
    window: Option<u16>,
    /// Only if both SYNs had the option.
    scale: u8,
    closed_since_ns: Option<i64>,

    last_packet_ns: Option<i64>,
    last_data_ns: i64,
    first_data_ns: Option<i64>,
    last_acked_ns: Option<i64>,
    accounted_ns: Option<i64>,
    /// Bytes times ns.
    outstanding_integral: f64,
    limited_ns: i64,
    idle_ns: i64,
    /// Idle, if data follows.
    pending_idle_ns: i64,
    closed_ns: i64,
    reordering_ns: i64,
    pub report: Direction,
}

/// Where a segment's sequence numbers lie.
#[derive(Clone, Copy)]
struct Span {
    start: i64,
    end: i64,
}

impl Half {
    /// A segment of this end, before its data is looked at.
    pub fn sends(&mut self, segment: &Segment) {
        let report = &mut self.report;
        report.packets += 1;
        if segment.payload_bytes > 0 {
            report.data_packets += 1;
            report.payload_bytes += u64::from(segment.payload_bytes);
            let bytes = u64::from(segment.payload_bytes);
            report.segment_max_bytes = report.segment_max_bytes.max(bytes);
            let mss = self.peer_mss_bytes.map(u64::from);
            report.super_packets += u64::from(mss.is_some_and(|mss| bytes > mss));
        } else if !segment.has_any(flag::SYN | flag::FIN | flag::RST) {
            report.pure_acks += 1;
        }
        self.count_marks(segment);
        let time_ns = segment.time_ns;
        if let Some(last_ns) = self.last_packet_ns {
            let gap_us = time_ns.saturating_sub(last_ns) as f64 / 1000.0;
            self.report.gap_max_us = self.report.gap_max_us.max(gap_us);
        }
        self.last_packet_ns = Some(time_ns);
        if let Some((tsval, _)) = segment.options.timestamps {
            self.report.has_timestamps = true;
            self.echoes.sent(tsval, time_ns);
        }
    }

    fn count_marks(&mut self, segment: &Segment) {
        let report = &mut self.report;
        match segment.ecn {
            Ecn::NotCapable => {}
            Ecn::Ect0 => report.ect0_packets += 1,
            Ecn::Ect1 => report.ect1_packets += 1,
            Ecn::Ce => report.ce_packets += 1,
        }
        let is_syn = segment.has(flag::SYN);
        let count = |flag| u64::from(segment.has(flag));
        report.push_packets += count(flag::PSH);
        report.fins += count(flag::FIN);
        report.resets += count(flag::RST);
        report.ece_packets += if is_syn { 0 } else { count(flag::ECE) };
        report.cwr_packets += if is_syn { 0 } else { count(flag::CWR) };
        report.cut_options += u64::from(segment.options.is_cut);
        report.malformed_options += u64::from(segment.options.is_malformed);
    }

    /// The options of this end's SYN.
    pub fn syn_options(&mut self, segment: &Segment) {
        let options = &segment.options;
        self.report.mss_bytes = options.mss_bytes;
        self.report.window_scale = options.window_scale;
        self.report.is_sack_permitted = options.sack_permitted;
    }

    /// What the peer's SYN says: what it receives, and whether windows are scaled.
    pub fn peer_options(&mut self, peer: &Direction) {
        self.peer_mss_bytes = peer.mss_bytes;
        self.scale = match (self.report.window_scale, peer.window_scale) {
            (Some(own), Some(_)) => own,
            _ => 0,
        };
    }

    /// The window that a segment of this end offers, bytes.
    pub fn offers(&mut self, segment: &Segment, verdict: &mut Verdict) -> i64 {
        let is_syn = segment.has(flag::SYN);
        let bytes = i64::from(segment.window) << if is_syn { 0 } else { self.scale };
        if segment.has(flag::RST) {
            return bytes;
        }
        self.window = Some(segment.window);
        self.report.window_max_bytes = self.report.window_max_bytes.max(bytes as u64);
        if is_syn {
            return bytes;
        }
        let least = self.report.window_min_bytes.unwrap_or(u64::MAX);
        self.report.window_min_bytes = Some(least.min(bytes as u64));
        let is_closed = bytes == 0 && !segment.has(flag::FIN);
        if is_closed {
            verdict.is_zero_window = true;
            self.report.zero_window_packets += 1;
            self.report.zero_windows += u64::from(self.closed_since_ns.is_none());
            self.closed_since_ns.get_or_insert(segment.time_ns);
        } else if bytes > 0
            && let Some(since_ns) = self.closed_since_ns.take()
        {
            self.closed_ns = sum_ns(self.closed_ns, segment.time_ns.saturating_sub(since_ns));
        }
        bytes
    }

    /// Whether the last segment of this end offered this window, not scaled.
    pub fn has_offered(&self, window: u16) -> bool {
        self.window == Some(window)
    }

    /// How long until this end's timestamps come back, if this is the first echo.
    pub fn is_echoed(&mut self, segment: &Segment) {
        let Some((_, tsecr)) = segment.options.timestamps else {
            return;
        };
        if segment.has(flag::ACK)
            && let Some(took_ns) = self.echoes.echoed(tsecr, segment.time_ns)
            && took_ns >= 0
        {
            self.echo_rtt.add(took_ns);
            self.echo_srtt_ns = Some(smoothed(self.echo_srtt_ns, took_ns));
        }
    }

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
            self.advance(segment, ack);
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
    }

    fn advance(&mut self, segment: &Segment, ack: i64) {
        let tsecr = segment.options.timestamps.map(|(_, tsecr)| tsecr);
        let was_whole = self.sacked.is_empty() && self.repair.duplicate_acks == 0;
        self.report.spurious_by_timestamp += self.repair.acked(self.una, ack, tsecr);
        let missing = self.seen.forget_below(self.una, ack) as u64;
        self.report.unseen_bytes = self.report.unseen_bytes.saturating_add(missing);
        self.highest = self.highest.max(ack);
        let acked = self.outstanding.ack(ack);
        if let Some(sent) = acked.newest
            && was_whole
            && !acked.any_retransmitted
        {
            self.sample(segment.time_ns.saturating_sub(sent.time_ns));
        }
        self.sacked.forget_below(self.una, ack);
        self.una = ack;
        self.last_acked_ns = Some(segment.time_ns);
    }

    fn sample(&mut self, rtt_ns: i64) {
        if rtt_ns < 0 {
            return;
        }
        self.rtt.add(rtt_ns);
        self.srtt_ns = Some(smoothed(self.srtt_ns, rtt_ns));
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
            uses_sack: self.report.is_sack_permitted,
        };
        let kind = self.repair.judge(again, &moment, room.retransmissions);
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

    /// Time passes until `time_ns` in the state that the last segment left.
    fn account(&mut self, time_ns: i64) {
        let Some(since_ns) = self.accounted_ns else {
            self.accounted_ns = Some(time_ns);
            return;
        };
        let passed_ns = time_ns.saturating_sub(since_ns);
        if passed_ns <= 0 {
            return;
        }
        self.accounted_ns = Some(time_ns);
        if self.first_data_ns.is_none() {
            return;
        }
        let outstanding = self.highest - self.una;
        self.outstanding_integral += outstanding as f64 * passed_ns as f64;
        if outstanding == 0 {
            self.pending_idle_ns = sum_ns(self.pending_idle_ns, passed_ns);
        }
        if self.is_window_limited() {
            self.limited_ns = sum_ns(self.limited_ns, passed_ns);
        }
    }

    fn is_window_limited(&self) -> bool {
        let mss_bytes = self.peer_mss_bytes.map_or(DEFAULT_MSS_BYTES, i64::from);
        let segment_bytes = mss_bytes.min(self.report.segment_max_bytes.max(1) as i64);
        let room_bytes = self.edge.map(|edge| edge - self.highest);
        let is_waiting = self.highest > self.una;
        room_bytes.is_some_and(|room| room <= 0 || is_waiting && room < segment_bytes)
    }

    /// Whether a segment with data was seen.
    pub fn has_data(&self) -> bool {
        self.has_data
    }

    /// From the capture to the peer and back, smoothed. Where this end sends ACKs only, the handshake's may have become
    /// wrong, and the peer echoes their timestamps at once.
    pub fn smoothed_rtt_ns(&self) -> Option<i64> {
        match self.has_data {
            true => self.srtt_ns.or(self.echo_srtt_ns),
            false => self.echo_srtt_ns.or(self.srtt_ns),
        }
    }

    /// The least from the capture to the peer and back.
    pub fn min_rtt_ns(&self) -> Option<i64> {
        self.rtt.min_ns().or(self.echo_rtt.min_ns())
    }

    /// The report, when nothing more is to come; `end_ns` is the connection's last moment.
    pub fn finish(&mut self, end_ns: i64) -> Direction {
        let mut report = std::mem::take(&mut self.report);
        let us = |ns: i64| ns as f64 / 1000.0;
        let data_below = |number: i64| {
            let below_fin = self.fin.map_or(number, |fin| number.min(fin));
            (below_fin - self.floor).max(0) as u64
        };
        if self.has_data {
            report.unique_bytes = data_below(self.highest);
            report.acked_bytes = data_below(self.una);
        }
        if let Some(since_ns) = self.closed_since_ns {
            self.closed_ns = sum_ns(self.closed_ns, end_ns.saturating_sub(since_ns));
        }
        if let (Some(first_ns), Some(last_ns)) = (self.first_data_ns, self.last_acked_ns) {
            let took_ns = last_ns.saturating_sub(first_ns).max(0);
            report.data_time_us = us(took_ns);
            if took_ns > 0 {
                let seconds = took_ns as f64 / 1e9;
                report.goodput_bps = report.acked_bytes as f64 * 8.0 / seconds;
                report.outstanding_mean_bytes = self.outstanding_integral / took_ns as f64;
            }
        }
        report.zero_window_us = us(self.closed_ns);
        report.window_limited_us = us(self.limited_ns);
        report.idle_us = us(self.idle_ns);
        report.reordering_us = us(self.reordering_ns);
        report.rtt = self.rtt.summary();
        report.rtt_by_timestamps = self.echo_rtt.summary();
        report
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

fn smoothed(before: Option<i64>, sample: i64) -> i64 {
    before.map_or(sample, |before| before + (sample - before) / SRTT_SHARE)
}

/// Saturates: a hostile file may tell any times.
fn sum_ns(a: i64, b: i64) -> i64 {
    a.saturating_add(b.max(0))
}

/// The place of `number` that is nearest to `reference`.
fn unwrapped(base: u32, reference: i64, number: u32) -> i64 {
    let expected = base.wrapping_add(reference as u32);
    reference + i64::from(number.wrapping_sub(expected) as i32)
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! One direction of a connection: the data that one end sends, and what the other end answers.
//!
//! Sequence numbers are counted from the first that was seen, without wrapping.

mod acks;
mod data;
mod flight;

use crate::distribution::Distribution;
use crate::echo::Echoes;
use crate::loss::Repair;
use crate::outstanding::Outstanding;
use crate::ranges::Ranges;
use crate::report::Direction;
use crate::segment::{Ecn, Segment, flag};
use crate::verdict::Verdict;
use flight::Flight;

/// RFC 6298, section 2: alpha.
const SRTT_SHARE: i64 = 8;

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
    flight: Flight,
    /// When the last ACK came, if it was late and of all data.
    late_ack_ns: Option<i64>,
    /// When that was sent which was sent last of what has been acknowledged.
    delivered_sent_ns: Option<i64>,
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
    gap_max_ns: i64,
    last_data_ns: i64,
    first_data_ns: Option<i64>,
    last_acked_ns: Option<i64>,
    accounted_ns: Option<i64>,
    /// Bytes times ns.
    outstanding_integral: f64,
    /// The same, up to the last ACK of data: a flow may stall after it.
    outstanding_until_acked: f64,
    limited_ns: i64,
    idle_ns: i64,
    /// Idle, if data follows.
    pending_idle_ns: i64,
    closed_ns: i64,
    timeout_wait_ns: i64,
    reordering_ns: i64,
    pub report: Direction,
}

impl Half {
    /// What the next segments touch beside its own bytes.
    pub fn prefetch(&self) {
        self.outstanding.prefetch();
        self.seen.prefetch();
        self.sacked.prefetch();
        self.echoes.prefetch();
    }

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
            let gap_ns = time_ns.saturating_sub(last_ns);
            self.gap_max_ns = self.gap_max_ns.max(gap_ns);
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
        let segment_bytes = self.full_bytes();
        let room_bytes = self.edge.map(|edge| edge - self.highest);
        let is_waiting = self.highest > self.una;
        room_bytes.is_some_and(|room| room <= 0 || is_waiting && room < segment_bytes)
    }

    /// Data of a full segment, as far as it is known.
    fn full_bytes(&self) -> i64 {
        let mss_bytes = self.peer_mss_bytes.map_or(DEFAULT_MSS_BYTES, i64::from);
        mss_bytes.min(self.report.segment_max_bytes.max(1) as i64)
    }

    /// Where this number of the data's lies, counted from the first that was seen.
    pub fn place_of_data(&self, number: u32) -> Option<i64> {
        Some(unwrapped(self.base?, self.highest, number))
    }

    /// The same of a number in an ACK.
    pub fn place_of_ack(&self, number: u32) -> Option<i64> {
        Some(unwrapped(self.base?, self.una, number))
    }

    /// Everything below is acknowledged.
    pub fn una(&self) -> i64 {
        self.una
    }

    /// Right edge of the peer's window.
    pub fn edge(&self) -> Option<i64> {
        self.edge
    }

    /// Sent and not acknowledged.
    pub fn outstanding_bytes(&self) -> i64 {
        self.highest - self.una
    }

    /// What it holds besides its own size, bytes.
    pub fn heap_bytes(&self) -> usize {
        self.seen.heap_bytes()
            + self.sacked.heap_bytes()
            + self.outstanding.heap_bytes()
            + self.repair.heap_bytes()
            + self.rtt.heap_bytes()
            + self.echo_rtt.heap_bytes()
            + self.echoes.heap_bytes()
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
        self.report_flight();
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
                report.outstanding_mean_bytes = self.outstanding_until_acked / took_ns as f64;
            }
        }
        report.zero_window_us = us(self.closed_ns);
        report.window_limited_us = us(self.limited_ns);
        report.idle_us = us(self.idle_ns);
        report.gap_max_us = us(self.gap_max_ns);
        report.timeout_wait_us = us(self.timeout_wait_ns);
        report.reordering_us = us(self.reordering_ns);
        report.rtt = self.rtt.summary();
        report.rtt_by_timestamps = self.echo_rtt.summary();
        report
    }
}

pub(crate) fn smoothed(before: Option<i64>, sample: i64) -> i64 {
    before.map_or(sample, |before| before + (sample - before) / SRTT_SHARE)
}

/// Saturates: a hostile file may tell any times.
fn sum_ns(a: i64, b: i64) -> i64 {
    a.saturating_add(b.max(0))
}

/// The place of `number` that is nearest to `reference`.
pub(crate) fn unwrapped(base: u32, reference: i64, number: u32) -> i64 {
    let expected = base.wrapping_add(reference as u32);
    reference + i64::from(number.wrapping_sub(expected) as i32)
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What leaves: retransmissions, new segments, probes (`tcp_xmit_recovery`, `tcp_write_xmit`).

use fatpath_cc::PathNow;

use super::Sender;
use super::State;
use super::alarm::AlarmKind;
use crate::Segment;
use crate::pacer::Pace;

/// Whose turn it is after an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Turn {
    /// New segments only.
    #[default]
    New,
    /// What is lost first, then new segments.
    Lost,
    /// New segments; if none can leave, what is lost (F-RTO, RFC 5682, 3.1, step 2b).
    NewThenLost,
}

/// What leaves at one moment.
#[derive(Debug, Default)]
pub(super) struct Burst {
    pub(super) turn: Turn,
    /// A probe, which no window holds back.
    probe: Option<Probe>,
    /// The new segments of this burst, and whether none was on its way before.
    new_pkts: u32,
    was_idle: bool,
    pub(super) paced_until_ns: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
enum Probe {
    Tail,
    Window,
}

impl Sender {
    pub(super) fn next_segment(&mut self, now_ns: u64) -> Option<Segment> {
        if let Some(probe) = self.burst.probe.take() {
            return match probe {
                Probe::Tail => self.tail_probe_segment(now_ns),
                Probe::Window => Some(self.window_probe_segment(now_ns)),
            };
        }
        let waits = self.burst.paced_until_ns.is_some_and(|at| at > now_ns);
        if waits && self.pacer.sends_batches() {
            return None; // an acknowledgement does not break the next batch up
        }
        self.burst.paced_until_ns = None;
        if self.window.cwnd_pkts <= self.board.in_flight() {
            return None;
        }
        let is_leaving = self.offload.is_leaving();
        if let Some(until_ns) = (self.pacer.waits_until_ns(now_ns)).filter(|_| !is_leaving) {
            if self.has_unsent() || self.board.next_lost().is_some() {
                self.burst.paced_until_ns = Some(until_ns);
            }
            return None;
        }
        self.take_turn(now_ns)
    }

    fn take_turn(&mut self, now_ns: u64) -> Option<Segment> {
        if self.burst.turn == Turn::Lost
            && let Some(segment) = self.retransmission(now_ns)
        {
            return Some(segment);
        }
        if let Some(segment) = self.new_segment(now_ns) {
            return Some(segment);
        }
        if self.burst.turn == Turn::NewThenLost && self.burst.new_pkts == 0 {
            self.doubts_timeout = false;
            self.burst.turn = Turn::Lost;
            return self.retransmission(now_ns);
        }
        None
    }

    fn retransmission(&mut self, now_ns: u64) -> Option<Segment> {
        let number = self.board.next_lost()?;
        self.begin_rate_transmission(now_ns);
        let payload_bytes = self.board.resend(number, now_ns);
        self.mark_sent(now_ns, number, false);
        self.undo.resent(now_ns);
        self.figures.retransmits += 1;
        self.count_in_recovery();
        if number == self.board.una() && self.alarm.kind() != Some(AlarmKind::Reordering) {
            self.alarm
                .set(AlarmKind::Retransmission, now_ns + self.rtt.rto_ns());
        }
        Some(self.segment(now_ns, number, payload_bytes))
    }

    fn new_segment(&mut self, now_ns: u64) -> Option<Segment> {
        if self.fitting_payload() == 0 || !self.gives_device(now_ns) {
            return None;
        }
        self.begin_rate_transmission(now_ns);
        if self.board.is_empty() {
            self.begin_transmission(now_ns);
        }
        let payload_bytes = self.fitting_payload();
        self.burst.was_idle |= self.board.is_empty();
        self.burst.new_pkts += 1;
        self.count_in_recovery();
        Some(self.send_new(now_ns, payload_bytes))
    }

    fn send_new(&mut self, now_ns: u64, payload_bytes: u32) -> Segment {
        self.buffer.take(payload_bytes);
        self.offload.sent();
        let was_idle = self.board.is_empty();
        let number = self.board.send(now_ns, payload_bytes);
        self.mark_sent(now_ns, number, was_idle);
        Segment {
            ecn: self.ecn_of(true),
            cwr: self.take_cwr(),
            ..self.segment(now_ns, number, payload_bytes)
        }
    }

    /// The data of the next new segment; 0: there is none, or it does not fit into the peer's window.
    pub(super) fn fitting_payload(&self) -> u32 {
        let payload_bytes = self.buffer.next_payload();
        let fits = u64::from(payload_bytes) <= self.peer_room();
        if fits { payload_bytes } else { 0 }
    }

    pub(super) fn peer_room(&self) -> u64 {
        let next_byte = self.figures.acked_bytes + self.board.bytes();
        self.peer_window_end.saturating_sub(next_byte)
    }

    /// Nothing is on its way, and something is to leave.
    pub fn is_to_begin_transmission(&self) -> bool {
        self.board.is_empty() && self.fitting_payload() > 0
    }

    /// Nothing is on its way, and something is about to leave: the window may have decayed, and the
    /// start may be paced.
    fn begin_transmission(&mut self, now_ns: u64) {
        let idle_ns = now_ns - self.last_sent_ns;
        if self.is_rude() {
            self.begin_rude_transmission(idle_ns);
            return;
        }
        if self.rate_flow.is_some() {
            return; // its law decides
        }
        self.end_burst_bound();
        if idle_ns > self.rtt.rto_ns() {
            let (window, rto_us) = (&mut self.window, self.rtt.rto_us() as u32);
            let initial = self.initial_window_pkts;
            self.control
                .idle_restart(window, idle_ns / 1000, rto_us, initial);
        }
        let path = PathNow {
            srtt_us: self.rtt.srtt_us() as u32,
            mss_bytes: self.mss_bytes,
        };
        if self.state == State::Open {
            let rate = self.control.transmission_starts(&mut self.window, &path);
            self.pacer.set_start(rate);
            self.bound_burst();
        }
    }

    /// The first acknowledgement of any of its data ends a paced start; `in_flight` were so before it.
    pub(super) fn end_paced_start(&mut self, in_flight: u32) {
        if self.pacer.is_start() && self.control.ack_arrived(&mut self.window, in_flight) {
            self.pacer.set_start(None);
        }
    }

    fn count_in_recovery(&mut self) {
        if self.is_reducing() {
            self.reduction.sent();
        }
    }

    fn segment(&mut self, now_ns: u64, number: u64, payload_bytes: u32) -> Segment {
        self.last_sent_ns = now_ns;
        self.pace(now_ns, payload_bytes);
        Segment {
            number,
            payload_bytes,
            sent_ns: now_ns,
            echo_ns: self.newest_ack_sent_ns,
            ecn: self.ecn_of(false),
            cwr: false,
        }
    }

    /// What follows waits until so many bytes that leave now have their time.
    pub(super) fn pace(&mut self, now_ns: u64, bytes: u32) {
        if self.pacer.is_on() {
            let pace = self.pace_now();
            self.pacer.sent(now_ns, bytes, &pace);
        }
    }

    pub(super) fn pace_now(&self) -> Pace {
        let packets = self.window.cwnd_pkts.max(self.board.packets_out());
        Pace {
            window_bytes: u64::from(packets) * u64::from(self.mss_bytes),
            srtt_us: self.rtt.srtt_us(),
            is_slow_start: self.window.cwnd_pkts < self.window.ssthresh_pkts / 2,
            sent_pkts: self.figures.sent_pkts,
        }
    }

    /// All that may leave now has left.
    pub(super) fn end_burst(&mut self, now_ns: u64) {
        let (new_pkts, was_idle) = (self.burst.new_pkts, self.burst.was_idle);
        (self.burst.new_pkts, self.burst.was_idle) = (0, false);
        let is_held_back = self.offload.end_burst();
        let is_limiting = is_held_back || self.board.in_flight() >= self.window.cwnd_pkts;
        if new_pkts > 0 || (is_limiting && self.has_unsent()) {
            self.usage.note(is_limiting, &self.board);
        }
        if new_pkts > 0 {
            if was_idle || self.alarm.kind() == Some(AlarmKind::TailProbe) {
                self.restart_timeout(now_ns);
            }
            self.schedule_tail_probe_of_burst(now_ns);
        }
        self.schedule_window_probe(now_ns);
        self.note_program_limits();
    }

    /// No acknowledgement came for two round trips (RFC 8985, 7.3); one probe at most is on its way.
    pub(super) fn probe_tail(&mut self, now_ns: u64) {
        if self.tail_probe.is_some() || self.board.is_empty() {
            self.alarm_after_probe(now_ns);
        } else {
            self.burst.probe = Some(Probe::Tail);
        }
    }

    fn tail_probe_segment(&mut self, now_ns: u64) -> Option<Segment> {
        self.figures.tail_probes += 1;
        let payload_bytes = self.fitting_payload();
        let is_resent = payload_bytes == 0;
        let segment = if is_resent {
            let (number, payload_bytes) = self.board.probe_tail(now_ns);
            self.mark_sent(now_ns, number, false);
            self.figures.retransmits += 1;
            self.segment(now_ns, number, payload_bytes)
        } else {
            self.send_new(now_ns, payload_bytes)
        };
        self.tail_probe = Some((self.board.next(), is_resent));
        self.alarm.clear();
        self.restart_timeout(now_ns);
        Some(segment)
    }

    fn alarm_after_probe(&mut self, now_ns: u64) {
        self.alarm.set(AlarmKind::TailProbe, now_ns);
        self.restart_timeout(now_ns);
    }

    /// The peer's window has been closed for a timeout.
    pub(super) fn probe_window(&mut self, now_ns: u64) {
        self.rtt.back_off();
        self.burst.probe = Some(Probe::Window);
        self.alarm
            .set(AlarmKind::WindowProbe, now_ns + self.rtt.rto_ns());
    }

    /// What fits into the window, or nothing, to be told how it stands.
    fn window_probe_segment(&mut self, now_ns: u64) -> Segment {
        let room = self.peer_room().min(u64::from(u32::MAX)) as u32;
        let payload_bytes = self.buffer.next_payload().min(room);
        if payload_bytes > 0 {
            return self.send_new(now_ns, payload_bytes);
        }
        let number = self.board.next();
        self.segment(now_ns, number, 0)
    }

    /// A window that opens ends the probes.
    pub(super) fn answer_window_probe(&mut self, now_ns: u64) {
        if self.alarm.kind() != Some(AlarmKind::WindowProbe) {
            return;
        }
        if !self.board.is_empty() || self.fitting_payload() > 0 {
            self.rtt.end_backoff();
            self.alarm.clear();
            self.restart_timeout(now_ns);
        }
    }
}

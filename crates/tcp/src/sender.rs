// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sending end: what an acknowledgement does, in the order in which Linux 6.18 does it (`tcp_ack`).
//!
//! It leaves out SACK reneging (the receiver keeps what it SACKed) and Nagle's algorithm.

mod alarm;
mod duplicates;
mod ecn;
mod limit;
mod offload;
mod rate;
mod recovery;
mod resize;
mod rude;
mod timeout;
mod transmit;
mod undo;

use fatpath_cc::{Control, RttSample, Window};

use super::arrivals::Arrivals;
use super::delivery_rate::DeliveryRate;
use super::drops::DropList;
use super::growth::GrowthCount;
use super::kernel_cubic::KernelCubic;
use super::pacer::Pacer;
use super::rack::Rack;
use super::reduction::Reduction;
use super::rtt::RttEstimator;
use super::scoreboard::Scoreboard;
use super::send_buffer::SendBuffer;
use super::usage::Usage;
use super::{Ack, Block, MAX_BLOCKS, Segment, SenderFigures};
use crate::{Detection, TcpSpec};
use alarm::{Alarm, AlarmKind};
use ecn::EcnState;
pub use limit::SendLimit;
use offload::Offload;
use rate::{RateFlow, delivery_rate_of};
use recovery::Reordering;
use rude::Rudeness;
use transmit::{Burst, Turn};
use undo::Undo;

/// Congestion states, as Linux names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub(super) enum State {
    /// Nothing is wrong.
    Open,
    /// Something arrived out of order.
    Disorder,
    /// The window is being reduced, and nothing was lost.
    Cwr,
    /// Fast recovery.
    Recovery,
    /// After a timeout.
    Loss,
}

/// The sending end of a connection.
#[derive(Debug)]
pub struct Sender {
    pub(super) mss_bytes: u32,
    pub(super) initial_window_pkts: u32,
    pub(super) detection: Detection,
    pub(super) tail_loss_probe: bool,
    max_burst_pkts: u32,
    /// Until this acknowledgement the bound held a part of the window back.
    was_held_back: bool,
    pub(super) control: Control,
    kernel_cubic: Option<KernelCubic>,
    /// Of a law that samples the delivery rate, in the place of `control`.
    rate_flow: Option<Box<RateFlow>>,
    delivery_rate: Option<Box<DeliveryRate>>,
    /// None of a polite flow.
    rudeness: Option<Box<Rudeness>>,
    pub(super) window: Window,
    pub(super) board: Scoreboard,
    pub(super) buffer: SendBuffer,
    pub(super) rack: Rack,
    pub(super) rtt: RttEstimator,
    pub(super) pacer: Pacer,
    pub(super) usage: Usage,
    alarm: Alarm,
    burst: Burst,
    offload: Offload,
    pub(super) state: State,
    /// Recovery ends when all below has arrived (`high_seq`).
    pub(super) high: u64,
    pub(super) reduction: Reduction,
    growth: GrowthCount,
    drops: DropList,
    /// NewReno: duplicate acknowledgements that do not acknowledge more tell of what was sent twice (`recover` of
    /// RFC 6582).
    recover: Option<u64>,
    ecn: EcnState,
    undo: Undo,
    reordering: Reordering,
    /// F-RTO asks whether the timeout was needed (RFC 5682).
    pub(super) doubts_timeout: bool,
    /// Timeouts since the last acknowledgement of new data.
    pub(super) timeouts_in_row: u32,
    /// `next` when the tail loss probe left, and whether it was a retransmission.
    pub(super) tail_probe: Option<(u64, bool)>,
    /// Where the peer's window ends, bytes from the beginning.
    pub(super) peer_window_end: u64,
    pub(super) newest_ack_sent_ns: u64,
    pub(super) last_sent_ns: u64,
    pub(super) figures: SenderFigures,
}

impl Sender {
    /// Of a connection whose handshake has just ended after `rtt_ns`.
    pub fn new(spec: &TcpSpec, rtt_ns: u64, now_ns: u64) -> Sender {
        let mut control = Control::new(spec.law, spec.start);
        let mut window = Window::new(spec.initial_window_pkts.clamp(1, spec.cwnd_clamp_pkts));
        window.clamp_pkts = spec.cwnd_clamp_pkts;
        control.begin(&mut window);
        let mut sender = Sender {
            rate_flow: RateFlow::new(spec, &mut window, rtt_ns, now_ns),
            delivery_rate: delivery_rate_of(spec),
            mss_bytes: spec.mss_bytes,
            initial_window_pkts: spec.initial_window_pkts,
            detection: spec.detection,
            tail_loss_probe: spec.tail_loss_probe,
            max_burst_pkts: spec.max_burst_pkts,
            was_held_back: false,
            rudeness: Rudeness::new(spec, &window),
            control,
            kernel_cubic: spec.starts_as_kernel.then(KernelCubic::default),
            window,
            board: Scoreboard::default(),
            buffer: SendBuffer::new(spec),
            rack: Rack::new(),
            rtt: RttEstimator::new(rtt_ns, spec.rto_min_ns),
            pacer: Pacer::new(spec),
            usage: Usage::default(),
            alarm: Alarm::default(),
            burst: Burst::default(),
            offload: Offload::new(spec),
            state: State::Open,
            high: 0,
            reduction: Reduction::new(spec.reduction),
            growth: GrowthCount::new(spec.growth),
            drops: DropList::new(&spec.drops),
            recover: None,
            ecn: EcnState::new(spec.ecn),
            undo: Undo::default(),
            reordering: Reordering::new(spec.dupthresh),
            doubts_timeout: false,
            timeouts_in_row: 0,
            tail_probe: None,
            peer_window_end: 0,
            newest_ack_sent_ns: 0,
            last_sent_ns: now_ns,
            figures: SenderFigures::default(),
        };
        let rate = sender
            .rate_flow
            .as_ref()
            .map(|flow| flow.pacing_bytes_per_s());
        sender.pacer.set_rate(rate);
        sender.grow_buffer();
        sender
    }

    /// What the receiver offered in the handshake.
    pub fn set_peer_window(&mut self, bytes: u64) {
        self.peer_window_end = self.peer_window_end.max(bytes);
        self.open_rude_window(self.last_sent_ns);
    }

    /// The program gives data.
    pub fn write(&mut self, bytes: u64) {
        self.buffer.write(bytes, self.board.bytes());
    }

    /// An acknowledgement arrives.
    pub fn handle_ack(&mut self, now_ns: u64, ack: &Ack) {
        if ack.next > self.board.next() {
            return; // of what was never sent
        }
        self.burst.turn = Turn::New;
        self.note_before_ack();
        let had_sent = !self.board.is_empty();
        if had_sent {
            self.end_burst_bound();
        }
        let prior_una = self.board.una();
        let arrivals = &mut Arrivals::new(now_ns, ack.echo_ns, self.rtt.min_rtt_ns(), self.high);
        arrivals.echoes_mark = self.ecn.believes(ack.ece);
        self.learn(ack, arrivals);
        self.open_window(ack, arrivals);
        self.learn_unnamed(ack, arrivals);
        if had_sent || arrivals.tells_duplicate {
            self.judge_tail_probe(ack, arrivals);
            if arrivals.is_dubious() || self.state != State::Open {
                self.judge(arrivals, prior_una);
            }
            let head_sent_ns = self.board.oldest_sent_ns();
            if arrivals.restarts_timeout(head_sent_ns) && !arrivals.keeps_alarm {
                self.set_alarm(now_ns);
            }
            self.steer(arrivals);
        }
        self.answer_window_probe(now_ns);
    }

    /// What arrived, and how long it took.
    fn learn(&mut self, ack: &Ack, arrivals: &mut Arrivals) {
        let (highest, in_flight) = (self.board.highest_arrived(), self.board.in_flight());
        // Blocks that were not agreed on would count what duplicate acknowledgements count already.
        if self.detection.uses_sack() {
            self.learn_duplicate(ack, arrivals);
            self.learn_sacked(ack, arrivals);
        }
        self.board.acknowledge(ack, &mut self.rack, arrivals);
        arrivals.delivered_pkts += arrivals.sacked_pkts;
        self.figures.acked_bytes += arrivals.acked_bytes;
        self.figures.delivered_pkts += u64::from(arrivals.delivered_pkts);
        self.count_marks(arrivals);
        if arrivals.advances() {
            self.timeouts_in_row = 0;
        }
        if arrivals.tells_arrival() {
            self.end_paced_start(in_flight);
        }
        // HyStart asks when the acknowledgement came.
        self.window.now_us = arrivals.now_ns / 1000;
        self.measure(ack, arrivals);
        self.set_clock(arrivals.now_ns);
        if let Some(late) = arrivals.late_acked.filter(|late| *late < highest) {
            self.reordering.saw(late, self.board.highest_arrived());
        }
        self.rack.adjust(self.board.una(), self.board.next());
    }

    fn learn_sacked(&mut self, ack: &Ack, arrivals: &mut Arrivals) {
        let (mut blocks, count) = ([Block::default(); MAX_BLOCKS], ack.sacked().len());
        blocks[..count].copy_from_slice(ack.sacked());
        blocks[..count].sort_unstable_by_key(|block| block.from);
        for block in &blocks[..count] {
            self.board.sack(*block, &mut self.rack, arrivals);
        }
        let is_believed = self.state != State::Loss || self.undo.is_possible();
        if let Some(late) = arrivals.late_sacked.filter(|_| is_believed) {
            self.reordering.saw(late, self.board.highest_arrived());
        }
    }

    /// A DSACK (RFC 2883): a segment arrived twice.
    fn learn_duplicate(&mut self, ack: &Ack, arrivals: &mut Arrivals) {
        let Some(block) = ack.duplicate() else {
            return;
        };
        let count = block.until.saturating_sub(block.from) as u32;
        self.figures.duplicates_told += u64::from(count);
        if count == 0 || self.figures.duplicates_told > self.figures.retransmits {
            return; // the network doubled it
        }
        arrivals.tells_duplicate = true;
        arrivals.duplicate_is_probe = self.tail_probe.is_some_and(|(end, _)| block.until == end);
        arrivals.delivered_pkts += count;
        if self.reordering.is_seen() && !arrivals.duplicate_is_probe {
            self.rack.note_duplicate();
        }
        let known = self.board.duplicates(block);
        let is_old = block.until <= self.board.una().max(ack.next);
        self.undo
            .duplicated(if is_old { count } else { known }, block.until);
    }

    /// The round-trip time: of segments sent once, else of what timestamps echo (RFC 7323, 4.1).
    fn measure(&mut self, ack: &Ack, arrivals: &Arrivals) {
        let since = |sent_ns: u64| arrivals.now_ns - sent_ns;
        let acked = arrivals.acked_sent_ns.filter(|_| !arrivals.resent_acked);
        let newest = arrivals.sacked_sent_ns.or(acked);
        let echoed = arrivals.advances().then_some((ack.echo_ns, ack.echo_ns));
        let Some((first_ns, _)) = acked.or(arrivals.sacked_sent_ns).or(echoed) else {
            self.note_rtt(RttSample::default());
            return;
        };
        let last_rtt_ns = since(newest.or(echoed).map_or(first_ns, |(_, last)| last));
        self.rtt.sample_min(last_rtt_ns);
        let (una, next) = (self.board.una(), self.board.next());
        self.rtt.sample(since(first_ns), una, next);
        let sample = RttSample {
            rtt_us: (last_rtt_ns / 1000) as u32,
            acked_seq: una as u32,
            next_seq: next as u32,
        };
        self.note_rtt(sample);
    }

    fn open_window(&mut self, ack: &Ack, arrivals: &mut Arrivals) {
        self.newest_ack_sent_ns = self.newest_ack_sent_ns.max(ack.sent_ns);
        if ack.next < self.board.una() {
            return;
        }
        let end = self.figures.acked_bytes + ack.window_bytes;
        if end > self.peer_window_end {
            self.peer_window_end = end;
        }
        let left = self.peer_window_end - self.figures.acked_bytes;
        arrivals.window_changed = left != self.figures.peer_window_bytes;
        self.figures.peer_window_bytes = left;
    }

    /// The window follows (`tcp_cong_control`): it is reduced in recovery and grows outside.
    fn steer(&mut self, arrivals: &Arrivals) {
        if self.is_rude() {
            self.steer_rudely(arrivals);
        } else if self.rate_flow.is_some() {
            self.steer_by_rate(arrivals);
        } else if self.is_reducing() {
            self.reduce(arrivals.delivered_pkts, arrivals);
        } else if self.may_grow(arrivals) {
            let grown_by = self.growth.pkts(&self.window, arrivals.delivered_pkts);
            self.grow(grown_by);
        }
        self.bound_burst();
        self.grow_buffer();
        self.buffer.acknowledged(self.board.bytes());
    }

    /// Recovery sends as much as arrives; after a timeout slow start begins with one segment.
    pub(super) fn bound_burst(&mut self) {
        if self.state <= State::Disorder && !self.is_rude() && self.rate_flow.is_none() {
            let (most_pkts, in_flight) = (self.max_burst_pkts, self.board.in_flight());
            self.control
                .bound_burst(&mut self.window, most_pkts, in_flight);
        }
    }

    pub(super) fn end_burst_bound(&mut self) {
        self.was_held_back = self.control.end_burst_bound(&mut self.window);
    }

    fn grow_buffer(&mut self) {
        let wanted = self.window.cwnd_pkts.max(self.initial_window_pkts);
        let degree = self.reordering.degree_pkts();
        self.buffer.grow(wanted.max(degree + 1));
    }

    /// `tcp_may_raise_cwnd` and `tcp_is_cwnd_limited`, and of what was held back nothing was used; R and F look at their use themselves.
    fn may_grow(&self, arrivals: &Arrivals) -> bool {
        let progresses = if self.reordering.is_high() {
            arrivals.delivered_pkts > 0
        } else {
            arrivals.advances()
        };
        progresses
            && (self.is_going_polite() || (!self.was_held_back && self.usage.is_full(&self.window)))
    }

    /// Something in the buffer has not been sent yet.
    pub(super) fn has_unsent(&self) -> bool {
        self.buffer.next_payload() > 0
    }

    /// When [`Sender::handle_timeout`] is to be called.
    pub fn next_timeout_ns(&self) -> Option<u64> {
        match (self.alarm.at_ns(), self.burst.paced_until_ns) {
            (Some(alarm), Some(pace)) => Some(alarm.min(pace)),
            (alarm, pace) => alarm.or(pace),
        }
    }

    /// A time that [`Sender::next_timeout_ns`] named has come.
    pub fn handle_timeout(&mut self, now_ns: u64) {
        if self.burst.paced_until_ns.is_some_and(|at| at <= now_ns) {
            self.burst.paced_until_ns = None;
            self.pacer.wake(now_ns);
        }
        match self.alarm.take_due(now_ns) {
            Some(AlarmKind::Retransmission) => self.time_out(now_ns),
            Some(AlarmKind::Reordering) => self.reordering_ends(now_ns),
            Some(AlarmKind::TailProbe) => self.probe_tail(now_ns),
            Some(AlarmKind::WindowProbe) => self.probe_window(now_ns),
            None => (),
        }
    }

    /// The next segment to leave now; to be asked until `None`.
    pub fn poll_transmit(&mut self, now_ns: u64) -> Option<Segment> {
        while let Some(segment) = self.next_segment(now_ns) {
            self.figures.sent_pkts += 1;
            let has_data = segment.payload_bytes > 0;
            if !(has_data && self.drops.take(segment.number)) {
                return Some(segment);
            }
        }
        self.end_burst(now_ns);
        None
    }

    /// Written and not yet acknowledged.
    pub fn unacked_bytes(&self) -> u64 {
        self.buffer.bytes().saturating_add(self.board.bytes())
    }

    /// All that was written has been acknowledged.
    pub fn is_done(&self) -> bool {
        self.unacked_bytes() == 0
    }

    /// How it stands.
    pub fn figures(&self) -> SenderFigures {
        SenderFigures {
            cwnd_pkts: self.window.cwnd_pkts,
            ssthresh_pkts: self.window.ssthresh_pkts,
            srtt_us: self.rtt.srtt_us() as u32,
            min_rtt_us: (self.rtt.min_rtt_ns() / 1000) as u32,
            rto_us: self.rtt.rto_us(),
            in_flight_pkts: self.board.in_flight(),
            fair_pkts: self.rudeness.as_ref().map(|flow| flow.fair_pkts()),
            reordering_pkts: self.reordering.degree_pkts(),
            ..self.figures
        }
    }
}

#[cfg(test)]
impl Sender {
    /// The counts are those that a walk over the queue finds.
    pub(super) fn check_counts(&self) {
        self.board.check_counts();
    }

    /// Steps of the scoreboard so far.
    pub(super) fn steps(&self) -> u64 {
        self.board.steps
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is made of acknowledgements that may mean a loss: Linux's `tcp_fastretrans_alert`, for RFC 6675,
//! 6937 and 8985. See timeout.rs and undo.rs for the rest.

use super::transmit::Turn;
use super::{Sender, State};
use crate::Ack;
use crate::Detection;
use crate::arrivals::Arrivals;
use crate::rack::Bounds;

/// Most reordering that is reckoned with (`tcp_max_reordering`), segments.
const REORDERING_MAX_PKTS: u32 = 300;

/// The reordering that was seen.
#[derive(Debug)]
pub(super) struct Reordering {
    initial_pkts: u32,
    degree_pkts: u32,
    is_seen: bool,
}

impl Reordering {
    pub(super) fn new(dupthresh: u32) -> Reordering {
        Reordering {
            initial_pkts: dupthresh,
            degree_pkts: dupthresh,
            is_seen: false,
        }
    }

    /// `late` arrived when all below `highest` might have (`tcp_check_sack_reordering`).
    pub(super) fn saw(&mut self, late: u64, highest: u64) {
        if late < highest {
            let degree = (highest - late).min(u64::from(REORDERING_MAX_PKTS)) as u32;
            self.degree_pkts = self.degree_pkts.max(degree);
            self.is_seen = true;
        }
    }

    pub(super) fn degree_pkts(&self) -> u32 {
        self.degree_pkts
    }

    pub(super) fn is_seen(&self) -> bool {
        self.is_seen
    }

    /// It was so late for a timeout, with so many SACKed, that they were not reordered.
    pub(super) fn distrust(&mut self, sacked_pkts: u32) {
        if sacked_pkts >= self.initial_pkts {
            self.degree_pkts = self.degree_pkts.min(self.initial_pkts);
        }
    }

    /// More than was reckoned with at first.
    pub(super) fn is_high(&self) -> bool {
        self.degree_pkts > self.initial_pkts
    }
}

impl Sender {
    /// Finds losses, enters and leaves recovery (`tcp_fastretrans_alert`).
    pub(super) fn judge(&mut self, arrivals: &mut Arrivals, prior_una: u64) {
        if arrivals.echoes_mark {
            self.undo.prior_ssthresh_pkts = 0;
        }
        if self.state == State::Open {
            self.undo.first_resent_ns = None;
        } else if self.state == State::Recovery && self.ends_recovery(arrivals) {
            self.recover(arrivals);
            self.end_reduction();
        }
        self.end_cwr();
        match self.state {
            State::Recovery => self.judge_in_recovery(arrivals, prior_una),
            State::Loss => self.judge_in_loss(arrivals),
            State::Open | State::Disorder | State::Cwr => self.judge_calmly(arrivals),
        }
    }

    fn judge_calmly(&mut self, arrivals: &mut Arrivals) {
        if self.state <= State::Disorder {
            self.undo_if_needless();
        }
        self.find_losses(arrivals);
        if self.is_time_to_recover() {
            self.enter_recovery(arrivals.echoes_mark);
            self.burst.turn = Turn::Lost;
        } else {
            self.heed_echo(arrivals);
        }
    }

    fn judge_in_recovery(&mut self, arrivals: &mut Arrivals, prior_una: u64) {
        if arrivals.advances() && self.undo.is_late(arrivals.echo_ns) {
            self.reordering.saw(prior_una, self.board.highest_arrived());
            if self.board.counts().resent > 0 {
                return; // retransmissions wait until it is known whether they were needed
            }
            self.forget_retransmission_time();
            self.take_back(true);
            self.keep_open();
        }
        if self.undo_if_needless() {
            self.keep_open();
        }
        self.find_losses(arrivals);
        if self.state != State::Recovery {
            if !self.is_time_to_recover() {
                return;
            }
            self.enter_recovery(arrivals.echoes_mark);
        }
        self.burst.turn = Turn::Lost;
    }

    /// `tcp_process_loss`, and what follows it.
    fn judge_in_loss(&mut self, arrivals: &mut Arrivals) {
        self.burst.turn = self.doubt_timeout(arrivals);
        self.find_losses(arrivals);
        if self.state == State::Open || arrivals.resent_lost {
            self.judge_calmly(arrivals);
        }
    }

    /// All that was on its way at the event has arrived (`tcp_try_undo_recovery`).
    pub(super) fn recover(&mut self, arrivals: &Arrivals) {
        if self.may_take_back(arrivals) {
            self.take_back(false);
        } else {
            self.rack.recovered(true);
        }
        self.board.forget_unnamed();
        self.state = State::Open;
    }

    /// `tcp_try_to_open`.
    pub(super) fn keep_open(&mut self) {
        self.forget_retransmission_time();
        let counts = self.board.counts();
        let is_open = self.board.arrived_beyond() + counts.lost == 0 && !self.board.has_resent();
        let state = if is_open {
            State::Open
        } else {
            State::Disorder
        };
        if state != self.state {
            self.state = state;
            self.high = self.board.next();
        }
    }

    fn is_time_to_recover(&self) -> bool {
        let counts = self.board.counts();
        let is_counted =
            self.detection == Detection::Sack && counts.sacked >= self.reordering.degree_pkts();
        counts.lost > 0 || is_counted
    }

    /// Marks what is lost.
    fn find_losses(&mut self, arrivals: &mut Arrivals) {
        if self.board.is_empty() {
            return;
        }
        let before = self.board.counts();
        let degree_pkts = self.reordering.degree_pkts();
        match self.detection {
            Detection::Rack => self.lose_by_time(arrivals),
            Detection::Sack => self.board.lose_by_count(degree_pkts),
            Detection::Fack => self.board.lose_by_highest(degree_pkts),
            Detection::NewReno | Detection::Reno => self.lose_by_duplicates(arrivals),
        }
        let after = self.board.counts();
        arrivals.resent_lost |= after.resent < before.resent;
        arrivals.found_lost |= arrivals.resent_lost || after.lost > before.lost;
    }

    fn lose_by_time(&mut self, arrivals: &mut Arrivals) {
        if !self.rack.take_news() {
            return;
        }
        let (reo_wnd_ns, now_ns) = (self.reo_wnd_ns(), arrivals.now_ns);
        if self.board.lose_by_time(&self.rack, reo_wnd_ns, now_ns) {
            self.schedule_reordering(self.rack.last_lost_at_ns(reo_wnd_ns));
            arrivals.keeps_alarm = true;
        }
    }

    fn reo_wnd_ns(&self) -> u64 {
        let is_pressed = self.state >= State::Recovery
            || self.board.counts().sacked >= self.reordering.degree_pkts();
        self.rack.reo_wnd_ns(&Bounds {
            min_rtt_ns: self.rtt.min_rtt_ns(),
            srtt_ns: self.rtt.srtt_ns(),
            is_impatient: !self.reordering.is_seen() && is_pressed,
        })
    }

    /// RACK's timer: what was late is lost (`tcp_rack_reo_timeout`).
    pub(super) fn reordering_ends(&mut self, now_ns: u64) {
        let in_flight = self.board.in_flight();
        self.board
            .lose_by_time(&self.rack, self.reo_wnd_ns(), now_ns);
        if self.board.in_flight() != in_flight {
            if self.state != State::Recovery {
                self.enter_recovery(false);
                if self.has_window_law() {
                    self.reduce_by(1, false);
                }
            }
            self.burst.turn = Turn::Lost;
        }
        self.restart_timeout(now_ns);
    }

    fn enter_recovery(&mut self, echoes_mark: bool) {
        self.forget_retransmission_time();
        self.begin_undo();
        if !self.is_reducing() {
            if !echoes_mark {
                self.undo.prior_ssthresh_pkts = self.current_ssthresh();
            }
            self.begin_reduction();
        }
        self.state = State::Recovery;
        self.recover = Some(self.board.next());
    }

    pub(super) fn begin_reduction(&mut self) {
        self.high = self.board.next();
        self.tail_probe = None;
        self.end_burst_bound();
        self.reduction.begin(self.window.cwnd_pkts);
        self.window.ssthresh_pkts = self.ssthresh_of_event();
        self.owe_cwr();
        self.figures.congestion_events += u64::from(!self.is_rude());
    }

    /// The window goes down to the threshold (`tcp_in_cwnd_reduction`).
    pub(super) fn is_reducing(&self) -> bool {
        matches!(self.state, State::Cwr | State::Recovery)
    }

    /// Recovery is over (`tcp_end_cwnd_reduction`).
    pub(super) fn end_reduction(&mut self) {
        let is_due = self.state == State::Cwr || self.undo.is_possible();
        if self.has_window_law() && is_due {
            self.window.cwnd_pkts = self.window.ssthresh_pkts;
        }
    }

    /// The window in recovery.
    pub(super) fn reduce(&mut self, delivered_pkts: u32, arrivals: &Arrivals) {
        if delivered_pkts > 0 {
            self.reduce_by(delivered_pkts, arrivals.advances() && !arrivals.found_lost);
        }
    }

    fn reduce_by(&mut self, delivered_pkts: u32, is_clean: bool) {
        let ssthresh = self.window.ssthresh_pkts;
        self.window.cwnd_pkts =
            self.reduction
                .cwnd_pkts(ssthresh, &self.board, delivered_pkts, is_clean);
        self.admit_oldest_hole();
    }

    /// What the acknowledgement says of the tail loss probe (RFC 8985, 7.4).
    pub(super) fn judge_tail_probe(&mut self, ack: &Ack, arrivals: &Arrivals) {
        let Some((end, is_resent)) = self.tail_probe.filter(|(end, _)| ack.next >= *end) else {
            return;
        };
        if !is_resent || arrivals.duplicate_is_probe || arrivals.is_duplicate() {
            self.tail_probe = None;
        } else if ack.next > end {
            self.begin_reduction();
            self.note_rude_congestion(arrivals.now_ns);
            if self.has_window_law() {
                self.window.cwnd_pkts = self.window.ssthresh_pkts;
            }
            self.keep_open();
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is made of acknowledgements that may mean a loss, and of timeouts: Linux's
//! `tcp_fastretrans_alert`, `tcp_process_loss` and their undoing, for RFC 6675, 5682, 8985 and 3522.

use super::Ack;
use super::arrivals::Arrivals;
use super::rack::Bounds;
use super::sender::Sender;
use super::transmit::Turn;
use crate::Detection;

/// Most reordering that is reckoned with (`tcp_max_reordering`), segments.
const REORDERING_MAX_PKTS: u32 = 300;

/// Congestion states, as Linux names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub(super) enum State {
    /// Nothing is wrong.
    Open,
    /// Something arrived out of order.
    Disorder,
    /// Fast recovery.
    Recovery,
    /// After a timeout.
    Loss,
}

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

    /// More than was reckoned with at first.
    pub(super) fn is_high(&self) -> bool {
        self.degree_pkts > self.initial_pkts
    }
}

/// What is remembered to take a reduction back.
#[derive(Debug, Default)]
pub(super) struct Undo {
    /// The oldest segment when the window was reduced; `None`: it cannot be taken back.
    from: Option<u64>,
    /// Retransmissions of which no DSACK has told that they were needless; `None`: none yet.
    resent_pkts: Option<u32>,
    /// When the first retransmission left.
    first_resent_ns: Option<u64>,
    /// 0: there is none to go back to.
    prior_ssthresh_pkts: u32,
}

impl Undo {
    fn begin(&mut self, una: u64, resent_pkts: u32) {
        self.from = Some(una);
        self.resent_pkts = (resent_pkts > 0).then_some(resent_pkts);
    }

    pub(super) fn resent(&mut self, now_ns: u64) {
        self.first_resent_ns.get_or_insert(now_ns);
        *self.resent_pkts.get_or_insert(0) += 1;
    }

    /// `count` segments below `until` that were retransmitted arrived twice.
    pub(super) fn duplicated(&mut self, count: u32, until: u64) {
        if self.from.is_some_and(|from| until > from)
            && let Some(left) = &mut self.resent_pkts
        {
            *left = left.saturating_sub(count);
        }
    }

    pub(super) fn is_possible(&self) -> bool {
        self.from.is_some()
    }

    /// Every retransmission was needless.
    fn all_needless(&self) -> bool {
        self.is_possible() && self.resent_pkts == Some(0)
    }

    /// What was acknowledged had been sent before the first retransmission (RFC 3522).
    fn is_late(&self, echo_ns: u64) -> bool {
        self.is_possible() && self.first_resent_ns.is_none_or(|first| echo_ns < first)
    }
}

impl Sender {
    /// Finds losses, enters and leaves recovery (`tcp_fastretrans_alert`).
    pub(super) fn judge(&mut self, arrivals: &mut Arrivals, prior_una: u64) {
        if self.state == State::Open {
            self.undo.first_resent_ns = None;
        } else if self.board.una() >= self.high && self.state == State::Recovery {
            self.recover(arrivals);
            self.end_reduction();
        }
        match self.state {
            State::Recovery => self.judge_in_recovery(arrivals, prior_una),
            State::Loss => self.judge_in_loss(arrivals),
            State::Open | State::Disorder => self.judge_calmly(arrivals),
        }
    }

    fn judge_calmly(&mut self, arrivals: &mut Arrivals) {
        self.undo_if_needless();
        self.find_losses(arrivals);
        if self.is_time_to_recover() {
            self.enter_recovery();
            self.burst.turn = Turn::Lost;
        } else {
            self.keep_open();
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
            self.enter_recovery();
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

    /// F-RTO with SACK (RFC 5682, 3.1): was the timeout needed?
    fn doubt_timeout(&mut self, arrivals: &Arrivals) -> Turn {
        if arrivals.advances() && self.may_take_back(arrivals) {
            self.end_loss_needless();
            return Turn::New;
        }
        let recovered = self.board.una() >= self.high;
        if self.doubts_timeout {
            if arrivals.original_arrived {
                self.end_loss_needless();
                return Turn::New;
            }
            if self.board.next() > self.high {
                self.doubts_timeout &= arrivals.sacked_pkts == 0 && !arrivals.is_duplicate();
            } else if arrivals.advances() && !recovered {
                self.high = self.board.next();
                return Turn::NewThenLost;
            }
        }
        if recovered {
            self.recover(arrivals);
            return Turn::New;
        }
        Turn::Lost
    }

    fn end_loss_needless(&mut self) {
        self.take_back(true);
        self.timeouts_in_row = 0;
        self.state = State::Open;
    }

    /// All that was on its way at the event has arrived (`tcp_try_undo_recovery`).
    fn recover(&mut self, arrivals: &Arrivals) {
        if self.may_take_back(arrivals) {
            self.take_back(false);
        } else {
            self.rack.recovered(true);
        }
        self.state = State::Open;
    }

    fn may_take_back(&self, arrivals: &Arrivals) -> bool {
        self.undo.all_needless() || self.undo.is_late(arrivals.echo_ns)
    }

    fn undo_if_needless(&mut self) -> bool {
        let needless = self.undo.all_needless();
        if needless {
            self.rack.recovered(false);
            self.take_back(false);
        }
        needless
    }

    /// The window is what it was before the event (`tcp_undo_cwnd_reduction`).
    fn take_back(&mut self, unmarks_lost: bool) {
        if unmarks_lost {
            self.board.find_all();
        }
        if self.undo.prior_ssthresh_pkts > 0 {
            let prior = self.reduction.prior_cwnd_pkts;
            self.window.cwnd_pkts = self.control.undo_cwnd(&mut self.window, prior);
            let ssthresh = self.window.ssthresh_pkts;
            self.window.ssthresh_pkts = ssthresh.max(self.undo.prior_ssthresh_pkts);
            self.figures.undone_events += 1;
        }
        self.undo.from = None;
        self.rack.look_again();
    }

    /// `tcp_try_to_open`.
    fn keep_open(&mut self) {
        self.forget_retransmission_time();
        let counts = self.board.counts();
        let is_open = counts.sacked + counts.lost == 0 && !self.board.has_resent();
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

    fn forget_retransmission_time(&mut self) {
        if !self.board.has_resent() {
            self.undo.first_resent_ns = None;
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
        if !self.is_rack() {
            self.board.lose_by_count(self.reordering.degree_pkts());
        } else if self.rack.take_news() {
            let reo_wnd_ns = self.reo_wnd_ns();
            if self
                .board
                .lose_by_time(&self.rack, reo_wnd_ns, arrivals.now_ns)
            {
                self.schedule_reordering(self.rack.last_lost_at_ns(reo_wnd_ns));
                arrivals.keeps_alarm = true;
            }
        }
        let after = self.board.counts();
        arrivals.resent_lost |= after.resent < before.resent;
        arrivals.found_lost |= arrivals.resent_lost || after.lost > before.lost;
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
                self.enter_recovery();
                self.reduce_by(1, false);
            }
            self.burst.turn = Turn::Lost;
        }
        self.restart_timeout(now_ns);
    }

    fn enter_recovery(&mut self) {
        self.forget_retransmission_time();
        self.begin_undo();
        if self.state != State::Recovery {
            self.undo.prior_ssthresh_pkts = self.current_ssthresh();
            self.begin_reduction();
        }
        self.state = State::Recovery;
    }

    fn begin_undo(&mut self) {
        let probes = u32::from(self.tail_probe.is_some_and(|(_, is_resent)| is_resent));
        self.undo
            .begin(self.board.una(), self.board.counts().resent + probes);
        self.undo.prior_ssthresh_pkts = 0;
    }

    fn begin_reduction(&mut self) {
        self.high = self.board.next();
        self.tail_probe = None;
        self.reduction.begin(self.window.cwnd_pkts);
        self.window.ssthresh_pkts = self.control.ssthresh(&mut self.window);
        self.figures.congestion_events += 1;
    }

    /// Recovery is over (`tcp_end_cwnd_reduction`).
    fn end_reduction(&mut self) {
        if self.undo.is_possible() {
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
    }

    /// `tcp_current_ssthresh`: a threshold worth going back to.
    fn current_ssthresh(&self) -> u32 {
        match self.state {
            State::Recovery => self.window.ssthresh_pkts,
            _ => {
                let cwnd = self.window.cwnd_pkts;
                self.window.ssthresh_pkts.max(cwnd / 2 + cwnd / 4)
            }
        }
    }

    /// The retransmission timer ran out (RFC 6298, 5.4 to 5.6; `tcp_enter_loss`).
    pub(super) fn time_out(&mut self, now_ns: u64) {
        if self.board.is_empty() {
            return;
        }
        let is_first = self.state < State::Recovery;
        self.lose_after_timeout(now_ns);
        if self.state <= State::Disorder
            || self.high <= self.board.una()
            || (self.state == State::Loss && self.timeouts_in_row == 0)
        {
            let prior = self.current_ssthresh();
            self.begin_reduction();
            self.begin_undo();
            self.undo.prior_ssthresh_pkts = prior;
        }
        self.window.cwnd_pkts = self.board.in_flight() + 1;
        self.distrust_reordering();
        self.state = State::Loss;
        self.high = self.board.next();
        self.tail_probe = None;
        self.doubts_timeout = is_first || self.timeouts_in_row > 0;
        self.timeouts_in_row += 1;
        self.figures.timeouts += 1;
        self.burst.turn = Turn::Lost;
        self.rtt.back_off();
        self.alarm.clear();
        self.restart_timeout(now_ns);
    }

    fn lose_after_timeout(&mut self, now_ns: u64) {
        let (is_rack, rack) = (self.detection == Detection::Rack, &self.rack);
        self.board
            .lose_all(|sent_ns| !is_rack || rack.lost_at_ns(sent_ns, 0) <= now_ns);
    }

    /// A timeout after many SACKs: so much was not reordered.
    fn distrust_reordering(&mut self) {
        let initial = self.reordering.initial_pkts;
        if self.state <= State::Disorder && self.board.counts().sacked >= initial {
            self.reordering.degree_pkts = self.reordering.degree_pkts.min(initial);
        }
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
            self.window.cwnd_pkts = self.window.ssthresh_pkts;
            self.keep_open();
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The retransmission timeout (RFC 6298, 5; Linux's `tcp_enter_loss`), and whether it was needed
//! (F-RTO, RFC 5682; `tcp_process_loss`).

use super::Sender;
use super::State;
use super::transmit::Turn;
use crate::Detection;
use crate::arrivals::Arrivals;

impl Sender {
    /// The retransmission timer ran out (RFC 6298, 5.4 to 5.6; `tcp_enter_loss`).
    pub(super) fn time_out(&mut self, now_ns: u64) {
        if self.board.is_empty() {
            return;
        }
        let is_first = self.state < State::Recovery;
        self.board.forget_unnamed();
        self.lose_after_timeout(now_ns);
        if self.state <= State::Disorder
            || self.high <= self.board.una()
            || (self.state == State::Loss && self.timeouts_in_row == 0)
        {
            let prior = self.current_ssthresh();
            self.begin_undo(); // while the tail loss probe is known
            self.begin_reduction();
            self.undo.prior_ssthresh_pkts = prior;
        }
        self.window.cwnd_pkts = self.board.in_flight() + 1;
        self.time_out_rudely(now_ns);
        self.distrust_reordering();
        self.state = State::Loss;
        self.high = self.board.next();
        self.recover = Some(self.high);
        self.growth.timed_out();
        self.tail_probe = None;
        self.owe_cwr();
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
        if self.state <= State::Disorder {
            self.reordering.distrust(self.board.counts().sacked);
        }
    }

    /// F-RTO with SACK (RFC 5682, 3.1): was the timeout needed?
    pub(super) fn doubt_timeout(&mut self, arrivals: &Arrivals) -> Turn {
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
}

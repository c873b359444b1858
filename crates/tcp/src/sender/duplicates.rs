// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finding losses without SACK: Reno (RFC 5681, 3.2) and NewReno (RFC 6582), in the way of Linux's `tcp_is_reno`.
//!
//! RFC 5681 raises the window by one for each duplicate acknowledgement and takes that back at the end. Here the
//! segment that arrived leaves the flight instead, which sends the same; limited transmit (RFC 3042) is the same again.
//! The timeout starts anew at every partial acknowledgement ("slow-but-steady", RFC 6582, 4).

use super::{Sender, State};
use crate::arrivals::Arrivals;
use crate::{Ack, Detection};

impl Sender {
    /// What an acknowledgement tells that names nothing.
    pub(super) fn learn_unnamed(&mut self, ack: &Ack, arrivals: &mut Arrivals) {
        if self.detection.uses_sack() {
            return;
        }
        if arrivals.advances() {
            self.name_arrivals(arrivals);
        } else if self.is_counted_duplicate(ack, arrivals) && self.board.tell_unnamed() {
            arrivals.delivered_pkts += 1;
            self.figures.delivered_pkts += 1;
        }
    }

    /// RFC 5681, 2: the greatest acknowledgement once more, and the same window. While what a timeout lost is sent again
    /// they tell of what was sent needlessly.
    fn is_counted_duplicate(&self, ack: &Ack, arrivals: &Arrivals) -> bool {
        let may_be_new = self.state != State::Loss || self.board.next() > self.high;
        ack.next == self.board.una() && arrivals.is_duplicate() && may_be_new
    }

    fn name_arrivals(&mut self, arrivals: &mut Arrivals) {
        // What arrived before a retransmission filled the hole proves no timeout needless.
        arrivals.original_arrived &= !arrivals.resent_acked;
        let told = self.board.name_unnamed(arrivals.acked_pkts);
        arrivals.delivered_pkts -= told;
        self.figures.delivered_pkts -= u64::from(told);
        if self.state != State::Recovery {
            self.board.forget_unnamed();
        }
    }

    /// Recovery is over: all of the event has arrived, or, in Reno, anything new.
    pub(super) fn ends_recovery(&self, arrivals: &Arrivals) -> bool {
        let is_over = self.board.una() >= self.high;
        is_over || (self.detection == Detection::Reno && arrivals.advances())
    }

    /// Fast retransmission at `dupthresh` duplicates; in recovery a partial acknowledgement shows the next hole
    /// (RFC 6582, 3.2).
    pub(super) fn lose_by_duplicates(&mut self, arrivals: &Arrivals) {
        let is_due = match self.state {
            State::Recovery => arrivals.advances(),
            State::Loss => false,
            State::Open | State::Disorder | State::Cwr => self.has_enough_duplicates(),
        };
        if is_due {
            self.board.lose_oldest();
        }
    }

    fn has_enough_duplicates(&self) -> bool {
        let is_guarded = self.detection == Detection::NewReno
            && self
                .recover
                .is_some_and(|recover| self.board.una() <= recover);
        !is_guarded && self.board.arrived_beyond() >= self.reordering.degree_pkts()
    }

    /// The oldest hole leaves in any case, also at a partial acknowledgement.
    pub(super) fn admit_oldest_hole(&mut self) {
        let is_due =
            !self.detection.uses_sack() && self.board.next_lost() == Some(self.board.una());
        if is_due {
            let least_pkts = self.board.in_flight() + 1;
            self.window.cwnd_pkts = self.window.cwnd_pkts.max(least_pkts);
        }
    }
}

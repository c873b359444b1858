// SPDX-License-Identifier: MIT OR Apache-2.0
//! Explicit congestion notification at the sender (RFC 3168, 6.1.2), as Linux does it: an echo is a congestion
//! event once a round trip, in state CWR.

use fatpath_link::Ecn;

use super::{Sender, State};
use crate::arrivals::Arrivals;

/// What the two ends agreed on, and what the receiver waits for.
#[derive(Debug)]
pub(super) struct EcnState {
    is_on: bool,
    /// The next new segment tells that the window was reduced (CWR).
    owes_cwr: bool,
}

impl EcnState {
    pub(super) fn new(is_on: bool) -> EcnState {
        EcnState {
            is_on,
            owes_cwr: false,
        }
    }

    /// An echo counts where ECN was agreed on.
    pub(super) fn believes(&self, ece: bool) -> bool {
        self.is_on && ece
    }
}

impl Sender {
    /// The field of a segment that leaves: retransmissions and probes are not ECN-capable (6.1.5, 6.1.6), and a
    /// queue is to drop what a flow without congestion control sends.
    pub(super) fn ecn_of(&self, is_new: bool) -> Ecn {
        match self.ecn.is_on && is_new && !self.is_rude() {
            true => Ecn::Capable,
            false => Ecn::NotCapable,
        }
    }

    /// Whether this new segment carries CWR.
    pub(super) fn take_cwr(&mut self) -> bool {
        self.ecn.is_on && std::mem::take(&mut self.ecn.owes_cwr)
    }

    /// The window was reduced (`tcp_ecn_queue_cwr`).
    pub(super) fn owe_cwr(&mut self) {
        self.ecn.owes_cwr = self.ecn.is_on;
    }

    /// It was not, after all (`tcp_ecn_withdraw_cwr`).
    pub(super) fn withdraw_cwr(&mut self) {
        self.ecn.owes_cwr = false;
    }

    /// The segments that an echo tells of (`delivered_ce`).
    pub(super) fn count_marks(&mut self, arrivals: &Arrivals) {
        if arrivals.echoes_mark {
            self.figures.marked_pkts += u64::from(arrivals.delivered_pkts);
        }
    }

    /// `tcp_try_to_open`: an echo is a congestion event, unless one of this round trip was heeded.
    pub(super) fn heed_echo(&mut self, arrivals: &Arrivals) {
        if arrivals.echoes_mark && self.state < State::Cwr {
            self.undo.from = None;
            self.begin_reduction();
            self.state = State::Cwr;
            self.note_rude_congestion(arrivals.now_ns);
        }
        if self.state != State::Cwr {
            self.keep_open();
        }
    }

    /// CWR ends once something beyond what was sent by then has arrived, so that the bit has, too.
    pub(super) fn end_cwr(&mut self) {
        if self.state == State::Cwr && self.board.una() > self.high {
            self.end_reduction();
            self.state = State::Open;
        }
    }
}

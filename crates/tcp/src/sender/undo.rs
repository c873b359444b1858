// SPDX-License-Identifier: MIT OR Apache-2.0
//! Taking a reduction of the window back when nothing was lost: DSACKs tell that every retransmission
//! was needless (RFC 3708), or timestamps that what arrived was no retransmission (RFC 3522).

use super::Sender;
use super::State;
use crate::arrivals::Arrivals;

/// What is remembered to take a reduction back.
#[derive(Debug, Default)]
pub(super) struct Undo {
    /// The oldest segment when the window was reduced; `None`: it cannot be taken back.
    pub(super) from: Option<u64>,
    /// Retransmissions of which no DSACK has told that they were needless; `None`: none yet.
    pub(super) resent_pkts: Option<u32>,
    /// When the first retransmission left.
    pub(super) first_resent_ns: Option<u64>,
    /// 0: there is none to go back to.
    pub(super) prior_ssthresh_pkts: u32,
}

impl Undo {
    pub(super) fn begin(&mut self, una: u64, resent_pkts: u32) {
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
    pub(super) fn all_needless(&self) -> bool {
        self.is_possible() && self.resent_pkts == Some(0)
    }

    /// What was acknowledged had been sent before the first retransmission (RFC 3522).
    pub(super) fn is_late(&self, echo_ns: u64) -> bool {
        self.is_possible() && self.first_resent_ns.is_none_or(|first| echo_ns < first)
    }
}

impl Sender {
    pub(super) fn may_take_back(&self, arrivals: &Arrivals) -> bool {
        self.undo.all_needless() || self.undo.is_late(arrivals.echo_ns)
    }

    pub(super) fn undo_if_needless(&mut self) -> bool {
        let needless = self.undo.all_needless();
        if needless {
            self.rack.recovered(false);
            self.take_back(false);
        }
        needless
    }

    /// The window is what it was before the event (`tcp_undo_cwnd_reduction`).
    pub(super) fn take_back(&mut self, unmarks_lost: bool) {
        if unmarks_lost {
            self.board.find_all();
        }
        if self.undo.prior_ssthresh_pkts > 0 {
            let prior = self.reduction.prior_cwnd_pkts;
            self.window.cwnd_pkts = self.undone_cwnd_pkts(prior);
            let ssthresh = self.window.ssthresh_pkts;
            self.window.ssthresh_pkts = ssthresh.max(self.undo.prior_ssthresh_pkts);
            self.withdraw_cwr();
            self.figures.undone_events += 1;
        }
        self.undo.from = None;
        self.rack.look_again();
    }

    pub(super) fn begin_undo(&mut self) {
        let probes = u32::from(self.tail_probe.is_some_and(|(_, is_resent)| is_resent));
        self.undo
            .begin(self.board.una(), self.board.counts().resent + probes);
        self.undo.prior_ssthresh_pkts = 0;
    }

    /// `tcp_current_ssthresh`: a threshold worth going back to.
    pub(super) fn current_ssthresh(&self) -> u32 {
        match self.state {
            State::Cwr | State::Recovery => self.window.ssthresh_pkts,
            _ => {
                let cwnd = self.window.cwnd_pkts;
                self.window.ssthresh_pkts.max(cwnd / 2 + cwnd / 4)
            }
        }
    }

    pub(super) fn forget_retransmission_time(&mut self) {
        if !self.board.has_resent() {
            self.undo.first_resent_ns = None;
        }
    }
}

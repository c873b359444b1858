// SPDX-License-Identifier: MIT OR Apache-2.0
//! How the window comes down in recovery: proportional rate reduction (RFC 6937, with RFC 9937's slow-start bound as
//! Linux has it), rampdown, or at once.

use super::scoreboard::Scoreboard;
use super::spec::WindowReduction;

/// What left the network since recovery began, and what was sent.
#[derive(Debug)]
pub(super) struct Reduction {
    by: WindowReduction,
    /// The window before (`RecoverFS`).
    pub(super) prior_cwnd_pkts: u32,
    /// `prr_delivered`.
    delivered_pkts: u64,
    /// `prr_out`.
    out_pkts: u64,
}

impl Reduction {
    pub(super) fn new(by: WindowReduction) -> Reduction {
        Reduction {
            by,
            prior_cwnd_pkts: 0,
            delivered_pkts: 0,
            out_pkts: 0,
        }
    }

    pub(super) fn begin(&mut self, cwnd_pkts: u32) {
        *self = Reduction {
            by: self.by,
            prior_cwnd_pkts: cwnd_pkts,
            delivered_pkts: 0,
            out_pkts: 0,
        };
    }

    /// A segment leaves in recovery.
    pub(super) fn sent(&mut self) {
        self.out_pkts += 1;
    }

    /// The window after `delivered_pkts` more have arrived. `is_clean`: the oldest hole was filled and
    /// nothing more was lost.
    pub(super) fn cwnd_pkts(
        &mut self,
        ssthresh_pkts: u32,
        board: &Scoreboard,
        delivered_pkts: u32,
        is_clean: bool,
    ) -> u32 {
        let in_flight = board.in_flight();
        self.delivered_pkts += u64::from(delivered_pkts);
        let target_pkts = match self.by {
            WindowReduction::Prr => in_flight.saturating_add(self.prr_pkts(
                ssthresh_pkts,
                in_flight,
                delivered_pkts,
                is_clean,
            )),
            WindowReduction::AtOnce => ssthresh_pkts,
            WindowReduction::Rampdown => self.ramp(ssthresh_pkts),
        };
        match self.out_pkts {
            0 => target_pkts.max(in_flight + 1), // the fast retransmission leaves in any case
            _ => target_pkts,
        }
    }

    /// What may leave now (RFC 6937, 3).
    fn prr_pkts(
        &self,
        ssthresh_pkts: u32,
        in_flight: u32,
        delivered_pkts: u32,
        is_clean: bool,
    ) -> u32 {
        let send = match ssthresh_pkts.checked_sub(in_flight) {
            None => self.proportional(ssthresh_pkts),
            Some(room) => {
                let reserve = self.delivered_pkts.saturating_sub(self.out_pkts);
                let wanted = reserve.max(u64::from(delivered_pkts)) + u64::from(is_clean);
                wanted.min(u64::from(room))
            }
        };
        send as u32
    }

    fn proportional(&self, ssthresh_pkts: u32) -> u64 {
        let delivered = u64::from(ssthresh_pkts) * self.delivered_pkts;
        let share = delivered.div_ceil(u64::from(self.prior_cwnd_pkts.max(1)));
        share.saturating_sub(self.out_pkts)
    }

    /// From the window before to the threshold while a window arrives.
    fn ramp(&self, ssthresh_pkts: u32) -> u32 {
        let prior = u64::from(self.prior_cwnd_pkts.max(1));
        let fall = prior.saturating_sub(ssthresh_pkts.into());
        let fallen = (fall * self.delivered_pkts.min(prior)).div_ceil(prior);
        ssthresh_pkts.max((prior - fallen) as u32)
    }
}

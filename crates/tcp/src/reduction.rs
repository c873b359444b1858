// SPDX-License-Identifier: MIT OR Apache-2.0
//! Proportional rate reduction (RFC 6937, with RFC 9937's slow-start bound as Linux has it).

use super::scoreboard::Scoreboard;

/// What left the network since recovery began, and what was sent.
#[derive(Debug, Default)]
pub(super) struct Reduction {
    /// The window before (`RecoverFS`).
    pub(super) prior_cwnd_pkts: u32,
    /// `prr_delivered`.
    delivered_pkts: u64,
    /// `prr_out`.
    out_pkts: u64,
}

impl Reduction {
    pub(super) fn begin(&mut self, cwnd_pkts: u32) {
        *self = Reduction {
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
        let least = u64::from(self.out_pkts == 0); // the fast retransmission leaves in any case
        let send = match ssthresh_pkts.checked_sub(in_flight) {
            None => self.proportional(ssthresh_pkts),
            Some(room) => {
                let reserve = self.delivered_pkts.saturating_sub(self.out_pkts);
                let wanted = reserve.max(u64::from(delivered_pkts)) + u64::from(is_clean);
                wanted.min(u64::from(room))
            }
        };
        in_flight.saturating_add(send.max(least) as u32)
    }

    fn proportional(&self, ssthresh_pkts: u32) -> u64 {
        let delivered = u64::from(ssthresh_pkts) * self.delivered_pkts;
        let share = delivered.div_ceil(u64::from(self.prior_cwnd_pkts.max(1)));
        share.saturating_sub(self.out_pkts)
    }
}

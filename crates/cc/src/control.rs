// SPDX-License-Identifier: MIT OR Apache-2.0
//! One flow's congestion control: a law with its parameters, the start-up that every law shares, and
//! the memory of both.

use crate::{Law, Start, Window};

/// One flow's congestion control. The host stack owns the [`Window`], decides what was lost and when
/// recovery ends, and asks here how the window grows and what is left of it.
#[derive(Clone, Debug)]
pub struct Control {
    law: Law,
    start: Start,
}

impl Control {
    /// For a flow that has not sent yet.
    pub fn new(law: Law, start: Start) -> Control {
        Control { law, start }
    }

    /// The connection is established: the window gets its initial threshold.
    pub fn begin(&mut self, window: &mut Window) {
        if self.start.initial_ssthresh_pkts > 0 {
            window.ssthresh_pkts = self.start.initial_ssthresh_pkts;
        }
    }

    /// `acked_pkts` segments left the network while the window was in full use.
    pub fn acked(&mut self, window: &mut Window, acked_pkts: u32) {
        self.law.acked(window, acked_pkts);
    }

    /// A congestion event: the slow-start threshold after it, segments. The window itself is the host
    /// stack's to reduce.
    pub fn ssthresh(&mut self, window: &mut Window) -> u32 {
        self.law.ssthresh(window)
    }

    /// The loss was spurious: the window to go back to; `prior_cwnd_pkts` is the one before the event.
    pub fn undo_cwnd(&self, window: &Window, prior_cwnd_pkts: u32) -> u32 {
        window.cwnd_pkts.max(prior_cwnd_pkts)
    }
}

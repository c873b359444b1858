// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether the window is in full use (RFC 7661; `tcp_cwnd_validate` of Linux): one that is not
//! does not grow.

use fatpath_cc::Window;

use super::scoreboard::Scoreboard;

/// The use that was made of the window in this round trip.
#[derive(Debug, Default)]
pub(super) struct Usage {
    is_limiting: bool,
    most_out_pkts: u32,
    until: u64,
}

impl Usage {
    /// A burst has left, and the window held back more, or not.
    pub(super) fn note(&mut self, is_limiting: bool, board: &Scoreboard) {
        let is_over = board.una() >= self.until;
        let is_more = !self.is_limiting && board.packets_out() > self.most_out_pkts;
        if is_over || is_limiting || is_more {
            self.is_limiting = is_limiting;
            self.most_out_pkts = board.packets_out();
            self.until = board.next();
        }
    }

    /// The window held the flow back in this round trip (`tcp_sock.is_cwnd_limited`).
    pub(super) fn is_limiting(&self) -> bool {
        self.is_limiting
    }

    /// The part of the window that is in use: all of it if it may grow.
    pub(super) fn used_pkts(&self, window: &Window) -> u32 {
        match self.is_full(window) {
            true => window.cwnd_pkts,
            false => self.most_out_pkts.min(window.cwnd_pkts),
        }
    }

    /// Whether the window may grow: it held the flow back, or in slow start half of it was in use.
    pub(super) fn is_full(&self, window: &Window) -> bool {
        let is_slow_start = window.cwnd_pkts < window.ssthresh_pkts;
        self.is_limiting
            || (is_slow_start && u64::from(window.cwnd_pkts) < 2 * u64::from(self.most_out_pkts))
    }
}

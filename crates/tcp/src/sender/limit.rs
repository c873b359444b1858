// SPDX-License-Identifier: MIT OR Apache-2.0
//! What keeps a sender from sending more (`tcpEStatsPerfSndLim*` of RFC 4898).

use super::Sender;

/// What keeps a sender from sending more, at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendLimit {
    /// All that was written has been sent (`SndLimTimeSnd`).
    Program,
    /// The congestion window, or the pace that congestion control sets (`SndLimTimeCwnd`).
    Congestion,
    /// The window that the peer offers (`SndLimTimeRwin`).
    PeerWindow,
    /// The rate that was given: [`TcpSpec::pacing_rate_bps`](crate::TcpSpec::pacing_rate_bps), or that of a flow without
    /// congestion control.
    Rate,
}

/// A law that paces by what arrives sends no more than arrives, so that it stays a little below a window that holds it back,
/// where the window is smaller than the law's own: within an eighth.
const NEAR_WINDOW: u64 = 8;

impl Sender {
    /// What keeps more from leaving, once [`Sender::poll_transmit`] gave nothing more.
    pub fn limit(&self) -> SendLimit {
        let is_paced = self.burst.paced_until_ns.is_some();
        if !self.has_unsent() && !is_paced {
            return SendLimit::Program;
        }
        if is_paced && (self.is_rude() || self.pacer.is_at_ceiling(&self.pace_now())) {
            return SendLimit::Rate;
        }
        match self.has_unsent() && self.is_near_peer_window() {
            true => SendLimit::PeerWindow,
            false => SendLimit::Congestion,
        }
    }

    fn is_near_peer_window(&self) -> bool {
        if self.fitting_payload() == 0 {
            return self.window.cwnd_pkts > self.board.in_flight();
        }
        let window_bytes = self.peer_window_end - self.figures.acked_bytes;
        let cwnd_bytes = u64::from(self.window.cwnd_pkts) * u64::from(self.mss_bytes);
        cwnd_bytes >= window_bytes && self.peer_room() < window_bytes / NEAR_WINDOW
    }
}

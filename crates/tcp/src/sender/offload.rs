// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernel gives its device at once, to be cut into segments there, and what it holds back until that is worth it
//! (`tcp_write_xmit`, `tcp_tso_autosize` and `tcp_tso_should_defer` of net/ipv4/tcp_output.c, Linux 6.18).
//!
//! So new segments leave in bursts, where each acknowledgement alone would let one or two of them go.

use super::{Sender, State};
use crate::TcpSpec;

/// `sk_gso_max_size`: GSO_LEGACY_MAX_SIZE less MAX_TCP_HEADER and one.
const MOST_BYTES: u64 = 65_536 - 321;
/// `sysctl_tcp_min_tso_segs`.
const LEAST_PKTS: u32 = 2;
/// `sk_pacing_shift`: what leaves within a millisecond.
const PACING_SHIFT: u32 = 10;
/// `sysctl_tcp_tso_rtt_log`: short paths get more at once.
const RTT_SHIFT: u32 = 9;
/// `sysctl_tcp_tso_win_divisor`: such a part of a window does not wait.
const WINDOW_DIVISOR: u64 = 3;
/// Neither for an acknowledgement that is further away, nor after a pause that was longer.
const MOST_WAIT_NS: u64 = 1_000_000;

/// What is given to the device together.
#[derive(Debug)]
pub(super) struct Offload {
    is_on: bool,
    /// Segments that leave now: nothing holds them back any more.
    leaving_pkts: u32,
    /// Segments of the piece of the send buffer that is next, which the program's writes have filled.
    piece_pkts: u32,
    /// The congestion window held something back.
    is_held_by_window: bool,
}

/// What may leave, segments.
#[derive(Clone, Copy)]
struct Room {
    unsent_pkts: u32,
    cwnd_pkts: u32,
    peer_pkts: u32,
    /// At once.
    most_pkts: u32,
}

impl Offload {
    pub(super) fn new(spec: &TcpSpec) -> Offload {
        Offload {
            is_on: spec.offload,
            leaving_pkts: 0,
            piece_pkts: 0,
            is_held_by_window: false,
        }
    }

    /// The rest of what was given to the device leaves with no regard to the pace, which holds between one such burst and the
    /// next.
    pub(super) fn is_leaving(&self) -> bool {
        self.leaving_pkts > 0
    }

    /// A new segment leaves.
    pub(super) fn sent(&mut self) {
        self.leaving_pkts = self.leaving_pkts.saturating_sub(1);
        self.piece_pkts = self.piece_pkts.saturating_sub(1);
    }

    /// All has left that may; says whether the congestion window held something back.
    pub(super) fn end_burst(&mut self) -> bool {
        self.leaving_pkts = 0;
        std::mem::take(&mut self.is_held_by_window)
    }

    /// The next piece; one that is shorter than what may leave takes from those behind it (`tcp_grow_skb`).
    fn take_piece(&mut self, whole_pkts: u32, quota_pkts: u32, unsent_pkts: u32) {
        let pkts = match self.piece_pkts {
            0 => whole_pkts,
            pkts => pkts.max(quota_pkts),
        };
        self.piece_pkts = pkts.min(unsent_pkts).max(1);
    }
}

impl Sender {
    /// Whether the next new segment leaves now; else more are to leave with it.
    pub(super) fn gives_device(&mut self, now_ns: u64) -> bool {
        if !self.offload.is_on || self.offload.is_leaving() {
            return true;
        }
        let room = self.room();
        // Two bursts are on their way at least (`tcp_cwnd_test`).
        let half_pkts = (self.window.cwnd_pkts / 2).max(1);
        let quota_pkts = half_pkts.min(room.cwnd_pkts).min(room.most_pkts);
        let whole_pkts = (MOST_BYTES / u64::from(self.mss_bytes)).max(1) as u32;
        self.offload
            .take_piece(whole_pkts, quota_pkts, room.unsent_pkts);
        if self.offload.piece_pkts > 1 && self.waits_for_more(now_ns, room) {
            return false;
        }
        let leaving = quota_pkts.min(self.offload.piece_pkts);
        self.offload.leaving_pkts = leaving.min(room.peer_pkts).max(1);
        true
    }

    fn room(&self) -> Room {
        let mss_bytes = u64::from(self.mss_bytes);
        Room {
            unsent_pkts: self.buffer.unsent_pkts(),
            cwnd_pkts: self.window.cwnd_pkts.saturating_sub(self.board.in_flight()),
            peer_pkts: u32::try_from(self.peer_room() / mss_bytes).unwrap_or(u32::MAX),
            most_pkts: self.most_at_once_pkts(),
        }
    }

    /// `tcp_tso_autosize`: what leaves within a millisecond at the pace that the window makes, paced or not; on short paths more.
    fn most_at_once_pkts(&self) -> u32 {
        let of_pace = self.pacer.kernel_rate(&self.pace_now()) >> PACING_SHIFT;
        let shift = (self.rtt.min_rtt_ns() / 1000) >> RTT_SHIFT;
        let of_path = match shift {
            0..32 => MOST_BYTES >> shift,
            _ => 0,
        };
        let bytes = of_pace.saturating_add(of_path).min(MOST_BYTES);
        ((bytes / u64::from(self.mss_bytes)) as u32).max(LEAST_PKTS)
    }

    /// `tcp_tso_should_defer`, of a piece of several segments.
    fn waits_for_more(&mut self, now_ns: u64, room: Room) -> bool {
        let may_leave_pkts = room.cwnd_pkts.min(room.peer_pkts);
        let is_last = self.offload.piece_pkts >= room.unsent_pkts;
        let is_enough = may_leave_pkts >= room.most_pkts
            || (!is_last && may_leave_pkts >= self.offload.piece_pkts)
            || may_leave_pkts >= self.large_part_pkts();
        let has_paused = now_ns - self.last_sent_ns > MOST_WAIT_NS;
        if self.state >= State::Recovery || has_paused || is_enough || !self.is_ack_near(now_ns) {
            return false;
        }
        let is_by_window = room.cwnd_pkts < room.peer_pkts;
        self.offload.is_held_by_window |= is_by_window && room.cwnd_pkts <= self.offload.piece_pkts;
        true
    }

    /// A third of the smaller window, rounded up.
    fn large_part_pkts(&self) -> u32 {
        let peer_bytes = self.peer_window_end - self.figures.acked_bytes;
        let peer_pkts = peer_bytes / u64::from(self.mss_bytes);
        let pkts = peer_pkts.min(self.window.cwnd_pkts.into());
        pkts.div_ceil(WINDOW_DIVISOR) as u32
    }

    fn is_ack_near(&self, now_ns: u64) -> bool {
        let Some(sent_ns) = self.board.oldest_sent_ns() else {
            return false;
        };
        let srtt_ns = self.rtt.srtt_ns();
        let near_ns = (srtt_ns / 2).min(MOST_WAIT_NS);
        sent_ns + srtt_ns <= now_ns + near_ns
    }
}

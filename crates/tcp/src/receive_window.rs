// SPDX-License-Identifier: MIT OR Apache-2.0
//! The window that the receiver offers, and how its buffer grows with need (dynamic right-sizing, as
//! Linux 6.18 does it). Bytes of data everywhere.

use crate::{Buffer, TcpSpec};

/// What the SYN of the handshake can offer, bytes: 16 bits without scale.
const SYN_WINDOW_BYTES: u64 = 65_535;

/// Segments of the sender's first flight that the buffer is sized for at first (`TCP_INIT_CWND`).
const FIRST_FLIGHT_PKTS: u64 = 10;

/// The offered window.
#[derive(Debug)]
pub(super) struct ReceiveWindow {
    mss_bytes: u64,
    buffer_bytes: u64,
    most_bytes: u64,
    /// The window never grows past it; it follows what has arrived (`rcv_ssthresh`).
    ssthresh_bytes: u64,
    /// The right edge that was offered, which never moves back.
    end_bytes: u64,
    /// The sender's round-trip time as timestamps tell it, times 8.
    rtt_x8_ns: u64,
    newest_echo_ns: u64,
    /// Delivered when this measurement began, and when that was.
    measured_from: (u64, u64),
    /// The most that was delivered in a round trip.
    space_bytes: u64,
}

impl ReceiveWindow {
    pub(super) fn new(spec: &TcpSpec, rtt_ns: u64, now_ns: u64) -> ReceiveWindow {
        let (buffer_bytes, most_bytes) = match spec.receive_buffer {
            Buffer::Fixed(bytes) => (bytes, bytes),
            Buffer::Auto(least, most) => (least.min(most), most),
        };
        let mss_bytes = u64::from(spec.mss_bytes);
        ReceiveWindow {
            mss_bytes,
            buffer_bytes,
            most_bytes,
            ssthresh_bytes: buffer_bytes,
            end_bytes: buffer_bytes.min(SYN_WINDOW_BYTES),
            rtt_x8_ns: 8 * rtt_ns,
            newest_echo_ns: 0,
            measured_from: (0, now_ns),
            space_bytes: buffer_bytes.min(FIRST_FLIGHT_PKTS * mss_bytes),
        }
    }

    pub(super) fn buffer_bytes(&self) -> u64 {
        self.buffer_bytes
    }

    /// A segment came that echoes an acknowledgement sent at `echo_ns` (`tcp_rcv_rtt_measure_ts`).
    pub(super) fn measure_rtt(&mut self, now_ns: u64, echo_ns: u64) {
        if echo_ns <= self.newest_echo_ns {
            return;
        }
        self.newest_echo_ns = echo_ns;
        let sample_ns = now_ns - echo_ns;
        let smoothed = self.rtt_x8_ns - self.rtt_x8_ns / 8 + sample_ns;
        self.rtt_x8_ns = smoothed.min(8 * sample_ns);
    }

    /// `bytes` arrived in order; the program has read `delivered_bytes`, and `beyond_bytes` stretch from
    /// there to the last that arrived beyond a hole. Says whether the window grows with it.
    pub(super) fn delivered(
        &mut self,
        now_ns: u64,
        bytes: u64,
        delivered_bytes: u64,
        beyond_bytes: u64,
    ) -> bool {
        let room = self.buffer_bytes.saturating_sub(self.ssthresh_bytes);
        self.ssthresh_bytes += room.min(2 * bytes); // tcp_grow_window
        self.measure(now_ns, delivered_bytes, beyond_bytes);
        room > 0
    }

    /// `tcp_rcv_space_adjust`.
    fn measure(&mut self, now_ns: u64, delivered_bytes: u64, beyond_bytes: u64) {
        let (from_bytes, from_ns) = self.measured_from;
        if now_ns - from_ns < self.rtt_x8_ns / 8 {
            return;
        }
        self.measured_from = (delivered_bytes, now_ns);
        let copied = delivered_bytes - from_bytes;
        if copied > self.space_bytes {
            self.grow(copied, beyond_bytes);
        }
    }

    /// Twice what was read in a round trip, and as much more as it grew by since the last one
    /// (`tcp_rcvbuf_grow`): the measurement is a round trip late.
    fn grow(&mut self, copied: u64, beyond_bytes: u64) {
        let twice = 2 * copied;
        let growth = u128::from(twice) * u128::from(copied - self.space_bytes)
            / u128::from(self.space_bytes.max(1));
        self.space_bytes = copied;
        let wanted = twice.saturating_add(2 * growth as u64) + beyond_bytes;
        self.buffer_bytes = self.buffer_bytes.max(wanted.min(self.most_bytes));
    }

    /// More arrived beyond a hole: the buffer makes room for it.
    pub(super) fn held_beyond(&mut self, beyond_bytes: u64) {
        let wanted = 2 * self.space_bytes + beyond_bytes;
        self.buffer_bytes = self.buffer_bytes.max(wanted.min(self.most_bytes));
    }

    /// The room beyond `delivered_bytes` to offer now; `held_bytes` lie in the buffer.
    pub(super) fn offer(&mut self, delivered_bytes: u64, held_bytes: u64) -> u64 {
        self.end_bytes = self.end_bytes.max(delivered_bytes + self.room(held_bytes));
        self.end_bytes - delivered_bytes
    }

    /// What could be offered (`__tcp_select_window`).
    fn room(&self, held_bytes: u64) -> u64 {
        let free = self.buffer_bytes.saturating_sub(held_bytes);
        let is_scarce = free < self.buffer_bytes / 2
            && (free < self.buffer_bytes / 16 || free < self.mss_bytes.min(self.buffer_bytes));
        if is_scarce {
            0
        } else {
            free.min(self.ssthresh_bytes)
        }
    }

    /// The program has read so much that the sender is to hear of it: twice the room that it knows of
    /// (`tcp_cleanup_rbuf`).
    pub(super) fn has_opened(&self, delivered_bytes: u64, held_bytes: u64) -> bool {
        let room = self.room(held_bytes);
        room > 0 && room >= 2 * self.offered(delivered_bytes)
    }

    /// The room beyond `delivered_bytes` that was offered last; none where the peer sent beyond it.
    pub(super) fn offered(&self, delivered_bytes: u64) -> u64 {
        self.end_bytes.saturating_sub(delivered_bytes)
    }
}

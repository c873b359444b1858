// SPDX-License-Identifier: MIT OR Apache-2.0
//! The send buffer: how much the program may have written that is not yet acknowledged.

use crate::{Buffer, TcpSpec};

/// Room that Linux reckons beside a segment's data: `MAX_TCP_HEADER` and `skb_shared_info`, measured on
/// 6.18 as `tb46080` of a new socket (640 where the kernel has wireless devices); `sk_buff`. Bytes.
const HEADROOM_BYTES: u64 = 576;
const SK_BUFF_BYTES: u64 = 256;

/// The unsent part of what the program has written, in the buffer and before it.
#[derive(Debug)]
pub(super) struct SendBuffer {
    /// Not yet in the buffer, for the program waits.
    waiting_bytes: u64,
    /// In the buffer and not yet sent.
    unsent_bytes: u64,
    limit_bytes: u64,
    most_bytes: u64,
    mss_bytes: u64,
}

impl SendBuffer {
    pub(super) fn new(spec: &TcpSpec) -> SendBuffer {
        let (limit_bytes, most_bytes) = match spec.send_buffer {
            Buffer::Fixed(bytes) => (bytes, bytes),
            Buffer::Auto(least, most) => (least.min(most), most),
        };
        let mss_bytes = u64::from(spec.mss_bytes);
        SendBuffer {
            waiting_bytes: 0,
            unsent_bytes: 0,
            limit_bytes: limit_bytes.max(mss_bytes),
            most_bytes: most_bytes.max(mss_bytes),
            mss_bytes,
        }
    }

    /// The program writes; `sent_bytes` are sent and not yet acknowledged.
    pub(super) fn write(&mut self, bytes: u64, sent_bytes: u64) {
        let was_waiting = self.waiting_bytes > 0;
        self.waiting_bytes = self.waiting_bytes.saturating_add(bytes);
        if !was_waiting {
            self.fill(sent_bytes);
        }
    }

    /// Data were acknowledged: a program that waits writes on when a third of the buffer is free
    /// (`sk_stream_write_space`).
    pub(super) fn acknowledged(&mut self, sent_bytes: u64) {
        if self.waiting_bytes > 0 && 3 * (sent_bytes + self.unsent_bytes) <= 2 * self.limit_bytes {
            self.fill(sent_bytes);
        }
    }

    /// The program writes until the limit is reached, and ends with a whole segment.
    fn fill(&mut self, sent_bytes: u64) {
        let filled = self.limit_bytes.saturating_sub(sent_bytes);
        if filled <= self.unsent_bytes {
            return;
        }
        let room = filled.next_multiple_of(self.mss_bytes) - self.unsent_bytes;
        let taken = room.min(self.waiting_bytes);
        self.waiting_bytes -= taken;
        self.unsent_bytes += taken;
    }

    /// Autotuning: room for twice a window of segments (`tcp_sndbuf_expand`).
    pub(super) fn grow(&mut self, window_pkts: u32) {
        if self.limit_bytes < self.most_bytes {
            let segment = (self.mss_bytes + HEADROOM_BYTES).next_power_of_two() + SK_BUFF_BYTES;
            let wanted = 2 * u64::from(window_pkts) * segment;
            self.limit_bytes = self.limit_bytes.max(wanted.min(self.most_bytes));
        }
    }

    /// Segments are this long from now on.
    pub(super) fn resize_segments(&mut self, mss_bytes: u32) {
        self.mss_bytes = mss_bytes.into();
    }

    /// The data of the next segment; 0: none.
    pub(super) fn next_payload(&self) -> u32 {
        self.unsent_bytes.min(self.mss_bytes) as u32
    }

    /// The segments that what is in the buffer makes.
    pub(super) fn unsent_pkts(&self) -> u32 {
        u32::try_from(self.unsent_bytes.div_ceil(self.mss_bytes)).unwrap_or(u32::MAX)
    }

    /// A segment of them leaves.
    pub(super) fn take(&mut self, payload_bytes: u32) {
        self.unsent_bytes -= u64::from(payload_bytes);
    }

    /// Written and not yet sent.
    pub(super) fn bytes(&self) -> u64 {
        self.waiting_bytes.saturating_add(self.unsent_bytes)
    }
}

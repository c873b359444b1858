// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a cell must know of a packet: how many segments of what length, and how to split them off.

/// The segments of a packet as they lie on the wire: all of one length but the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wire {
    /// How many segments, at least 1.
    pub segments: u32,
    /// Length of every segment but the last: IP header, transport header and payload.
    pub segment_bytes: u32,
    /// Length of the last segment, headers included; at most `segment_bytes`.
    pub last_bytes: u32,
}

impl Wire {
    /// A packet of one segment of `len_bytes`.
    pub const fn single(len_bytes: u32) -> Self {
        Wire {
            segments: 1,
            segment_bytes: len_bytes,
            last_bytes: len_bytes,
        }
    }

    /// Length of the whole packet when each of its segments costs `overhead_bytes` more
    /// (framing, preamble, gap between frames).
    pub fn len_bytes(&self, overhead_bytes: u32) -> u64 {
        self.front_bytes(self.segments, overhead_bytes)
    }

    /// Length of the first `count` segments, each with `overhead_bytes` more.
    pub fn front_bytes(&self, count: u32, overhead_bytes: u32) -> u64 {
        let full = u64::from(count.min(self.segments - 1));
        let last = u64::from(count >= self.segments);
        full * u64::from(self.segment_bytes + overhead_bytes)
            + last * u64::from(self.last_bytes + overhead_bytes)
    }
}

/// A packet that cells can carry: one segment, or a super-packet of several.
pub trait Packet: Sized {
    /// The segments of this packet.
    fn wire(&self) -> Wire;

    /// Takes the first `count` segments off, `0 < count < segments`, and returns them as a packet;
    /// `self` keeps the rest.
    fn split_front(&mut self, count: u32) -> Self;
}

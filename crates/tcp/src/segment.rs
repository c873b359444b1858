// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the two ends exchange. Sequence numbers count segments from 0, and never wrap.

use fatpath_link::Ecn;

/// The most SACK blocks in an acknowledgement. A TCP header has room for four; what carries acknowledgements otherwise
/// may have more.
pub const MAX_BLOCKS: usize = 16;

/// SACK blocks that fit beside timestamps into a TCP header (RFC 2018, section 3).
pub const TIMESTAMPED_BLOCKS: u8 = 3;

/// A data segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its number.
    pub number: u64,
    /// Its data, 1 to the MSS; 0: a probe of a closed window, which only asks for an acknowledgement.
    pub payload_bytes: u32,
    /// When it was sent, which is echoed (TSval of RFC 7323).
    pub sent_ns: u64,
    /// `sent_ns` of the newest acknowledgement that had arrived (TSecr); 0: none.
    pub echo_ns: u64,
    /// The ECN field of its IP header.
    pub ecn: Ecn,
    /// The window was reduced since an echo of congestion (RFC 3168, 6.1.2).
    pub cwr: bool,
}

/// An acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// All segments below this number have arrived.
    pub next: u64,
    /// When it was sent.
    pub sent_ns: u64,
    /// `sent_ns` of the segment that the RFC 7323 rules choose.
    pub echo_ns: u64,
    /// The room beyond `next` that the receiver offers, bytes.
    pub window_bytes: u64,
    /// It echoes a mark of congestion (RFC 3168, 6.1.3).
    pub ece: bool,
    /// The first of `blocks` tells of a duplicate (RFC 2883).
    pub tells_duplicate: bool,
    /// How many of `blocks` count.
    pub block_count: u8,
    /// Segments that arrived beyond `next`, the newest first.
    pub blocks: [Block; MAX_BLOCKS],
}

impl Ack {
    /// The blocks that tell what arrived beyond `next`.
    pub fn sacked(&self) -> &[Block] {
        &self.blocks[usize::from(self.tells_duplicate)..usize::from(self.block_count)]
    }

    /// The block that tells of a duplicate.
    pub fn duplicate(&self) -> Option<Block> {
        self.tells_duplicate.then_some(self.blocks[0])
    }
}

/// Segments `from..until`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// The first.
    pub from: u64,
    /// One past the last.
    pub until: u64,
}

impl Block {
    /// Whether segment `number` is in it.
    pub fn contains(&self, number: u64) -> bool {
        (self.from..self.until).contains(&number)
    }
}

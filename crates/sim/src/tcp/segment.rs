// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the two ends exchange. Sequence numbers count segments from 0, and never wrap.

/// The most SACK blocks in an acknowledgement: what fits beside timestamps (RFC 2018, section 3).
pub const MAX_BLOCKS: usize = 3;

/// A data segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its number.
    pub number: u64,
    /// Its data, 1 to the MSS.
    pub payload_bytes: u32,
    /// When it was sent, which is echoed (RFC 7323).
    pub sent_ns: u64,
}

/// An acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// All segments below this number have arrived.
    pub next: u64,
    /// `sent_ns` of the segment that the RFC 7323 rules choose.
    pub echo_ns: u64,
    /// The room beyond `next` that the receiver offers, bytes.
    pub window_bytes: u64,
    /// The first of `blocks` tells of a duplicate (RFC 2883).
    pub tells_duplicate: bool,
    /// How many of `blocks` count.
    pub block_count: u8,
    /// Segments that arrived beyond `next`, the newest first.
    pub blocks: [Block; MAX_BLOCKS],
}

/// Segments `from..until`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// The first.
    pub from: u64,
    /// One past the last.
    pub until: u64,
}

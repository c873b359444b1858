// SPDX-License-Identifier: MIT OR Apache-2.0
//! A train, and the records of its departure and arrival.

use serde::{Deserialize, Serialize};

/// Most packets handed to the kernel at once (`UDP_MAX_SEGMENTS` of Linux before 6.7), 64 KB at most.
pub const MAX_BATCH_PACKETS: u32 = 43;

/// Longest time that the packets of a batch stand for: short beside the smallest queue, 0.1 bdp of 1 ms.
const MAX_BATCH_NS: f64 = 20_000.0;

/// A train to send: packets of one length at one rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Train {
    /// Bits of IP packets a second.
    pub rate_bps: u64,
    /// How many packets.
    pub packets: u32,
    /// Length of each, IP and UDP headers included.
    pub packet_bytes: u32,
}

impl Train {
    /// Bytes of all packets.
    pub fn bytes(&self) -> u64 {
        u64::from(self.packets) * u64::from(self.packet_bytes)
    }

    /// How long sending takes.
    pub fn duration_ns(&self) -> u64 {
        self.offset_ns(self.packets)
    }

    /// When a packet is to be sent, from the beginning of the train.
    pub fn offset_ns(&self, sequence: u32) -> u64 {
        let bits = u128::from(sequence) * u128::from(self.packet_bytes) * 8;
        let ns = bits * 1_000_000_000 / u128::from(self.rate_bps.max(1));
        u64::try_from(ns).unwrap_or(u64::MAX)
    }

    /// Packets to hand to the kernel at once, 1 to [`MAX_BATCH_PACKETS`].
    pub fn batch_packets(&self) -> u32 {
        let packet_ns = f64::from(self.packet_bytes) * 8e9 / self.rate_bps.max(1) as f64;
        ((MAX_BATCH_NS / packet_ns) as u32).clamp(1, MAX_BATCH_PACKETS)
    }
}

/// Packets of a train that were sent at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Departure {
    /// By the sender's clock.
    pub at_ns: u64,
    /// Sequence number of the first, from 0.
    pub first: u32,
    /// How many.
    pub packets: u32,
}

/// Packets of a train that were received with one timestamp, of consecutive sequence numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrival {
    /// By the receiver's clock, which need not agree with the sender's.
    pub at_ns: u64,
    /// Sequence number of the first, from 0.
    pub first: u32,
    /// How many.
    pub packets: u32,
}

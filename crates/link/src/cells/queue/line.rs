// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets that wait in line, with their bytes and segments summed. Decides nothing.

use std::collections::VecDeque;

use crate::{Count, Packet, Wire};

/// How much lies in a buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Depth {
    /// Wire bytes with the overhead of each segment.
    pub(crate) bytes: u64,
    /// Segments.
    pub(crate) packets: u64,
}

impl Depth {
    #[inline]
    pub(crate) fn of(wire: Wire, overhead_bytes: u32) -> Depth {
        Depth {
            bytes: wire.len_bytes(overhead_bytes),
            packets: wire.segments.into(),
        }
    }

    #[inline]
    pub(crate) fn add(&mut self, other: Depth) {
        self.bytes += other.bytes;
        self.packets += other.packets;
    }

    #[inline]
    pub(crate) fn plus(mut self, other: Depth) -> Depth {
        self.add(other);
        self
    }

    /// What of this is beyond `other`.
    #[inline]
    pub(crate) fn beyond(self, other: Depth) -> Depth {
        Depth {
            bytes: self.bytes.saturating_sub(other.bytes),
            packets: self.packets.saturating_sub(other.packets),
        }
    }
}

/// A packet in line.
#[derive(Debug)]
pub(crate) struct Waiting<P> {
    pub(crate) arrived_ns: u64,
    pub(crate) packet: P,
}

/// First in, first out.
#[derive(Debug)]
pub(crate) struct Line<P> {
    waiting: VecDeque<Waiting<P>>,
    depth: Depth,
    overhead_bytes: u32,
}

impl<P: Packet> Line<P> {
    /// An empty line, where each segment takes its wire bytes and `overhead_bytes`.
    pub(crate) fn new(overhead_bytes: u32) -> Self {
        Line {
            waiting: VecDeque::new(),
            depth: Depth::default(),
            overhead_bytes,
        }
    }

    pub(crate) fn depth(&self) -> Depth {
        self.depth
    }

    pub(crate) fn overhead_bytes(&self) -> u32 {
        self.overhead_bytes
    }

    pub(crate) fn set_overhead(&mut self, overhead_bytes: u32) {
        self.overhead_bytes = overhead_bytes;
        let depths = self.waiting.iter().map(|waiting| self.depth_of(waiting));
        self.depth = depths.fold(Depth::default(), Depth::plus);
    }

    pub(crate) fn front(&self) -> Option<&Waiting<P>> {
        self.waiting.front()
    }

    pub(crate) fn push_back(&mut self, waiting: Waiting<P>) {
        self.depth.add(self.depth_of(&waiting));
        self.waiting.push_back(waiting);
    }

    pub(crate) fn push_front(&mut self, waiting: Waiting<P>) {
        self.depth.add(self.depth_of(&waiting));
        self.waiting.push_front(waiting);
    }

    /// Takes all segments of the packet in front.
    pub(crate) fn pop_front(&mut self) -> Option<Waiting<P>> {
        self.take_front(u32::MAX)
    }

    /// Takes `count` segments, at least 1, of the packet in front, or as many as it has.
    pub(crate) fn take_front(&mut self, count: u32) -> Option<Waiting<P>> {
        let front = self.waiting.front_mut()?;
        let taken = match count < front.packet.wire().segments {
            true => Waiting {
                arrived_ns: front.arrived_ns,
                packet: front.packet.split_front(count),
            },
            false => self.waiting.pop_front()?,
        };
        self.depth = self.depth.beyond(self.depth_of(&taken));
        Some(taken)
    }

    /// Takes the fewest segments from the front that are `excess` or more, at least one; of one packet
    /// only, so there may be more to take.
    pub(crate) fn take_excess(&mut self, excess: Depth) -> Option<P> {
        let wire = self.waiting.front()?.packet.wire();
        let segment_bytes = u64::from(wire.segment_bytes + self.overhead_bytes).max(1);
        let count = excess
            .packets
            .max(excess.bytes.div_ceil(segment_bytes))
            .clamp(1, u64::from(u32::MAX));
        self.take_front(count as u32).map(|taken| taken.packet)
    }

    pub(crate) fn held(&self) -> Count {
        Count::of(self.waiting.iter().map(|waiting| &waiting.packet))
    }

    fn depth_of(&self, waiting: &Waiting<P>) -> Depth {
        Depth::of(waiting.packet.wire(), self.overhead_bytes)
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The drop-tail queue: first in, first out, and what does not fit is dropped, to the byte.

use std::collections::VecDeque;

use crate::{Count, Counters, DropCause, Packet, Queue, Wire};

/// A queue with a limit in bytes. The bytes of the segments in service count against it.
#[derive(Debug)]
pub struct DropTail<P> {
    limit_bytes: u64,
    overhead_bytes: u32,
    waiting: VecDeque<P>,
    waiting_bytes: u64,
}

impl<P: Packet> DropTail<P> {
    /// A queue that never holds more than `limit_bytes`, where each segment takes its wire bytes
    /// and `overhead_bytes`.
    pub fn new(limit_bytes: u64, overhead_bytes: u32) -> Self {
        DropTail {
            limit_bytes,
            overhead_bytes,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
        }
    }

    fn append(&mut self, packet: P) {
        self.waiting_bytes += packet.wire().len_bytes(self.overhead_bytes);
        self.waiting.push_back(packet);
    }

    /// How many segments at the front of a packet fit into `free_bytes`.
    fn fitting(&self, wire: Wire, free_bytes: u64) -> u32 {
        if wire.len_bytes(self.overhead_bytes) <= free_bytes {
            return wire.segments;
        }
        let full = free_bytes / u64::from(wire.segment_bytes + self.overhead_bytes).max(1);
        full.min(u64::from(wire.segments - 1)) as u32
    }
}

impl<P: Packet> Queue<P> for DropTail<P> {
    /// Queues the segments that fit, as if they came one after the other in an instant: so a short
    /// last segment may still fit when the full ones before it did not.
    fn enqueue(&mut self, _now_ns: u64, packet: P, in_service_bytes: u64, counters: &mut Counters) {
        let mut rest = Some(packet);
        while let Some(mut packet) = rest.take() {
            let wire = packet.wire();
            let free_bytes = self
                .limit_bytes
                .saturating_sub(self.waiting_bytes + in_service_bytes);
            let fitting = self.fitting(wire, free_bytes);
            if fitting == wire.segments {
                self.append(packet);
            } else if u64::from(wire.last_bytes + self.overhead_bytes) > free_bytes {
                counters.drop(DropCause::QueueFull, wire);
            } else if fitting > 0 {
                self.append(packet.split_front(fitting));
                rest = Some(packet);
            } else {
                counters.drop(
                    DropCause::QueueFull,
                    packet.split_front(wire.segments - 1).wire(),
                );
                rest = Some(packet);
            }
        }
    }

    fn dequeue(&mut self, _now_ns: u64, _counters: &mut Counters) -> Option<P> {
        let packet = self.waiting.pop_front()?;
        self.waiting_bytes -= packet.wire().len_bytes(self.overhead_bytes);
        Some(packet)
    }

    fn waiting_bytes(&self) -> u64 {
        self.waiting_bytes
    }

    fn held(&self) -> Count {
        Count::of(&self.waiting)
    }
}

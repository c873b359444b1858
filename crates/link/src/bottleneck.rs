// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bottleneck: a server of constant rate that takes its packets from a queue.
//!
//! The queue is a discipline of its own ([`Queue`]); the bottleneck knows only when the next packet
//! may be taken. A super-packet leaves whole, when its last segment has been serialised; the depth
//! of the queue falls segment by segment meanwhile.

use serde::{Deserialize, Serialize};

use crate::departures::Departures;
use crate::{
    Cell, CellSpec, Count, Counters, Departure, Packet, QueueSpec, RateClock, Service, Wire,
};

/// A bottleneck.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateSpec {
    /// How fast it serves.
    pub service: Service,
    /// What waits for it.
    pub queue: QueueSpec,
    /// What each segment costs the rate and the queue beyond its IP length, such as 38 for Ethernet
    /// with preamble and gap; at most [`ChainSpec::MAX_OVERHEAD_BYTES`].
    pub overhead_bytes: u32,
}

/// A queue discipline: what waits for the bottleneck, and what is dropped instead.
///
/// Depths are wire bytes with the bottleneck's overhead; drops are counted in `counters`.
pub trait Queue<P: Packet> {
    /// Takes a packet that arrives at `now_ns`, or drops all or part of it. `in_service_bytes` of
    /// the segments that are being serialised are in the buffer too.
    fn enqueue(&mut self, now_ns: u64, packet: P, in_service_bytes: u64, counters: &mut Counters);

    /// The packet to serialise from `now_ns` on.
    fn dequeue(&mut self, now_ns: u64, counters: &mut Counters) -> Option<P>;

    /// Bytes that wait, not counting those in service.
    fn waiting_bytes(&self) -> u64;

    /// What waits, counted from the packets themselves.
    fn held(&self) -> Count;
}

/// A rate behind a queue.
#[derive(Debug)]
pub struct Bottleneck<P, Q> {
    clock: RateClock,
    overhead_bytes: u32,
    queue: Q,
    in_service: Option<InService<P>>,
    /// When the server is done with all it took so far, in ticks of the clock.
    free_at_ticks: u128,
    served: Departures<P>,
    counters: Counters,
}

#[derive(Debug)]
struct InService<P> {
    packet: P,
    wire: Wire,
    done_at_ns: u64,
}

impl<P: Packet, Q: Queue<P>> Bottleneck<P, Q> {
    /// A server of `clock`'s rate; each segment costs its wire bytes and `overhead_bytes`.
    pub fn new(clock: RateClock, overhead_bytes: u32, queue: Q) -> Self {
        Bottleneck {
            clock,
            overhead_bytes,
            queue,
            in_service: None,
            free_at_ticks: 0,
            served: Departures::new(),
            counters: Counters::default(),
        }
    }

    /// Bytes in the buffer at `now_ns`: all segments that are not yet serialised to their last bit.
    pub fn depth_bytes(&self, now_ns: u64) -> u64 {
        self.queue.waiting_bytes() + self.in_service_bytes(now_ns)
    }

    fn in_service_bytes(&self, now_ns: u64) -> u64 {
        let Some(service) = &self.in_service else {
            return 0;
        };
        let left_ticks = self.free_at_ticks.saturating_sub(self.clock.ticks(now_ns));
        let left_bytes = self.clock.bytes_covering(left_ticks);
        whole_segments_covering(service.wire, left_bytes, self.overhead_bytes)
    }

    /// Lets the server work up to `now_ns`.
    fn serve(&mut self, now_ns: u64) {
        while let Some(service) = self
            .in_service
            .take_if(|service| service.done_at_ns <= now_ns)
        {
            self.served.push(service.done_at_ns, service.packet);
            self.start(service.done_at_ns);
        }
    }

    /// Starts with the next packet, at `now_ns` or the part of a nanosecond before it at which the
    /// last one was done.
    fn start(&mut self, now_ns: u64) {
        let Some(packet) = self.queue.dequeue(now_ns, &mut self.counters) else {
            return;
        };
        let wire = packet.wire();
        let begin_ticks = match self.clock.ns_not_before(self.free_at_ticks) == now_ns {
            true => self.free_at_ticks,
            false => self.clock.ticks(now_ns),
        };
        self.free_at_ticks = begin_ticks
            + self
                .clock
                .ticks_of_bytes(wire.len_bytes(self.overhead_bytes));
        let done_at_ns = self.clock.ns_not_before(self.free_at_ticks);
        self.in_service = Some(InService {
            packet,
            wire,
            done_at_ns,
        });
    }
}

/// `left_bytes` of a packet, counted from its end and rounded up to whole segments.
fn whole_segments_covering(wire: Wire, left_bytes: u64, overhead_bytes: u32) -> u64 {
    let last_bytes = u64::from(wire.last_bytes + overhead_bytes);
    let segment_bytes = u64::from(wire.segment_bytes + overhead_bytes).max(1);
    match left_bytes {
        0 => 0,
        _ => {
            last_bytes
                + left_bytes
                    .saturating_sub(last_bytes)
                    .next_multiple_of(segment_bytes)
        }
    }
}

impl<P: Packet, Q: Queue<P>> Cell<P> for Bottleneck<P, Q> {
    fn push(&mut self, now_ns: u64, packet: P) {
        self.serve(now_ns);
        self.counters.arrived.add(packet.wire());
        let in_service_bytes = self.in_service_bytes(now_ns);
        self.queue
            .enqueue(now_ns, packet, in_service_bytes, &mut self.counters);
        if self.in_service.is_none() {
            self.start(now_ns);
        }
    }

    fn next_due_ns(&self) -> Option<u64> {
        let serving = || self.in_service.as_ref().map(|service| service.done_at_ns);
        self.served.next_due_ns().or_else(serving)
    }

    fn pop(&mut self, now_ns: u64) -> Option<Departure<P>> {
        self.serve(now_ns);
        let departure = self.served.pop(now_ns)?;
        self.counters.left.add(departure.packet.wire());
        Some(departure)
    }

    fn counters(&self) -> Counters {
        self.counters
    }

    fn held(&self) -> Count {
        let mut held = self.queue.held();
        held += self.served.held();
        self.in_service
            .iter()
            .for_each(|service| held.add(service.wire));
        held
    }

    fn change(&mut self, _now_ns: u64, _spec: &CellSpec) -> bool {
        false
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bottleneck: a server that takes its packets from a queue.
//!
//! It brings together the [`Queue`], which decides what waits, and the [`Server`], which knows how long
//! bytes take. A super-packet leaves whole, when its last segment was sent; the depth falls segment by
//! segment meanwhile. Without a limit to the rate there is no queue either: all passes at once.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::cells::queue::line::{Depth, Waiting};
use crate::cells::queue::{Arrival, Queue};
use crate::cells::service::{Server, bytes_covering, work_of};
use crate::departures::Departures;
use crate::packet::split;
use crate::random::Random;
use crate::{
    Cell, CellSpec, ChainSpec, Count, Counters, Departure, Packet, QueueSpec, Service, SpecError,
    Wire,
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

impl RateSpec {
    /// What each segment costs beyond its IP length, with what the service itself adds.
    fn cost_bytes(&self) -> u32 {
        self.overhead_bytes + self.service.header_bytes()
    }

    pub(crate) fn check(&self) -> Result<(), SpecError> {
        if self.overhead_bytes > ChainSpec::MAX_OVERHEAD_BYTES {
            return Err(SpecError::Overhead(self.overhead_bytes));
        }
        self.service.check()?;
        self.queue.check()
    }
}

impl fmt::Display for RateSpec {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}, {}", self.service, self.queue)
    }
}

/// The cell of a [`RateSpec`].
#[derive(Debug)]
pub(crate) struct Bottleneck<P> {
    spec: RateSpec,
    /// `None`: unlimited.
    server: Option<Server>,
    queue: Queue<P>,
    in_service: Option<InService<P>>,
    /// Where in the server's work all that it took is done, and when; `None`: the server stops for good
    /// before.
    free_at: u128,
    free_ns: Option<u64>,
    served: Departures<P>,
    /// Since it was asked for last.
    peak_bytes: u64,
    counters: Counters,
}

/// What is being sent. Of its segments, at least the last is not sent yet.
#[derive(Debug)]
struct InService<P> {
    waiting: Waiting<P>,
    wire: Wire,
    /// Of the time at which it was taken.
    overhead_bytes: u32,
}

impl<P: Packet> Bottleneck<P> {
    pub(crate) fn new(spec: RateSpec, random: Random) -> Self {
        Bottleneck {
            server: Server::of(&spec.service),
            free_at: 0,
            free_ns: None,
            queue: Queue::new(&spec.queue, spec.cost_bytes(), random),
            spec,
            in_service: None,
            served: Departures::new(),
            peak_bytes: 0,
            counters: Counters::default(),
        }
    }

    /// Lets the server work up to `now_ns`.
    fn serve(&mut self, now_ns: u64) {
        while let Some((done_ns, packet)) = self.take_done(now_ns) {
            self.served.push(done_ns, packet);
            self.start(done_ns);
        }
    }

    fn take_done(&mut self, now_ns: u64) -> Option<(u64, P)> {
        let done_ns = self.free_ns.filter(|done_ns| *done_ns <= now_ns)?;
        let done = self.in_service.take()?;
        Some((done_ns, done.waiting.packet))
    }

    /// Takes the next packet, at `now_ns` or the part of a nanosecond before it at which the last one
    /// was done.
    fn start(&mut self, now_ns: u64) {
        let Some(server) = &self.server else { return };
        let begin = match self.free_ns == Some(now_ns) {
            true => self.free_at,
            false => server.work(now_ns),
        };
        let begins_ns = |bytes| server.done_ns(begin + work_of(bytes));
        let taken = self.queue.dequeue(now_ns, begins_ns, &mut self.counters);
        let Some(waiting) = taken else {
            self.free_at = server.idle(self.free_at, now_ns);
            return;
        };
        let wire = waiting.packet.wire();
        let overhead_bytes = self.spec.cost_bytes();
        self.free_at = begin + work_of(wire.len_bytes(overhead_bytes));
        // Not before now, were it nothing to send.
        let done_ns = server.done_ns(self.free_at);
        self.free_ns = done_ns.map(|done_ns| done_ns.max(now_ns));
        self.in_service = Some(InService {
            waiting,
            wire,
            overhead_bytes,
        });
    }

    fn receive(&mut self, now_ns: u64, packet: P) {
        let arrival = self.arrival(now_ns);
        match self.queue.displaces(&packet, arrival.in_service) {
            true => self.displace(now_ns, packet),
            false => self.admit(packet, arrival),
        }
    }

    fn admit(&mut self, packet: P, arrival: Arrival) {
        self.queue.enqueue(packet, arrival, &mut self.counters);
        if self.in_service.is_none() {
            self.start(arrival.now_ns);
        }
    }

    /// Receives a packet that costs others their place. Only what is being sent at this very moment
    /// is safe from it: the first segment that meets an idle server, and one of a super-packet.
    fn displace(&mut self, now_ns: u64, packet: P) {
        let mut rest = Some(packet);
        while let Some(packet) = rest.take() {
            let one_by_one = self.in_service.is_none() || self.queue.may_mark(&packet);
            let (front, behind) = split(packet, if one_by_one { 1 } else { u32::MAX });
            self.give_back(now_ns);
            self.admit(front, self.arrival(now_ns));
            rest = behind;
        }
    }

    /// Puts the segments in front of the line again that are in service, but not begun at `now_ns`.
    fn give_back(&mut self, now_ns: u64) {
        let unsent = self.in_service_depth(now_ns).packets as u32;
        let (Some(service), Some(server)) = (&mut self.in_service, &self.server) else {
            return;
        };
        let begun = service.wire.segments - unsent + 1;
        if begun >= service.wire.segments {
            return;
        }
        let sending = service.waiting.packet.split_front(begun);
        let unbegun = std::mem::replace(&mut service.waiting.packet, sending);
        service.wire = service.waiting.packet.wire();
        self.free_at -= work_of(unbegun.wire().len_bytes(service.overhead_bytes));
        self.free_ns = server.done_ns(self.free_at);
        self.queue.give_back(Waiting {
            arrived_ns: service.waiting.arrived_ns,
            packet: unbegun,
        });
    }

    fn arrival(&self, now_ns: u64) -> Arrival {
        let idle_work = match (&self.in_service, &self.server) {
            (None, Some(server)) => server.work(now_ns).saturating_sub(self.free_at),
            _ => 0,
        };
        Arrival {
            now_ns,
            in_service: self.in_service_depth(now_ns),
            idle_bytes: bytes_covering(idle_work),
        }
    }

    /// All segments in the buffer that are not yet sent to their last bit.
    fn depth(&self, now_ns: u64) -> Depth {
        self.queue.depth().plus(self.in_service_depth(now_ns))
    }

    fn in_service_depth(&self, now_ns: u64) -> Depth {
        let Some(service) = &self.in_service else {
            return Depth::default();
        };
        if service.wire.segments == 1 && self.free_ns.is_none_or(|free_ns| free_ns > now_ns) {
            return Depth::of(service.wire, service.overhead_bytes);
        }
        let left_bytes = bytes_covering(self.left_work(now_ns));
        whole_segments_covering(service.wire, left_bytes, service.overhead_bytes)
    }

    /// What the server still has to do for the packet in service.
    fn left_work(&self, now_ns: u64) -> u128 {
        match (&self.in_service, &self.server) {
            (Some(_), Some(server)) => self.free_at.saturating_sub(server.work(now_ns)),
            _ => 0,
        }
    }

    /// Goes on with another server: what is left of a segment in service takes its time.
    fn serve_by(&mut self, now_ns: u64, server: Option<Server>) {
        let left_work = self.left_work(now_ns);
        self.server = server;
        let Some(server) = &self.server else {
            return self.release(now_ns);
        };
        self.free_at = server.work(now_ns) + left_work;
        self.free_ns = server.done_ns(self.free_at);
    }

    /// Lets go of all that is held, in order.
    fn release(&mut self, now_ns: u64) {
        if let Some(service) = self.in_service.take() {
            self.served.push(now_ns, service.waiting.packet);
        }
        while let Some(packet) = self.queue.release() {
            self.served.push(now_ns, packet);
        }
    }
}

/// `left_bytes` of a packet, counted from its end and rounded up to whole segments.
fn whole_segments_covering(wire: Wire, left_bytes: u64, overhead_bytes: u32) -> Depth {
    let last_bytes = u64::from(wire.last_bytes + overhead_bytes);
    let segment_bytes = u64::from(wire.segment_bytes + overhead_bytes).max(1);
    let before_last = left_bytes
        .saturating_sub(last_bytes)
        .div_ceil(segment_bytes);
    match left_bytes {
        0 => Depth::default(),
        _ => Depth {
            bytes: last_bytes + before_last * segment_bytes,
            packets: 1 + before_last,
        },
    }
}

impl<P: Packet> Cell<P> for Bottleneck<P> {
    fn push(&mut self, now_ns: u64, packet: P) {
        self.serve(now_ns);
        self.counters.arrived.add(packet.wire());
        if self.server.is_none() {
            return self.served.push(now_ns, packet);
        }
        self.receive(now_ns, packet);
        self.peak_bytes = self.peak_bytes.max(self.depth(now_ns).bytes);
    }

    fn next_due_ns(&self) -> Option<u64> {
        let serving = || self.free_ns.filter(|_| self.in_service.is_some());
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

    fn change(&mut self, now_ns: u64, spec: &CellSpec) -> bool {
        let CellSpec::Rate(spec) = spec else {
            return false;
        };
        self.serve(now_ns);
        if *spec != self.spec {
            self.give_back(now_ns);
            self.queue.change(&spec.queue, spec.cost_bytes());
            self.spec = spec.clone();
            self.serve_by(now_ns, Server::of(&spec.service));
            self.peak_bytes = self.peak_bytes.max(self.depth(now_ns).bytes);
        }
        true
    }

    fn take_peak_bytes(&mut self, now_ns: u64) -> u64 {
        self.serve(now_ns);
        let depth_bytes = self.depth(now_ns).bytes;
        std::mem::replace(&mut self.peak_bytes, depth_bytes)
    }
}

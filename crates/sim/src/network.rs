// SPDX-License-Identifier: MIT OR Apache-2.0
//! Links and the ways over them. Knows hosts and packets, nothing of TCP.

use fatpath_link::{Cell, Chain, Count, Packet};

use crate::outcome::{LinkOutcome, LinkSample};
use crate::packet::SimPacket;
use crate::wakes::Wakes;
use crate::{ChangeSpec, Spec};

/// No way.
const NOWHERE: u32 = u32::MAX;

/// All links, each as two directions: `2 link` and `2 link + 1`.
pub(crate) struct Network {
    directions: Vec<Direction>,
    wakes: Wakes,
    hosts: usize,
    /// The direction to take at each host for each destination, row by row.
    routes: Vec<u32>,
}

struct Direction {
    chain: Chain<SimPacket>,
    mtu_bytes: u32,
    /// Where it leads.
    to: u32,
    too_big: Count,
    peak_queue_bytes: u64,
    samples: Vec<LinkSample>,
}

impl Network {
    /// Of a spec that was checked.
    pub(crate) fn new(spec: &Spec) -> Network {
        let directions: Vec<_> = (0..2 * spec.links.len())
            .map(|index| Direction::new(spec, index))
            .collect();
        let route = |way: &Option<(usize, usize)>| {
            way.map_or(NOWHERE, |(link, direction)| (2 * link + direction) as u32)
        };
        Network {
            wakes: Wakes::new(directions.len()),
            directions,
            hosts: spec.hosts,
            routes: spec.routes.iter().flatten().map(route).collect(),
        }
    }

    /// When something may leave a link; the greatest time if nothing is under way.
    pub(crate) fn next_due_ns(&self) -> u64 {
        self.wakes.first_ns()
    }

    /// The direction that is due first.
    pub(crate) fn next_direction(&self) -> usize {
        self.wakes.first()
    }

    /// Sends a packet from host `at` towards host `to`.
    pub(crate) fn send(&mut self, now_ns: u64, at: u32, to: u32, packet: SimPacket) {
        let index = self.routes[at as usize * self.hosts + to as usize];
        let direction = &mut self.directions[index as usize];
        direction.push(now_ns, packet);
        self.rearm(index as usize);
    }

    /// The next packet that has left this direction by `now_ns`, and the host where it is.
    pub(crate) fn pop(&mut self, now_ns: u64, index: usize) -> Option<(u32, SimPacket)> {
        let direction = &mut self.directions[index];
        let Some(departure) = direction.chain.pop(now_ns) else {
            self.rearm(index);
            return None;
        };
        Some((direction.to, departure.packet))
    }

    fn rearm(&mut self, index: usize) {
        self.wakes
            .set(index, self.directions[index].chain.next_due_ns());
    }

    /// A link becomes another.
    pub(crate) fn change(&mut self, change: &ChangeSpec) {
        for (side, spec) in change.directions.iter().enumerate() {
            let index = 2 * change.link + side;
            let adopted = self.directions[index].chain.adopt(change.at_ns, spec);
            adopted.expect("all changes were checked");
            self.rearm(index);
        }
    }

    pub(crate) fn sample(&mut self, now_ns: u64) {
        for index in 0..self.directions.len() {
            self.directions[index].sample(now_ns);
            self.rearm(index);
        }
    }

    pub(crate) fn outcome(mut self, now_ns: u64) -> Vec<[LinkOutcome; 2]> {
        let mut outcomes = self
            .directions
            .drain(..)
            .map(|direction| direction.outcome(now_ns));
        let pair = |_| Some([outcomes.next()?, outcomes.next()?]);
        (0..).map_while(pair).collect()
    }
}

impl Direction {
    fn new(spec: &Spec, index: usize) -> Direction {
        let link = &spec.links[index / 2];
        let chain = link.directions[index % 2].build();
        Direction {
            chain: chain.expect("all links were checked"),
            mtu_bytes: link.mtu_bytes,
            to: link.between[1 - index % 2] as u32,
            too_big: Count::default(),
            peak_queue_bytes: 0,
            samples: Vec::new(),
        }
    }

    fn push(&mut self, now_ns: u64, packet: SimPacket) {
        let wire = packet.wire();
        if wire.last_bytes <= self.mtu_bytes {
            self.chain.push(now_ns, packet);
        } else if packet.may_be_fragmented() {
            let fragments = packet.fragments(self.mtu_bytes);
            (fragments.into_iter()).for_each(|fragment| self.chain.push(now_ns, fragment));
        } else {
            self.too_big.add(wire);
        }
    }

    fn sample(&mut self, now_ns: u64) {
        let peak_queue_bytes = self.take_peak_bytes(now_ns);
        let counters = self.chain.counters();
        self.samples.push(LinkSample {
            at_ns: now_ns,
            left_bytes: counters.left.bytes,
            dropped_packets: counters.dropped_total().packets,
            peak_queue_bytes,
        });
    }

    fn take_peak_bytes(&mut self, now_ns: u64) -> u64 {
        let peak_bytes = self.chain.take_peak_bytes(now_ns);
        self.peak_queue_bytes = self.peak_queue_bytes.max(peak_bytes);
        peak_bytes
    }

    fn outcome(mut self, now_ns: u64) -> LinkOutcome {
        self.take_peak_bytes(now_ns);
        LinkOutcome {
            counters: self.chain.counters(),
            cells: self.chain.cell_counters().collect(),
            held: self.chain.held(),
            too_big: self.too_big,
            peak_queue_bytes: self.peak_queue_bytes,
            samples: self.samples,
        }
    }
}

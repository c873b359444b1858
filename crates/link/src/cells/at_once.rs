// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the effects have in common that take no time: a packet meets them, and what is left of it
//! leaves at the same moment, in order.

use std::collections::VecDeque;

use crate::departures::Departures;
use crate::packet::split;
use crate::random::Stretch;
use crate::{Cell, CellSpec, Count, Counters, Departure, DropCause, Packet};

/// An effect that takes no time.
pub(crate) trait Effect<P: Packet> {
    /// Does to `packet`, which comes at `now_ns`, what the effect does, and gives `out` all of it.
    fn meet(&mut self, now_ns: u64, packet: P, out: &mut Outcome<P>);

    /// Takes on the parameters of `spec`; false if that is another effect.
    fn change(&mut self, spec: &CellSpec) -> bool;
}

/// What becomes of packets.
#[derive(Debug)]
pub(crate) struct Outcome<P> {
    passed: Departures<P>,
    replies: VecDeque<P>,
    pub(crate) counters: Counters,
}

impl<P: Packet> Outcome<P> {
    pub(crate) fn pass(&mut self, now_ns: u64, packet: P) {
        self.passed.push(now_ns, packet);
    }

    /// Of one segment that may be fragmented.
    pub(crate) fn pass_fragments(&mut self, now_ns: u64, segment: P, mtu_bytes: u32) {
        let whole = segment.wire();
        let fragments = segment.fragments(mtu_bytes);
        self.counters.fragment(whole, Count::of(&fragments));
        (fragments.into_iter()).for_each(|fragment| self.pass(now_ns, fragment));
    }

    pub(crate) fn drop(&mut self, cause: DropCause, packet: P) {
        self.counters.drop(cause, packet.wire());
    }

    /// Passes the segments of `packet` that `next` does not choose, and hands the chosen ones to
    /// `meet`, all in order.
    pub(crate) fn sift(
        &mut self,
        now_ns: u64,
        packet: P,
        mut next: impl FnMut(&P) -> Stretch,
        mut meet: impl FnMut(P, &mut Self),
    ) {
        let mut rest = Some(packet);
        while let Some(packet) = rest.take() {
            let stretch = next(&packet);
            let (front, behind) = split(packet, stretch.segments);
            rest = behind;
            match stretch.chosen {
                true => meet(front, self),
                false => self.pass(now_ns, front),
            }
        }
    }

    pub(crate) fn reply(&mut self, reply: Option<P>) {
        self.replies.extend(reply);
    }
}

/// The cell of an effect that takes no time.
#[derive(Debug)]
pub(crate) struct AtOnce<P, E> {
    effect: E,
    out: Outcome<P>,
}

impl<P: Packet, E: Effect<P>> AtOnce<P, E> {
    pub(crate) fn new(effect: E) -> Self {
        AtOnce {
            effect,
            out: Outcome {
                passed: Departures::new(),
                replies: VecDeque::new(),
                counters: Counters::default(),
            },
        }
    }
}

impl<P: Packet, E: Effect<P>> Cell<P> for AtOnce<P, E> {
    fn push(&mut self, now_ns: u64, packet: P) {
        self.out.counters.arrived.add(packet.wire());
        self.effect.meet(now_ns, packet, &mut self.out);
    }

    fn next_due_ns(&self) -> Option<u64> {
        self.out.passed.next_due_ns()
    }

    fn pop(&mut self, now_ns: u64) -> Option<Departure<P>> {
        let departure = self.out.passed.pop(now_ns)?;
        self.out.counters.left.add(departure.packet.wire());
        Some(departure)
    }

    fn counters(&self) -> Counters {
        self.out.counters
    }

    fn held(&self) -> Count {
        self.out.passed.held()
    }

    fn change(&mut self, _now_ns: u64, spec: &CellSpec) -> bool {
        self.effect.change(spec)
    }

    fn pop_reply(&mut self) -> Option<P> {
        self.out.replies.pop_front()
    }
}

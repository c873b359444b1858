// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets that wait for their moments to leave: in the order in which they came, or in any. Knows
//! nothing of effects.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

use crate::{Count, Packet};

/// A packet that leaves a cell.
#[derive(Debug)]
pub struct Departure<P> {
    /// When it left, which is not later than the `now_ns` of the pop that returned it.
    pub at_ns: u64,
    /// The packet.
    pub packet: P,
}

/// A line of packets whose times of departure are known and never decrease.
#[derive(Debug)]
pub(crate) struct Departures<P>(VecDeque<Departure<P>>);

impl<P: Packet> Departures<P> {
    pub(crate) fn new() -> Self {
        Departures(VecDeque::new())
    }

    pub(crate) fn push(&mut self, at_ns: u64, packet: P) {
        self.0.push_back(Departure { at_ns, packet });
    }

    pub(crate) fn next_due_ns(&self) -> Option<u64> {
        self.0.front().map(|next| next.at_ns)
    }

    pub(crate) fn pop(&mut self, now_ns: u64) -> Option<Departure<P>> {
        self.0.front().filter(|next| next.at_ns <= now_ns)?;
        self.0.pop_front()
    }

    pub(crate) fn held(&self) -> Count {
        Count::of(self.0.iter().map(|departure| &departure.packet))
    }
}

/// Packets whose times of departure are known and in no order; of equal times, the first come leaves
/// first.
#[derive(Debug)]
pub(crate) struct Unordered<P> {
    waiting: BinaryHeap<Numbered<P>>,
    pushed: u64,
}

#[derive(Debug)]
struct Numbered<P> {
    departure: Departure<P>,
    number: u64,
}

impl<P: Packet> Unordered<P> {
    pub(crate) fn new() -> Self {
        Unordered {
            waiting: BinaryHeap::new(),
            pushed: 0,
        }
    }

    pub(crate) fn push(&mut self, at_ns: u64, packet: P) {
        let departure = Departure { at_ns, packet };
        let number = self.pushed;
        self.pushed += 1;
        self.waiting.push(Numbered { departure, number });
    }

    pub(crate) fn next_due_ns(&self) -> Option<u64> {
        self.waiting.peek().map(|next| next.departure.at_ns)
    }

    pub(crate) fn pop(&mut self, now_ns: u64) -> Option<Departure<P>> {
        self.next_due_ns().filter(|at_ns| *at_ns <= now_ns)?;
        self.waiting.pop().map(|next| next.departure)
    }

    pub(crate) fn held(&self) -> Count {
        Count::of(self.waiting.iter().map(|next| &next.departure.packet))
    }
}

impl<P> Numbered<P> {
    fn key(&self) -> (u64, u64) {
        (self.departure.at_ns, self.number)
    }
}

/// The one that leaves first is the greatest, as a [`BinaryHeap`] wants it.
impl<P> Ord for Numbered<P> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

impl<P> PartialOrd for Numbered<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> PartialEq for Numbered<P> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<P> Eq for Numbered<P> {}

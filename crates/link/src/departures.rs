// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets in the order in which they leave, each with its moment. Knows nothing of effects.

use std::collections::VecDeque;

use crate::{Count, Departure, Packet};

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

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Propagation: every packet leaves a constant time after it came, in order.

use serde::{Deserialize, Serialize};

use crate::departures::Departures;
use crate::{Cell, CellSpec, Count, Counters, Departure, JitterSpec, Packet};

/// Propagation delay, one way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DelaySpec {
    /// The constant part; 0 to [`ChainSpec::MAX_DELAY_NS`].
    pub delay_ns: u64,
    /// What varies from segment to segment.
    pub jitter: Option<JitterSpec>,
}

/// A constant propagation delay. Never drops, splits or reorders.
#[derive(Debug)]
pub struct Delay<P> {
    delay_ns: u64,
    travelling: Departures<P>,
    counters: Counters,
}

impl<P: Packet> Delay<P> {
    /// A delay of `delay_ns`, one way.
    pub fn new(delay_ns: u64) -> Self {
        Delay {
            delay_ns,
            travelling: Departures::new(),
            counters: Counters::default(),
        }
    }
}

impl<P: Packet> Cell<P> for Delay<P> {
    fn push(&mut self, now_ns: u64, packet: P) {
        self.counters.arrived.add(packet.wire());
        self.travelling.push(now_ns + self.delay_ns, packet);
    }

    fn next_due_ns(&self) -> Option<u64> {
        self.travelling.next_due_ns()
    }

    fn pop(&mut self, now_ns: u64) -> Option<Departure<P>> {
        let departure = self.travelling.pop(now_ns)?;
        self.counters.left.add(departure.packet.wire());
        Some(departure)
    }

    fn counters(&self) -> Counters {
        self.counters
    }

    fn held(&self) -> Count {
        self.travelling.held()
    }

    fn change(&mut self, _now_ns: u64, _spec: &CellSpec) -> bool {
        false
    }
}

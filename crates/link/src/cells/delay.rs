// SPDX-License-Identifier: MIT OR Apache-2.0
//! Propagation: a packet leaves some time after it came. Never drops; splits only what jitter parts.

use std::fmt;

use fatpath_units::show_time;
use serde::{Deserialize, Serialize};

use crate::departures::{Departures, Unordered};
use crate::random::Random;
use crate::{Cell, CellSpec, Count, Counters, Departure, JitterSpec, Packet, SpecError};

/// Propagation delay, one way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DelaySpec {
    /// The constant part; 0 to [`crate::ChainSpec::MAX_DELAY_NS`].
    pub delay_ns: u64,
    /// What varies from segment to segment.
    pub jitter: Option<JitterSpec>,
}

impl DelaySpec {
    pub(crate) fn check(&self) -> Result<(), SpecError> {
        SpecError::unless_delay(self.delay_ns)?;
        self.jitter.iter().try_for_each(JitterSpec::check)
    }
}

impl fmt::Display for DelaySpec {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "delay {}", show_time(self.delay_ns / 1000))?;
        match self.jitter {
            Some(_) => f.write_str(" with jitter"),
            None => Ok(()),
        }
    }
}

/// The cell of a [`DelaySpec`].
#[derive(Debug)]
pub(crate) struct Delay<P> {
    spec: DelaySpec,
    random: Random,
    in_order: Departures<P>,
    /// The last moment in `in_order`, which no packet that keeps order may leave before.
    latest_ns: u64,
    /// What was let to overtake.
    unordered: Unordered<P>,
    counters: Counters,
}

impl<P: Packet> Delay<P> {
    pub(crate) fn new(spec: DelaySpec, random: Random) -> Self {
        Delay {
            spec,
            random,
            in_order: Departures::new(),
            latest_ns: 0,
            unordered: Unordered::new(),
            counters: Counters::default(),
        }
    }

    /// Lets each run of segments of one delay travel as one packet.
    fn scatter(&mut self, now_ns: u64, packet: P, jitter: &JitterSpec) {
        let mut rest = packet;
        let mut at_ns = self.draw(now_ns, jitter);
        let mut alike = 1;
        while alike < rest.wire().segments {
            let next_ns = self.draw(now_ns, jitter);
            if next_ns == at_ns {
                alike += 1;
                continue;
            }
            self.travel(at_ns, rest.split_front(alike), jitter.reorders);
            (at_ns, alike) = (next_ns, 1);
        }
        self.travel(at_ns, rest, jitter.reorders);
    }

    /// When the next segment leaves.
    fn draw(&mut self, now_ns: u64, jitter: &JitterSpec) -> u64 {
        let delay_ns = jitter
            .distribution
            .draw(self.spec.delay_ns, &mut self.random);
        match jitter.reorders {
            true => now_ns + delay_ns,
            false => self.no_overtaking(now_ns + delay_ns),
        }
    }

    fn no_overtaking(&mut self, at_ns: u64) -> u64 {
        self.latest_ns = self.latest_ns.max(at_ns);
        self.latest_ns
    }

    fn travel(&mut self, at_ns: u64, packet: P, overtakes: bool) {
        match overtakes {
            true => self.unordered.push(at_ns, packet),
            false => self.in_order.push(at_ns, packet),
        }
    }
}

impl<P: Packet> Cell<P> for Delay<P> {
    fn push(&mut self, now_ns: u64, packet: P) {
        self.counters.arrived.add(packet.wire());
        match self.spec.jitter {
            Some(jitter) => self.scatter(now_ns, packet, &jitter),
            None => {
                let at_ns = self.no_overtaking(now_ns + self.spec.delay_ns);
                self.in_order.push(at_ns, packet);
            }
        }
    }

    fn next_due_ns(&self) -> Option<u64> {
        match (self.in_order.next_due_ns(), self.unordered.next_due_ns()) {
            (one, None) => one,
            (None, other) => other,
            (Some(one), Some(other)) => Some(one.min(other)),
        }
    }

    fn pop(&mut self, now_ns: u64) -> Option<Departure<P>> {
        let departure = match self.unordered.next_due_ns() {
            None => self.in_order.pop(now_ns),
            Some(other_ns) => {
                let departure = self.in_order.pop(now_ns.min(other_ns));
                departure.or_else(|| self.unordered.pop(now_ns))
            }
        }?;
        self.counters.left.add(departure.packet.wire());
        Some(departure)
    }

    fn counters(&self) -> Counters {
        self.counters
    }

    fn held(&self) -> Count {
        let mut held = self.in_order.held();
        held += self.unordered.held();
        held
    }

    /// What travels arrives as it was going to. What follows and keeps order leaves no sooner, even
    /// with a shorter delay.
    fn change(&mut self, _now_ns: u64, spec: &CellSpec) -> bool {
        let CellSpec::Delay(spec) = spec else {
            return false;
        };
        self.spec = spec.clone();
        true
    }
}

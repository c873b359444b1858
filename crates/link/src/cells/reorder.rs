// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reordering by displacement: a segment stands aside while some later ones pass. Never drops.

use std::collections::VecDeque;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::cells::percent;
use crate::departures::Departures;
use crate::packet::{each_segment, split};
use crate::random::{Picker, Random};
use crate::{Cell, CellSpec, Count, Counters, Departure, Packet, SpecError};

/// Reordering by displacement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReorderSpec {
    /// Of each segment, that it is displaced; 0 to 1.
    pub probability: f64,
    /// How many later segments pass before it; at least 1. Those that are displaced themselves do not
    /// count, and displaced ones keep order among each other.
    pub displacement_packets: u32,
    /// When fewer than that follow, it leaves after this time; at most
    /// [`crate::ChainSpec::MAX_DELAY_NS`].
    pub hold_limit_ns: u64,
}

impl ReorderSpec {
    pub(crate) fn check(&self) -> Result<(), SpecError> {
        SpecError::unless_probability("reordering", self.probability)?;
        SpecError::unless_delay(self.hold_limit_ns)?;
        match self.displacement_packets {
            0 => Err(SpecError::Other(
                "displacement of 0 packets: give at least 1".to_owned(),
            )),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for ReorderSpec {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let share = percent(self.probability);
        write!(f, "reorder {share} by {}", self.displacement_packets)
    }
}

/// The cell of a [`ReorderSpec`].
#[derive(Debug)]
pub(crate) struct Reorder<P> {
    spec: ReorderSpec,
    picker: Picker,
    random: Random,
    /// The displaced, single segments, in the order in which they came; which is the order in which
    /// they leave, since the same displacement and limit hold for all.
    aside: VecDeque<Aside<P>>,
    /// Segments that were not displaced, since the cell was made.
    passed_packets: u64,
    passed: Departures<P>,
    counters: Counters,
}

#[derive(Debug)]
struct Aside<P> {
    segment: P,
    since_ns: u64,
    /// Of the cell, when the segment came.
    passed_packets: u64,
}

impl<P: Packet> Reorder<P> {
    pub(crate) fn new(spec: ReorderSpec, mut random: Random) -> Self {
        Reorder {
            spec,
            picker: Picker::new(spec.probability, &mut random),
            random,
            aside: VecDeque::new(),
            passed_packets: 0,
            passed: Departures::new(),
            counters: Counters::default(),
        }
    }

    /// Passes segments that are not displaced, and puts the displaced ones back at their places.
    fn pass(&mut self, now_ns: u64, packet: P) {
        let mut rest = Some(packet);
        while let Some(packet) = rest.take() {
            let until_return = self.packets_until_return().unwrap_or(u32::MAX);
            let (front, behind) = split(packet, until_return);
            self.passed_packets += u64::from(front.wire().segments);
            self.passed.push(now_ns, front);
            self.return_overtaken(now_ns);
            rest = behind;
        }
    }

    /// How many segments are still to pass before the first displaced one.
    fn packets_until_return(&self) -> Option<u32> {
        let since = self.aside.front()?.passed_packets;
        let passed = self.passed_packets - since;
        let left = u64::from(self.spec.displacement_packets).saturating_sub(passed);
        Some(left as u32)
    }

    fn return_overtaken(&mut self, now_ns: u64) {
        while self.packets_until_return() == Some(0) {
            self.return_first(now_ns);
        }
    }

    fn return_late(&mut self, now_ns: u64) {
        while let Some(due_ns) = self.hold_ends_ns().filter(|due_ns| *due_ns <= now_ns) {
            self.return_first(due_ns);
        }
    }

    fn hold_ends_ns(&self) -> Option<u64> {
        Some(self.aside.front()?.since_ns + self.spec.hold_limit_ns)
    }

    fn return_first(&mut self, at_ns: u64) {
        if let Some(first) = self.aside.pop_front() {
            self.passed.push(at_ns, first.segment);
        }
    }

    fn put_aside(&mut self, now_ns: u64, packet: P) {
        each_segment(packet, |segment| {
            self.aside.push_back(Aside {
                segment,
                since_ns: now_ns,
                passed_packets: self.passed_packets,
            });
        });
    }
}

impl<P: Packet> Cell<P> for Reorder<P> {
    fn push(&mut self, now_ns: u64, packet: P) {
        self.return_late(now_ns);
        self.counters.arrived.add(packet.wire());
        let mut rest = Some(packet);
        while let Some(packet) = rest.take() {
            let stretch = self.picker.next(packet.wire().segments, &mut self.random);
            let (front, behind) = split(packet, stretch.segments);
            match stretch.chosen {
                true => {
                    self.put_aside(now_ns, front);
                    // At once, if the limit is 0.
                    self.return_late(now_ns);
                }
                false => self.pass(now_ns, front),
            }
            rest = behind;
        }
    }

    fn next_due_ns(&self) -> Option<u64> {
        self.passed.next_due_ns().or_else(|| self.hold_ends_ns())
    }

    fn pop(&mut self, now_ns: u64) -> Option<Departure<P>> {
        self.return_late(now_ns);
        let departure = self.passed.pop(now_ns)?;
        self.counters.left.add(departure.packet.wire());
        Some(departure)
    }

    fn counters(&self) -> Counters {
        self.counters
    }

    fn held(&self) -> Count {
        let mut held = self.passed.held();
        held += Count::of(self.aside.iter().map(|aside| &aside.segment));
        held
    }

    /// The displaced ones wait for the new number of packets, or to the end of the new limit; those
    /// that waited long enough leave now.
    fn change(&mut self, now_ns: u64, spec: &CellSpec) -> bool {
        let CellSpec::Reorder(spec) = spec else {
            return false;
        };
        self.return_late(now_ns);
        self.spec = *spec;
        self.picker.change(spec.probability, &mut self.random);
        self.return_overtaken(now_ns);
        while self.hold_ends_ns().is_some_and(|due_ns| due_ns < now_ns) {
            self.return_first(now_ns);
        }
        true
    }
}

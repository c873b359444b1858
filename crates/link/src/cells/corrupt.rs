// SPDX-License-Identifier: MIT OR Apache-2.0
//! Corruption: a bit of a segment is flipped, so that its receiver drops it. The cell itself drops
//! nothing: what it damages takes its time and its place like any other segment.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::cells::at_once::{Effect, Outcome};
use crate::cells::percent;
use crate::packet::each_segment;
use crate::random::{Picker, Random};
use crate::{CellSpec, Packet, SpecError};

/// Corruption.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CorruptSpec {
    /// Of each segment, that one of its transport bits is flipped; 0 to 1.
    pub probability: f64,
}

impl CorruptSpec {
    pub(crate) fn check(&self) -> Result<(), SpecError> {
        SpecError::unless_probability("corruption", self.probability)
    }
}

impl fmt::Display for CorruptSpec {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "corrupt {}", percent(self.probability))
    }
}

/// The effect of a [`CorruptSpec`].
#[derive(Debug)]
pub(crate) struct Corrupt {
    picker: Picker,
    random: Random,
    /// Which bit is flipped. A stream of its own, so that how many segments are chosen in a row does
    /// not tell in it.
    bits: Random,
}

impl Corrupt {
    pub(crate) fn new(spec: CorruptSpec, mut random: Random) -> Corrupt {
        Corrupt {
            picker: Picker::new(spec.probability, &mut random),
            bits: random.fork(),
            random,
        }
    }
}

impl<P: Packet> Effect<P> for Corrupt {
    fn meet(&mut self, now_ns: u64, packet: P, out: &mut Outcome<P>) {
        let Corrupt {
            picker,
            random,
            bits,
        } = self;
        let next = |packet: &P| picker.next(packet.wire().segments, random);
        out.sift(now_ns, packet, next, |chosen, out| {
            each_segment(chosen, |mut segment| {
                segment.corrupt(bits.bits());
                out.counters.corrupted.add(segment.wire());
                out.pass(now_ns, segment);
            });
        });
    }

    fn change(&mut self, spec: &CellSpec) -> bool {
        let CellSpec::Corrupt(spec) = spec else {
            return false;
        };
        self.picker.change(spec.probability, &mut self.random);
        true
    }
}

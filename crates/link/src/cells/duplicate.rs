// SPDX-License-Identifier: MIT OR Apache-2.0
//! Duplication: a segment comes twice, one right behind the other.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::cells::at_once::{Effect, Outcome};
use crate::cells::percent;
use crate::packet::each_segment;
use crate::random::{Picker, Random};
use crate::{CellSpec, Packet, SpecError};

/// Duplication.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DuplicateSpec {
    /// Of each segment, that it comes twice in a row; 0 to 1.
    pub probability: f64,
}

impl DuplicateSpec {
    pub(crate) fn check(&self) -> Result<(), SpecError> {
        SpecError::unless_probability("duplication", self.probability)
    }
}

impl fmt::Display for DuplicateSpec {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "duplicate {}", percent(self.probability))
    }
}

/// The effect of a [`DuplicateSpec`].
#[derive(Debug)]
pub(crate) struct Duplicate {
    picker: Picker,
    random: Random,
}

impl Duplicate {
    pub(crate) fn new(spec: DuplicateSpec, mut random: Random) -> Duplicate {
        Duplicate {
            picker: Picker::new(spec.probability, &mut random),
            random,
        }
    }
}

impl<P: Packet> Effect<P> for Duplicate {
    fn meet(&mut self, now_ns: u64, packet: P, out: &mut Outcome<P>) {
        let Duplicate { picker, random } = self;
        let next = |packet: &P| picker.next(packet.wire().segments, random);
        out.sift(now_ns, packet, next, |chosen, out| {
            each_segment(chosen, |segment| twice(now_ns, segment, out));
        });
    }

    fn change(&mut self, spec: &CellSpec) -> bool {
        let CellSpec::Duplicate(spec) = spec else {
            return false;
        };
        self.picker.change(spec.probability, &mut self.random);
        true
    }
}

fn twice<P: Packet>(now_ns: u64, segment: P, out: &mut Outcome<P>) {
    let again = segment.duplicate();
    out.counters.duplicated.add(again.wire());
    out.pass(now_ns, segment);
    out.pass(now_ns, again);
}

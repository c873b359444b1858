// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loss of one segment in every so many.

use crate::SpecError;
use crate::random::Stretch;

#[derive(Debug)]
pub(super) struct Periodic {
    every: u64,
    /// Segments before the next loss.
    spared: u64,
}

pub(super) fn check(every: u64, first: u64) -> Result<(), SpecError> {
    let refuse = |message: String| Err(SpecError::Other(message));
    match (every, first) {
        (0, _) => refuse("loss of one packet in every 0: give a period of at least 1".to_owned()),
        (every, first) if !(1..=every).contains(&first) => refuse(format!(
            "first loss at packet {first}: give 1 to the period, {every}"
        )),
        _ => Ok(()),
    }
}

impl Periodic {
    pub(super) fn new(every: u64, first: u64) -> Periodic {
        Periodic {
            every,
            spared: first - 1,
        }
    }

    pub(super) fn next(&mut self, limit: u32) -> Stretch {
        let run = if self.every == 1 { u64::MAX } else { 1 };
        let stretch = Stretch::before(self.spared, run, limit);
        self.spared = match stretch.chosen {
            true => self.every - 1,
            false => self.spared - u64::from(stretch.segments),
        };
        stretch
    }
}

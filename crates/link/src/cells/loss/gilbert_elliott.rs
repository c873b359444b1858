// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loss in bursts: a chain of two states with a probability of loss each (Gilbert 1960, Elliott 1963).
//!
//! How long the chain stays in a state is drawn when it enters, not step by step: stays are geometric.

use crate::random::{Picker, Random, Stretch};

const GOOD: usize = 0;
const BAD: usize = 1;

#[derive(Debug)]
pub(super) struct GilbertElliott {
    /// Of a step out of the good state, and of the bad one.
    leave: [f64; 2],
    /// Of loss in the good state, and in the bad one.
    loss: [f64; 2],
    state: usize,
    /// Segments that will still meet this state, at least 1.
    stay: u64,
    picker: Picker,
}

impl GilbertElliott {
    pub(super) fn new(leave: [f64; 2], loss: [f64; 2], random: &mut Random) -> GilbertElliott {
        GilbertElliott {
            leave,
            loss,
            state: GOOD,
            stay: stay(leave[GOOD], random),
            picker: Picker::new(loss[GOOD], random),
        }
    }

    pub(super) fn next(&mut self, limit: u32, random: &mut Random) -> Stretch {
        let limit = u64::from(limit).min(self.stay) as u32;
        let stretch = self.picker.next(limit, random);
        self.stay -= u64::from(stretch.segments);
        if self.stay == 0 {
            self.enter(GOOD + BAD - self.state, random);
        }
        stretch
    }

    fn enter(&mut self, state: usize, random: &mut Random) {
        self.state = state;
        self.stay = stay(self.leave[state], random);
        self.picker = Picker::new(self.loss[state], random);
    }
}

/// How many segments meet a state: one more than the steps that fail to leave it.
fn stay(leave: f64, random: &mut Random) -> u64 {
    random.failures(leave).saturating_add(1)
}

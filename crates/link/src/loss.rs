// SPDX-License-Identifier: MIT OR Apache-2.0
//! Independent loss: each segment is lost with the same probability, whatever befell the others.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

use crate::departures::Departures;
use crate::{Cell, CellSpec, Count, Counters, Departure, DropCause, Packet};

/// Which segments get lost. Segments count from 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LossSpec {
    /// Each with the same probability, whatever befell the others.
    Independent {
        /// 0 to 1.
        probability: f64,
    },
    /// In bursts: a chain of two states, which steps at every segment (Gilbert 1960, Elliott 1963).
    GilbertElliott {
        /// Probability of a step from good to bad.
        to_bad: f64,
        /// Probability of a step from bad to good.
        to_good: f64,
        /// Probability of loss in the good state; 0 in Gilbert's model.
        loss_in_good: f64,
        /// Probability of loss in the bad state; 1 in the simplest model.
        loss_in_bad: f64,
    },
    /// Exactly these data segments of a flow, as they come (sent again, they count again).
    Packets {
        /// Which flow, counted from 1 in the order of their first data segments; `None`: of every flow.
        flow: Option<u32>,
        /// Numbers of data segments, rising.
        packets: Vec<u64>,
    },
    /// Every so many segments, one.
    Periodic {
        /// The period, at least 1.
        every: u64,
        /// The first that is lost, 1 to `every`.
        first: u64,
    },
    /// With a probability, but only during these times.
    Windows {
        /// The windows, in order, not overlapping.
        windows: Vec<LossWindow>,
    },
}

/// A time in which segments get lost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LossWindow {
    /// Since the chain was made.
    pub from_ns: u64,
    /// Likewise; not in the window any more.
    pub until_ns: u64,
    /// 0 to 1.
    pub probability: f64,
}

/// Loses each segment with a fixed probability. Takes no time and keeps order.
#[derive(Debug)]
pub struct Loss<P> {
    gaps: Gaps,
    /// Segments that will pass before the next one is lost.
    spared: u64,
    survivors: Departures<P>,
    counters: Counters,
}

impl<P: Packet> Loss<P> {
    /// Loses segments with `probability` (0 to 1). Equal seeds lose equal segments.
    pub fn new(probability: f64, seed: u64) -> Self {
        let mut gaps = Gaps::new(probability, seed);
        let spared = gaps.draw();
        Loss {
            gaps,
            spared,
            survivors: Departures::new(),
            counters: Counters::default(),
        }
    }

    fn lose(&mut self, packet: P) {
        self.counters.drop(DropCause::Loss, packet.wire());
        self.spared = self.gaps.draw();
    }

    /// Passes the segments before the next lost one, loses that one, and returns what follows it.
    fn pass_until_lost(&mut self, now_ns: u64, mut packet: P) -> Option<P> {
        if self.spared > 0 {
            // Fits: `spared` is less than the packet's segments, a u32.
            let front = packet.split_front(self.spared as u32);
            self.survivors.push(now_ns, front);
        }
        if packet.wire().segments == 1 {
            self.lose(packet);
            return None;
        }
        let lost = packet.split_front(1);
        self.lose(lost);
        Some(packet)
    }
}

impl<P: Packet> Cell<P> for Loss<P> {
    fn push(&mut self, now_ns: u64, mut packet: P) {
        self.counters.arrived.add(packet.wire());
        while self.spared < u64::from(packet.wire().segments) {
            match self.pass_until_lost(now_ns, packet) {
                Some(rest) => packet = rest,
                None => return,
            }
        }
        self.spared -= u64::from(packet.wire().segments);
        self.survivors.push(now_ns, packet);
    }

    fn next_due_ns(&self) -> Option<u64> {
        self.survivors.next_due_ns()
    }

    fn pop(&mut self, now_ns: u64) -> Option<Departure<P>> {
        let departure = self.survivors.pop(now_ns)?;
        self.counters.left.add(departure.packet.wire());
        Some(departure)
    }

    fn counters(&self) -> Counters {
        self.counters
    }

    fn held(&self) -> Count {
        self.survivors.held()
    }

    fn change(&mut self, _now_ns: u64, _spec: &CellSpec) -> bool {
        false
    }
}

/// Draws the lengths of the runs of survivors between two losses.
///
/// They are geometric, so one draw a loss does what one draw a segment would: a super-packet that
/// loses nothing costs one comparison.
#[derive(Debug)]
struct Gaps {
    /// ln(1 − p): 0 when nothing is lost, −∞ when everything is.
    ln_survival: f64,
    random: Xoshiro256PlusPlus,
}

impl Gaps {
    fn new(probability: f64, seed: u64) -> Self {
        Gaps {
            ln_survival: (-probability).ln_1p(),
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
        }
    }

    /// Inversion: floor(ln U / ln(1 − p)) with U uniform in (0, 1].
    fn draw(&mut self) -> u64 {
        if self.ln_survival == 0.0 {
            return u64::MAX;
        }
        let uniform = ((self.random.next_u64() >> 11) + 1) as f64 * 2f64.powi(-53);
        // The cast saturates; 0 / −∞ is −0, which becomes 0.
        (uniform.ln() / self.ln_survival) as u64
    }
}

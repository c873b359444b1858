// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random early detection: an averaged depth, and the verdict on each segment that arrives.
//!
//! Sally Floyd, Van Jacobson, "Random Early Detection Gateways for Congestion Avoidance", IEEE/ACM
//! Transactions on Networking 1(4), 1993. Names in quotes are those of its figure 2.

use crate::random::Random;
use crate::{Discipline, Ecn};

/// The "typical" packet, whose sending times count how long the queue was empty: what `tc red` advises
/// (`avpkt`) for links with an MTU of 1500.
const TYPICAL_BYTES: f64 = 1000.0;

#[derive(Clone, Debug)]
pub(crate) struct Red {
    parameters: Parameters,
    /// "avg", in bytes.
    average_bytes: f64,
    /// "count": segments since the last drop or mark, while the average is between the thresholds.
    since_last: Option<u64>,
    random: Random,
}

#[derive(Clone, Copy, Debug, Default)]
struct Parameters {
    min_bytes: f64,
    max_bytes: f64,
    max_probability: f64,
    weight: f64,
    ecn: bool,
}

/// What the average says of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Pass,
    /// Dropped, or marked if it may be.
    Early,
    /// Dropped: the average is beyond the maximum.
    Forced,
}

impl Red {
    /// The state of a [`Discipline::Red`] that has seen nothing.
    pub(crate) fn new(discipline: Discipline, random: Random) -> Red {
        Red {
            parameters: Parameters::of(discipline),
            average_bytes: 0.0,
            since_last: None,
            random,
        }
    }

    pub(crate) fn change(&mut self, discipline: Discipline) {
        self.parameters = Parameters::of(discipline);
    }

    /// Whether a segment is marked where another would be dropped early. One that is marked already
    /// passes.
    pub(crate) fn marks(&self, ecn: Ecn) -> bool {
        self.parameters.ecn && ecn != Ecn::NotCapable
    }

    /// The verdict on a segment that arrives at a depth of `depth_bytes`; at 0, the server could have
    /// sent `idle_bytes` since the queue became empty.
    pub(crate) fn arrive(&mut self, depth_bytes: u64, idle_bytes: u64) -> Verdict {
        self.update_average(depth_bytes, idle_bytes);
        let Parameters {
            min_bytes,
            max_bytes,
            ..
        } = self.parameters;
        if self.average_bytes < min_bytes {
            self.since_last = None;
            return Verdict::Pass;
        }
        if self.average_bytes >= max_bytes {
            self.since_last = Some(0);
            return Verdict::Forced;
        }
        let since_last = self.since_last.map_or(0, |since_last| since_last + 1);
        let early = self.random.unit() <= self.probability(since_last);
        self.since_last = Some(if early { 0 } else { since_last });
        match early {
            true => Verdict::Early,
            false => Verdict::Pass,
        }
    }

    /// Section 4, equation 1, and 5 for the time without packets.
    fn update_average(&mut self, depth_bytes: u64, idle_bytes: u64) {
        let weight = self.parameters.weight;
        match depth_bytes {
            0 => self.average_bytes *= (1.0 - weight).powf(idle_bytes as f64 / TYPICAL_BYTES),
            _ => self.average_bytes += weight * (depth_bytes as f64 - self.average_bytes),
        }
    }

    /// "pa": spread so that the gaps between drops are even (section 7, method 2).
    fn probability(&self, since_last: u64) -> f64 {
        let Parameters {
            min_bytes,
            max_bytes,
            max_probability,
            ..
        } = self.parameters;
        let share = (self.average_bytes - min_bytes) / (max_bytes - min_bytes);
        let basic = max_probability * share;
        let left = 1.0 - since_last as f64 * basic;
        if basic < left { basic / left } else { 1.0 }
    }
}

impl Parameters {
    fn of(discipline: Discipline) -> Parameters {
        match discipline {
            Discipline::Red {
                min_bytes,
                max_bytes,
                max_probability,
                weight,
                ecn,
            } => Parameters {
                min_bytes: min_bytes as f64,
                max_bytes: max_bytes as f64,
                max_probability,
                weight,
                ecn,
            },
            _ => Parameters::default(),
        }
    }
}

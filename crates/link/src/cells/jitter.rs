// SPDX-License-Identifier: MIT OR Apache-2.0
//! Jitter: what varies in a delay from segment to segment, and how it is drawn.

use serde::{Deserialize, Serialize};

use crate::random::Random;
use crate::{ChainSpec, SpecError};

/// What a delay adds to its constant part, drawn anew for each segment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct JitterSpec {
    /// How it is drawn. The sum is brought within 0 and [`ChainSpec::MAX_DELAY_NS`].
    pub distribution: Distribution,
    /// Whether a segment may overtake those sent before it; if not, it leaves with the one before.
    pub reorders: bool,
}

/// How a jitter is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// Evenly from −half_width to +half_width.
    Uniform {
        /// Half the width.
        half_width_ns: u64,
    },
    /// Normal with mean 0.
    Normal {
        /// Standard deviation.
        std_dev_ns: u64,
    },
    /// Exponential: never negative, long tail.
    Exponential {
        /// Mean.
        mean_ns: u64,
    },
    /// Pareto (Lomax form, from 0): never negative, very long tail, as queues of real paths give.
    Pareto {
        /// Mean.
        mean_ns: u64,
        /// Shape α > 1; the smaller, the longer the tail.
        shape: f64,
    },
}

impl JitterSpec {
    pub(crate) fn check(&self) -> Result<(), SpecError> {
        match self.distribution {
            Distribution::Uniform {
                half_width_ns: width_ns,
            }
            | Distribution::Normal {
                std_dev_ns: width_ns,
            }
            | Distribution::Exponential { mean_ns: width_ns } => SpecError::unless_delay(width_ns),
            Distribution::Pareto { mean_ns, shape } => {
                SpecError::unless_delay(mean_ns)?;
                match shape > 1.0 && shape.is_finite() {
                    true => Ok(()),
                    false => Err(SpecError::Other(format!(
                        "Pareto shape of {shape}: give more than 1, or there is no mean"
                    ))),
                }
            }
        }
    }
}

impl Distribution {
    /// `delay_ns` and a jitter.
    pub(crate) fn draw(&self, delay_ns: u64, random: &mut Random) -> u64 {
        // Below 2^53, so that no nanosecond is lost, but for draws beyond any delay allowed.
        let sum_ns = delay_ns as f64 + self.jitter_ns(random).round();
        (sum_ns as u64).min(ChainSpec::MAX_DELAY_NS)
    }

    fn jitter_ns(&self, random: &mut Random) -> f64 {
        match *self {
            Distribution::Uniform { half_width_ns } => {
                (2.0 * random.unit() - 1.0) * half_width_ns as f64
            }
            Distribution::Normal { std_dev_ns } => normal(random) * std_dev_ns as f64,
            Distribution::Exponential { mean_ns } => -random.unit().ln() * mean_ns as f64,
            Distribution::Pareto { mean_ns, shape } => {
                let scale_ns = mean_ns as f64 * (shape - 1.0);
                scale_ns * (random.unit().powf(-1.0 / shape) - 1.0)
            }
        }
    }
}

/// Mean 0, standard deviation 1 (Box and Muller 1958; the second of the pair is not used, so that
/// each draw takes as many numbers).
fn normal(random: &mut Random) -> f64 {
    let radius = (-2.0 * random.unit().ln()).sqrt();
    radius * (std::f64::consts::TAU * random.unit()).cos()
}

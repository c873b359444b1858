// SPDX-License-Identifier: MIT OR Apache-2.0
//! Jitter: what varies in a delay from segment to segment.

use serde::{Deserialize, Serialize};

/// What a delay adds to its constant part, drawn anew for each segment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JitterSpec {
    /// How it is drawn. The sum is never below 0.
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

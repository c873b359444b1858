// SPDX-License-Identifier: MIT OR Apache-2.0
//! How fast a bottleneck serves.

use serde::{Deserialize, Serialize};

/// How fast a bottleneck serves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Service {
    /// At once; no queue builds.
    Unlimited,
    /// At one rate, within [`RateClock::RANGE_BPS`].
    Constant {
        /// Bits per second.
        rate_bps: u64,
    },
    /// At rates that change at given times.
    Steps {
        /// The steps, the first at 0, times rising; a rate of 0 is an outage.
        steps: Vec<RateStep>,
        /// When the steps begin anew, after the last one; `None`: the last rate stays.
        repeat_after_ns: Option<u64>,
    },
    /// By delivery opportunities, as mahimahi's traces list them: at each, 1504 bytes may leave, and
    /// what is not used is lost.
    Opportunities {
        /// Milliseconds since the beginning, not falling, the last at least 1; the list then repeats.
        at_ms: Vec<u64>,
    },
}

/// A rate from some time on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateStep {
    /// Since the chain was made.
    pub at_ns: u64,
    /// Bits per second; 0: nothing leaves.
    pub rate_bps: u64,
}

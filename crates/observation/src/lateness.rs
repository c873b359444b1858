// SPDX-License-Identifier: MIT OR Apache-2.0
//! How late a forwarder was with packets.
//!
//! Pure, plain values. Start with [`Lateness`].

use serde::{Deserialize, Serialize};

/// How late packets were (super-packets count once).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lateness {
    /// Packets.
    pub count: u64,
    /// Half of them were no later, in µs. Like the other quantiles, at most 1 % too high.
    pub p50_us: f64,
    /// 90 % of them were no later.
    pub p90_us: f64,
    /// 99 % of them were no later.
    pub p99_us: f64,
    /// None was later.
    pub max_us: f64,
    /// How many were how late: up to 1 µs, and from there to twice as much each time.
    pub histogram: Vec<LatenessBucket>,
}

/// One bar of a histogram; it begins where the one before ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatenessBucket {
    /// Up to and with this lateness.
    pub up_to_us: f64,
    /// Packets.
    pub count: u64,
}

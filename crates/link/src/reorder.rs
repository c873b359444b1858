// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reordering by displacement.

use serde::{Deserialize, Serialize};

/// Reordering by displacement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReorderSpec {
    /// Of each segment, that it is displaced; 0 to 1.
    pub probability: f64,
    /// How many later segments pass before it; at least 1.
    pub displacement_packets: u32,
    /// When fewer than that follow, it leaves after this time.
    pub hold_limit_ns: u64,
}

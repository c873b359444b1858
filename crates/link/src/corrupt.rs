// SPDX-License-Identifier: MIT OR Apache-2.0
//! Corruption.

use serde::{Deserialize, Serialize};

/// Corruption.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CorruptSpec {
    /// Of each segment, that one of its transport bits is flipped; 0 to 1.
    pub probability: f64,
}

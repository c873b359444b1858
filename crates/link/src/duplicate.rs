// SPDX-License-Identifier: MIT OR Apache-2.0
//! Duplication.

use serde::{Deserialize, Serialize};

/// Duplication.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DuplicateSpec {
    /// Of each segment, that it comes twice in a row; 0 to 1.
    pub probability: f64,
}

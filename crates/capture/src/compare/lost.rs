// SPDX-License-Identifier: MIT OR Apache-2.0
//! What did not arrive.

use serde::Serialize;

/// Data that passed the capture near its sender only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Lost {
    /// When, by that capture's clock, since 1970.
    pub time_ns: i64,
    /// First byte, from the first data that was captured.
    pub offset_bytes: i64,
    /// How many.
    pub bytes: u64,
    /// Whether they had been sent before.
    pub is_retransmission: bool,
}

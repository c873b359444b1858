// SPDX-License-Identifier: MIT OR Apache-2.0
//! The MTU of a path.

use serde::{Deserialize, Serialize};

/// The least MTU of the path beyond this point.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MtuSpec {
    /// Longest IP packet that passes, 68 to 65535. Longer ones are dropped, whether they may be
    /// fragmented or not, and their sender is told (RFC 1191, RFC 8201).
    pub mtu_bytes: u32,
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What one system does with sockets and threads by calls that others do not have. `linux.rs` and `other.rs` have the same
//! functions; the other systems are compiled by `make lint`, and no test runs there.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod marked;
#[cfg(target_os = "linux")]
mod option;
#[cfg(not(target_os = "linux"))]
mod other;

use crate::waits::Chronograph;
#[cfg(target_os = "linux")]
pub use linux::*;
#[cfg(not(target_os = "linux"))]
pub use other::*;
use std::time::Duration;

/// How a TCP connection stands, as its kernel says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionFigures {
    /// The smoothed round-trip time.
    pub srtt: Duration,
    /// Timeouts in a row without an acknowledgement.
    pub timeouts: u8,
    /// Segments that have left.
    pub sent_pkts: u64,
    /// Those of them that left again.
    pub retransmits: u64,
    /// Where its time went.
    pub chronograph: Chronograph,
    /// It is paced at the rate that it may have at most.
    pub is_paced_to_limit: bool,
}

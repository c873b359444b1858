// SPDX-License-Identifier: MIT OR Apache-2.0
//! Samples are dated by CLOCK_MONOTONIC, which nobody sets; people and archives want the date.

use fatpath_kernel::monotonic_ns;
use rustix::time::{ClockId, clock_gettime};
use std::sync::OnceLock;

/// Nanoseconds since 1970 of a moment of CLOCK_MONOTONIC, by what the host's clock says now.
pub(crate) fn unix_ns(monotonic: u64) -> u64 {
    let past = monotonic_ns().saturating_sub(monotonic);
    let now = clock_gettime(ClockId::Realtime);
    let now_ns = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
    now_ns.saturating_sub(past)
}

/// The same, by what the host's clock said when this was first asked: a moment that is told again and again stays
/// what it was when the clock is set.
pub(crate) fn steady_unix_ns(monotonic: u64) -> u64 {
    static ZERO_NS: OnceLock<u64> = OnceLock::new();
    ZERO_NS.get_or_init(|| unix_ns(0)).saturating_add(monotonic)
}

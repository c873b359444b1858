// SPDX-License-Identifier: MIT OR Apache-2.0
//! The clock by which the kernel half dates.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of `bpf_ktime_get_ns()`: CLOCK_MONOTONIC, which nobody sets.
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The clock by which the kernel half dates.

#![allow(unsafe_code)] // adjtimex(2)

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of `bpf_ktime_get_ns()`: CLOCK_MONOTONIC, which nobody sets.
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Whether something keeps the host's clock synchronised, as the kernel was told (adjtimex(2)).
///
/// # Errors
/// When the kernel does not say.
pub fn clock_is_synchronised() -> std::io::Result<bool> {
    // SAFETY: all zero is a value of this plain structure; `modes` of 0 asks, and changes nothing.
    let mut state: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the structure lives during the call.
    match unsafe { libc::adjtimex(&raw mut state) } {
        -1 => Err(std::io::Error::last_os_error()),
        _ => Ok(state.status & libc::STA_UNSYNC == 0),
    }
}

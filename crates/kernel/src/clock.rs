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
    clock_error().map(|error| error.is_some())
}

/// By how much the host's clock may be wrong, as whoever keeps it synchronised told the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockError {
    /// By no more than this: `maxerror`.
    pub most_us: u64,
    /// What is thought: `esterror`.
    pub estimated_us: u64,
}

/// `None`: nothing keeps it synchronised.
///
/// # Errors
/// When the kernel does not say.
pub fn clock_error() -> std::io::Result<Option<ClockError>> {
    // SAFETY: all zero is a value of this plain structure; `modes` of 0 asks, and changes nothing.
    let mut state: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the structure lives during the call.
    if unsafe { libc::adjtimex(&raw mut state) } == -1 {
        return Err(std::io::Error::last_os_error());
    }
    let us = |error: libc::c_long| u64::try_from(error).unwrap_or_default();
    let is_synchronised = state.status & libc::STA_UNSYNC == 0;
    Ok(is_synchronised.then(|| ClockError {
        most_us: us(state.maxerror),
        estimated_us: us(state.esterror),
    }))
}

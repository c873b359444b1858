// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's clocks: the one by which the kernel half dates, the one that people read, and how wrong that may be.

use rustix::time::{ClockId, clock_gettime};
use std::sync::OnceLock;

/// Nanoseconds of `bpf_ktime_get_ns()`: CLOCK_MONOTONIC, which nobody sets.
pub fn monotonic_ns() -> u64 {
    ns_of(ClockId::Monotonic)
}

/// Nanoseconds since 1970 of a moment of CLOCK_MONOTONIC, by what the host's clock says now.
pub fn unix_ns(monotonic: u64) -> u64 {
    let past = monotonic_ns().saturating_sub(monotonic);
    ns_of(ClockId::Realtime).saturating_sub(past)
}

/// The same, by what the host's clock said when this was first asked: a moment that is told again and again stays
/// what it was when the clock is set.
pub fn steady_unix_ns(monotonic: u64) -> u64 {
    static ZERO_NS: OnceLock<u64> = OnceLock::new();
    ZERO_NS.get_or_init(|| unix_ns(0)).saturating_add(monotonic)
}

/// Microseconds since 1970.
pub fn now_us() -> i64 {
    (ns_of(ClockId::Realtime) / 1000) as i64
}

fn ns_of(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    // A clock that was set to a time before 1970.
    u64::try_from(now.tv_sec).map_or(0, |s| s * 1_000_000_000 + now.tv_nsec as u64)
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
#[allow(unsafe_code)] // adjtimex(2)
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{SystemTime, UNIX_EPOCH};

    #[test]
    fn a_moment_has_the_date_of_the_hosts_clock() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let dated = unix_ns(monotonic_ns());
        assert!(dated.abs_diff(now.as_nanos() as u64) < 1_000_000_000);
        assert!((dated / 1000).abs_diff(now_us() as u64) < 1_000_000);
        let second_ago = monotonic_ns() - 1_000_000_000;
        assert!(unix_ns(second_ago) < dated);
        assert_eq!(steady_unix_ns(5), steady_unix_ns(0) + 5);
        assert!(unix_ns(u64::MAX) >= dated, "a moment to come is now");
    }
}

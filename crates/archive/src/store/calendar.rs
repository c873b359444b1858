// SPDX-License-Identifier: MIT OR Apache-2.0
//! Days (UTC), by which stores are divided.

use std::time::{Duration, UNIX_EPOCH};

pub(super) const DAY_US: i64 = 86_400_000_000;

/// The last second that has a date of four digits for its year.
const LAST_S: u64 = 253_402_300_799;

/// `2026-11-23`. A time that has no such date counts as the first or the last day that has one.
pub(super) fn day_of(time_us: i64) -> String {
    let seconds = u64::try_from(time_us / 1_000_000).unwrap_or_default();
    let time = UNIX_EPOCH + Duration::from_secs(seconds.min(LAST_S));
    let mut date = humantime::format_rfc3339_seconds(time).to_string();
    date.truncate("2026-11-23".len());
    date
}

/// Its first moment; none of a name that is no day.
pub(super) fn begin_of(day: &str) -> Option<std::time::SystemTime> {
    humantime::parse_rfc3339(&format!("{day}T00:00:00Z")).ok()
}

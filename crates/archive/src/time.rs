// SPDX-License-Identifier: MIT OR Apache-2.0
//! How times are shown.

use std::time::{Duration, UNIX_EPOCH};

/// The last second of the year 9999.
const LAST_US: u64 = 253_402_300_799_000_000;

/// RFC 3339 in UTC, to the millisecond, of µs since 1970. A time that has no such date is shown as 1970.
pub fn rfc3339(time_us: i64) -> String {
    let us = u64::try_from(time_us).unwrap_or_default().min(LAST_US);
    humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_micros(us)).to_string()
}

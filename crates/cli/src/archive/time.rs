// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times as the command line gives and prints them.

pub use fatpath_archive::rfc3339 as shown;
pub use fatpath_clock::now_us;
use std::time::{SystemTime, UNIX_EPOCH};

/// A date (UTC), or how long ago: µs since 1970.
pub fn time_us(text: &str) -> Result<i64, String> {
    let date = humantime::parse_rfc3339_weak(text)
        .or_else(|_| humantime::parse_rfc3339(&format!("{text}T00:00:00Z")));
    let time = date.ok().or_else(|| {
        let ago = humantime::parse_duration(text).ok()?;
        SystemTime::now().checked_sub(ago)
    });
    let since = time.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let us = since.and_then(|since| i64::try_from(since.as_micros()).ok());
    us.ok_or_else(|| {
        "give a date (2026-11-23, 2026-11-23T10:15:00Z) or how long ago (90m, 7d)".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_date_or_an_age() {
        assert_eq!(time_us("2026-11-23"), Ok(1_795_392_000_000_000));
        assert_eq!(time_us("2026-11-23T00:00:01Z"), Ok(1_795_392_001_000_000));
        assert_eq!(time_us("2026-11-23 00:00:01"), Ok(1_795_392_001_000_000));
        let ago_us = now_us() - time_us("2h").unwrap();
        assert!((7_140_000_000..7_260_000_000).contains(&ago_us), "{ago_us}");
        assert!(time_us("yesterday").is_err());
        assert_eq!(shown(1_795_392_001_500_000), "2026-11-23T00:00:01.500Z");
    }
}

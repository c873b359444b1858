// SPDX-License-Identifier: MIT OR Apache-2.0
//! The quantities of a scenario file: `"1gbit"`, `"50ms"`, `"12.5MB"`, `"1bdp"`, `"0.01%"`.
//!
//! Pure: text in, a number in base units out. Every function returns, as its error, the sentence
//! that says what is allowed; the caller adds the place. Start with [`rate_bps`].

use std::time::Duration;

/// What a queue's limit is given in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum QueueLimit {
    /// So many bytes on the wire.
    Bytes(u64),
    /// So many times rate × round trip.
    Bdp(f64),
}

const RATE: &str = "a rate from \"1kbit\" to \"1tbit\" (bit, kbit, mbit, gbit, tbit; decimal)";
const DELAY: &str = "a delay from \"0ms\" to \"60s\" (ns, us, ms, s)";
const TIME_LIMIT: &str = "a time from \"1s\" to \"24h\" (s, min, h)";
const QUEUE: &str = "bytes (\"12.5MB\", \"128KiB\") from 1500B to 16GB, or a multiple of rate x \
                     round trip (\"1bdp\", \"0.5bdp\")";
const SIZE: &str = "a size such as \"38B\", up to 1500B";
const SHARE: &str = "a share of the segments from \"0%\" to \"100%\"";

const RATE_UNITS: &[(&str, f64)] = &[
    ("bit", 1.0),
    ("kbit", 1e3),
    ("mbit", 1e6),
    ("gbit", 1e9),
    ("tbit", 1e12),
];
const TIME_UNITS_NS: &[(&str, f64)] = &[
    ("ns", 1.0),
    ("us", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("min", 60e9),
    ("h", 3600e9),
];
const SIZE_UNITS: &[(&str, f64)] = &[
    ("B", 1.0),
    ("kB", 1e3),
    ("KB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("KiB", 1024.0),
    ("MiB", 1048576.0),
    ("GiB", 1073741824.0),
];

/// Bits a second, 1 kb/s to 1 Tb/s.
pub(super) fn rate_bps(text: &str) -> Result<u64, &'static str> {
    within(quantity(text, RATE_UNITS), 1e3, 1e12).ok_or(RATE)
}

/// Nanoseconds, 0 to 60 s.
pub(super) fn delay_ns(text: &str) -> Result<u64, &'static str> {
    within(quantity(text, TIME_UNITS_NS), 0.0, 60e9).ok_or(DELAY)
}

/// How long a program may take, 1 s to 24 h.
pub(super) fn time_limit(text: &str) -> Result<Duration, &'static str> {
    let limit_ns = within(quantity(text, TIME_UNITS_NS), 1e9, 86400e9).ok_or(TIME_LIMIT)?;
    Ok(Duration::from_nanos(limit_ns))
}

/// A queue's limit; at least one segment of 1500 bytes fits.
pub(super) fn queue_limit(text: &str) -> Result<QueueLimit, &'static str> {
    if let Some(times) = quantity(text, &[("bdp", 1.0)]) {
        return if times > 0.0 && times <= 1e3 {
            Ok(QueueLimit::Bdp(times))
        } else {
            Err(QUEUE)
        };
    }
    within(quantity(text, SIZE_UNITS), 1500.0, 16e9)
        .map(QueueLimit::Bytes)
        .ok_or(QUEUE)
}

/// Bytes that the wire adds to every segment, 0 to 1500.
pub(super) fn overhead_bytes(text: &str) -> Result<u32, &'static str> {
    within(quantity(text, SIZE_UNITS), 0.0, 1500.0)
        .map(|bytes| bytes as u32)
        .ok_or(SIZE)
}

/// A probability, 0 to 1, written in per cent.
pub(super) fn share(text: &str) -> Result<f64, &'static str> {
    let percent = quantity(text, &[("%", 1.0)]).ok_or(SHARE)?;
    if percent <= 100.0 {
        Ok(percent / 100.0)
    } else {
        Err(SHARE)
    }
}

/// A number, not negative, followed by one of the units.
fn quantity(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(digits);
    let factor = units.iter().find(|(name, _)| *name == unit.trim_start())?.1;
    Some(number.parse::<f64>().ok()? * factor)
}

fn within(value: Option<f64>, least: f64, most: f64) -> Option<u64> {
    value
        .filter(|v| (least..=most).contains(v))
        .map(|v| v.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_in_base_units() {
        assert_eq!(rate_bps("1gbit"), Ok(1_000_000_000));
        assert_eq!(rate_bps("2.5 mbit"), Ok(2_500_000));
        assert_eq!(delay_ns("50ms"), Ok(50_000_000));
        assert_eq!(delay_ns("0s"), Ok(0));
        assert_eq!(time_limit("2min"), Ok(Duration::from_secs(120)));
        assert_eq!(queue_limit("12.5MB"), Ok(QueueLimit::Bytes(12_500_000)));
        assert_eq!(queue_limit("1.5bdp"), Ok(QueueLimit::Bdp(1.5)));
        assert_eq!(overhead_bytes("38B"), Ok(38));
        assert!((share("0.01%").unwrap() - 1e-4).abs() < 1e-18);
    }

    #[test]
    fn nonsense_is_refused_with_what_is_allowed() {
        for text in [
            "", "1", "gbit", "-1gbit", "1e9bit", "1Gbit", "2tbit", "1..2gbit", "999bit",
        ] {
            assert_eq!(rate_bps(text), Err(RATE), "{text}");
        }
        assert_eq!(delay_ns("61s"), Err(DELAY));
        assert_eq!(queue_limit("0bdp"), Err(QUEUE));
        assert_eq!(queue_limit("100B"), Err(QUEUE));
        assert_eq!(share("101%"), Err(SHARE));
        assert_eq!(share("0.01"), Err(SHARE));
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ranges of the quantities of a scenario file, on [`fatpath_units`].
//!
//! Pure: text in, a number in base units out. Every function returns, as its error, the sentence
//! that says what is allowed; the caller adds the place. Start with [`rate_bps`].

use std::time::Duration;

use fatpath_units::{Quantity, bytes, share as any_share, time_ns};

/// What a queue's limit is given in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum QueueLimit {
    /// So many bytes on the wire.
    Bytes(u64),
    /// So many times rate × round trip.
    Bdp(f64),
    /// So many segments.
    Packets(u64),
}

const RATE: &str = "a rate from \"1kbit\" to \"1tbit\" (bit, kbit, mbit, gbit, tbit; decimal)";
const SERVICE: &str = "a rate from \"1kbit\" to \"1tbit\" (bit, kbit, mbit, gbit, tbit; decimal), or \
                       \"unlimited\"";
const STEP_RATE: &str = "a rate from \"1kbit\" to \"1tbit\", or \"0bit\" for an outage";
const DELAY: &str = "a delay from \"0ms\" to \"60s\" (ns, us, ms, s)";
const MOMENT: &str = "a time from \"0s\" to \"24h\" (ns, us, ms, s, min, h)";
const PERIOD: &str = "a time from \"1ms\" to \"24h\" (us, ms, s, min, h)";
const TIME_LIMIT: &str = "a time from \"1s\" to \"24h\" (s, min, h)";
const LATENESS: &str = "a time from \"1us\" to \"60s\" (us, ms, s), or \"none\"";
const INTERVAL: &str = "a time from \"1us\" to \"1h\" (us, ms, s, min)";
const QUEUE: &str = "bytes (\"12.5MB\", \"128KiB\") from 1500B to 16GB, segments (\"1000pkts\") from 1 \
                     to 10000000, or a multiple of rate x round trip (\"1bdp\", \"0.5bdp\")";
const DEPTH: &str = "bytes (\"300kB\", \"64KiB\") up to 16GB, or a multiple of rate x round trip \
                     (\"0.2bdp\")";
const BYTES: &str = "bytes (\"300kB\", \"64KiB\") up to 16GB";
const DATA: &str = "bytes (\"10kB\", \"1GB\") from 1B to 1000TB";
const BUFFER: &str = "bytes (\"64KiB\", \"25MB\") from 4KiB to 1023MiB";
const SIZE: &str = "a size such as \"38B\", up to 1500B";
const SHARE: &str = "a share of the segments from \"0%\" to \"100%\"";

const MOST_BYTES: u64 = 16_000_000_000;
const DAY_NS: u64 = 86_400_000_000_000;

/// Bits a second, 1 kb/s to 1 Tb/s.
pub(super) fn rate_bps(text: &str) -> Result<u64, &'static str> {
    within(fatpath_units::rate_bps(text), 1_000, 1_000_000_000_000).ok_or(RATE)
}

/// Likewise; `None` for `unlimited`.
pub(super) fn service_bps(text: &str) -> Result<Option<u64>, &'static str> {
    match text {
        "unlimited" => Ok(None),
        text => rate_bps(text).map(Some).map_err(|_| SERVICE),
    }
}

/// Likewise; 0 for an outage.
pub(super) fn step_rate_bps(text: &str) -> Result<u64, &'static str> {
    match fatpath_units::rate_bps(text) {
        Some(0) => Ok(0),
        _ => rate_bps(text).map_err(|_| STEP_RATE),
    }
}

/// Nanoseconds, 0 to 60 s.
pub(super) fn delay_ns(text: &str) -> Result<u64, &'static str> {
    within(time_ns(text), 0, 60_000_000_000).ok_or(DELAY)
}

/// Nanoseconds, 0 to 24 h.
pub(super) fn moment_ns(text: &str) -> Result<u64, &'static str> {
    within(time_ns(text), 0, DAY_NS).ok_or(MOMENT)
}

/// Nanoseconds, 1 ms to 24 h.
pub(super) fn period_ns(text: &str) -> Result<u64, &'static str> {
    within(time_ns(text), 1_000_000, DAY_NS).ok_or(PERIOD)
}

/// How much before their time segments may leave, 1 us to 100 ms.
pub(super) fn pacing_quantum_ns(text: &str) -> Result<u64, &'static str> {
    within(time_ns(text), 1_000, 100_000_000).ok_or("a time from \"1us\" to \"100ms\" (us, ms)")
}

/// How long a program may take, 1 s to 24 h.
pub(super) fn time_limit(text: &str) -> Result<Duration, &'static str> {
    within(time_ns(text), 1_000_000_000, DAY_NS)
        .map(Duration::from_nanos)
        .ok_or(TIME_LIMIT)
}

/// Between samples, 1 us to 1 h.
pub(super) fn interval(text: &str) -> Result<Duration, &'static str> {
    within(time_ns(text), 1_000, 3_600_000_000_000)
        .map(Duration::from_nanos)
        .ok_or(INTERVAL)
}

/// Microseconds, 1 us to 60 s.
pub(super) fn lateness_us(text: &str) -> Result<u64, &'static str> {
    within(time_ns(text), 1_000, 60_000_000_000)
        .map(|limit_ns| limit_ns / 1_000)
        .ok_or(LATENESS)
}

/// A queue's limit; at least one segment of 1500 bytes fits.
pub(super) fn queue_limit(text: &str) -> Result<QueueLimit, &'static str> {
    if let Some(packets) = text.strip_suffix("pkts") {
        let packets = packets.trim_end().parse().ok();
        let packets = packets.filter(|packets| (1..=10_000_000).contains(packets));
        return packets.map(QueueLimit::Packets).ok_or(QUEUE);
    }
    match bdp(text) {
        Some(times) => Some(QueueLimit::Bdp(times)),
        None => within(bytes(text), 1_500, MOST_BYTES).map(QueueLimit::Bytes),
    }
    .ok_or(QUEUE)
}

/// A depth of a queue, in bytes or in bdp.
pub(super) fn depth(text: &str) -> Result<QueueLimit, &'static str> {
    match bdp(text) {
        Some(times) => Some(QueueLimit::Bdp(times)),
        None => within(bytes(text), 0, MOST_BYTES).map(QueueLimit::Bytes),
    }
    .ok_or(DEPTH)
}

fn bdp(text: &str) -> Option<f64> {
    let times = Quantity::split(text).filter(|times| times.unit == "bdp")?;
    Some(times.value()).filter(|times| (1e-6..=1e3).contains(times))
}

/// Bytes, 0 to 16 GB.
pub(super) fn depth_bytes(text: &str) -> Result<u64, &'static str> {
    within(bytes(text), 0, MOST_BYTES).ok_or(BYTES)
}

/// Bytes that a flow sends, 1 to 10^15.
pub(super) fn data_bytes(text: &str) -> Result<u64, &'static str> {
    within(bytes(text), 1, 1_000_000_000_000_000).ok_or(DATA)
}

/// Bytes of a socket's buffer, 4 KiB to 1023 MiB: twice that still fits the kernel's int.
pub(super) fn buffer_bytes(text: &str) -> Result<u64, &'static str> {
    within(bytes(text), 4 << 10, 1023 << 20).ok_or(BUFFER)
}

/// Bytes that the wire adds to every segment, 0 to 1500.
pub(super) fn overhead_bytes(text: &str) -> Result<u32, &'static str> {
    within(bytes(text), 0, 1_500)
        .map(|bytes| bytes as u32)
        .ok_or(SIZE)
}

/// A probability, 0 to 1, written in per cent.
pub(super) fn share(text: &str) -> Result<f64, &'static str> {
    any_share(text).filter(|share| *share <= 1.0).ok_or(SHARE)
}

fn within(value: Option<u128>, least: u64, most: u64) -> Option<u64> {
    let value = u64::try_from(value?).ok()?;
    (least..=most).contains(&value).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_in_base_units() {
        assert_eq!(rate_bps("1gbit"), Ok(1_000_000_000));
        assert_eq!(rate_bps("2.5 mbit"), Ok(2_500_000));
        assert_eq!(service_bps("unlimited"), Ok(None));
        assert_eq!(step_rate_bps("0bit"), Ok(0));
        assert_eq!(delay_ns("50ms"), Ok(50_000_000));
        assert_eq!(delay_ns("0s"), Ok(0));
        assert_eq!(time_limit("2min"), Ok(Duration::from_secs(120)));
        assert_eq!(lateness_us("1ms"), Ok(1_000));
        assert_eq!(queue_limit("12.5MB"), Ok(QueueLimit::Bytes(12_500_000)));
        assert_eq!(queue_limit("1.5bdp"), Ok(QueueLimit::Bdp(1.5)));
        assert_eq!(queue_limit("1000pkts"), Ok(QueueLimit::Packets(1_000)));
        assert_eq!(overhead_bytes("38B"), Ok(38));
        assert!((share("0.01%").unwrap() - 1e-4).abs() < 1e-18);
    }

    #[test]
    fn nonsense_is_refused_with_what_is_allowed() {
        for text in [
            "", "1", "gbit", "-1gbit", "1e9bit", "1gigabit", "2tbit", "1..2gbit", "999bit",
        ] {
            assert_eq!(rate_bps(text), Err(RATE), "{text}");
        }
        assert_eq!(step_rate_bps("1bit"), Err(STEP_RATE));
        assert_eq!(delay_ns("61s"), Err(DELAY));
        for text in ["0bdp", "100B", "0pkts", "1.5pkts", "-1pkts", "1001bdp"] {
            assert_eq!(queue_limit(text), Err(QUEUE), "{text}");
        }
        assert_eq!(share("101%"), Err(SHARE));
        assert_eq!(share("0.01"), Err(SHARE));
    }
}

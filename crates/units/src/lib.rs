// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers with units, from text and for people: bytes, rates, times, shares.
//!
//! Pure. Refuses units that can be read two ways: `K` (1000 or 1024?), `kb` (bits or bytes?), `mbps`
//! (which tc reads as megabytes). Bytes, rates and times are exact: none passes through a float. It knows no
//! ranges: whoever reads a key says what is allowed there. Start with [`Quantity::split`].

/// A decimal number in billionths.
const BILLION: u128 = 1_000_000_000;

/// A number, and the unit that follows it.
pub struct Quantity<'t> {
    /// The number, times 10^9.
    pub billionths: u128,
    /// What follows it, without the space between; may be empty.
    pub unit: &'t str,
}

impl<'t> Quantity<'t> {
    /// Splits `1.5MiB` into number and unit; a space between them is allowed.
    pub fn split(text: &'t str) -> Option<Self> {
        let text = text.trim();
        let end = text
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(text.len());
        let billionths = billionths(&text[..end])?;
        Some(Quantity {
            billionths,
            unit: text[end..].trim_start(),
        })
    }

    /// The number times a factor, its fraction cut off.
    pub fn times(&self, factor: u64) -> u128 {
        self.billionths.saturating_mul(factor.into()) / BILLION
    }

    /// The nearest float.
    pub fn value(&self) -> f64 {
        self.billionths as f64 / BILLION as f64
    }
}

/// A number without sign or exponent, at most 18 digits before the point and 9 after it.
fn billionths(text: &str) -> Option<u128> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str, most: usize| {
        !text.is_empty() && text.len() <= most && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    // `.3` is how the WAD's example writes a fraction.
    let whole = if whole.is_empty() && !text.is_empty() {
        "0"
    } else {
        whole
    };
    if !digits(whole, 18) || !digits(fraction, 9) {
        return None;
    }
    let whole: u128 = whole.parse().ok()?;
    let fraction: u128 = format!("{fraction:0<9}").parse().ok()?;
    Some(whole * BILLION + fraction)
}

/// A number in thousandths; `None` when it has more decimals than three.
pub fn thousandths(text: &str) -> Option<u128> {
    let billionths = billionths(text)?;
    (billionths % (BILLION / 1000) == 0).then_some(billionths / (BILLION / 1000))
}

/// Bytes of `25MB`, `32MiB`, `1.5kB`, `4096B`.
pub fn bytes(text: &str) -> Option<u128> {
    let quantity = Quantity::split(text)?;
    let factor = match quantity.unit {
        "B" => 1,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "KiB" | "kiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return None,
    };
    Some(quantity.times(factor))
}

/// Bits a second of `900mbit`, `1Gbit/s`, `2.5 Gb/s`.
pub fn rate_bps(text: &str) -> Option<u128> {
    let quantity = Quantity::split(text)?;
    let unit = quantity.unit.strip_suffix("/s").unwrap_or(quantity.unit);
    // `Mb` alone is too near to `MB`; `Mb/s` can only be a rate, and its small b a bit.
    let bit = if unit.len() < quantity.unit.len() {
        unit.strip_suffix('b')
    } else {
        None
    };
    let prefix = unit.strip_suffix("bit").or(bit)?;
    let factor = match prefix {
        "" => 1,
        "k" | "K" => 1_000,
        "m" | "M" => 1_000_000,
        "g" | "G" => 1_000_000_000,
        "t" | "T" => 1_000_000_000_000,
        _ => return None,
    };
    Some(quantity.times(factor))
}

/// What was probably meant by a rate in `bps`, which tc(8) takes for bytes: `500mbit` of `500mbps`.
pub fn meant_by_bps(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let rate = format!("{}bit", lower.strip_suffix("bps")?);
    rate_bps(&rate).map(|_| rate)
}

/// Microseconds of `100ms`, `20us`, `1.5s`.
pub fn time_us(text: &str) -> Option<u128> {
    let quantity = Quantity::split(text)?;
    let factor = match quantity.unit {
        "us" | "µs" => 1,
        "ms" => 1_000,
        "s" => 1_000_000,
        _ => return None,
    };
    Some(quantity.times(factor))
}

/// Nanoseconds of what [`time_us`] takes, and of `500ns`, `2min`, `1h`.
pub fn time_ns(text: &str) -> Option<u128> {
    let quantity = Quantity::split(text)?;
    let factor = match quantity.unit {
        "ns" => 1,
        "us" | "µs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "min" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    };
    Some(quantity.times(factor))
}

/// The share, 1 for `100%`; the per cent sign must be there.
pub fn share(text: &str) -> Option<f64> {
    let quantity = Quantity::split(text)?;
    let hundred_billionths = BILLION as f64 * 100.0;
    (quantity.unit == "%").then_some(quantity.billionths as f64 / hundred_billionths)
}

/// `12.5 MB`, or `32 MiB` where only the binary unit is round; at most three decimals.
pub fn show_bytes(bytes: u64) -> String {
    let decimal = [
        (1_000_000_000, "GB"),
        (1_000_000, "MB"),
        (1_000, "kB"),
        (1, "B"),
    ];
    match bytes.is_multiple_of(1024) && !bytes.is_multiple_of(1000) {
        true => show(
            bytes,
            &[(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")],
        ),
        false => show(bytes, &decimal),
    }
}

/// `1 Gb/s`, at most three decimals.
pub fn show_rate(bps: u64) -> String {
    let units = [
        (1_000_000_000_000, "Tb/s"),
        (1_000_000_000, "Gb/s"),
        (1_000_000, "Mb/s"),
        (1_000, "kb/s"),
        (1, "b/s"),
    ];
    show(bps, &units)
}

/// A count with its noun, in the plural where it is not one: `1 rule`, `2 rules`, `0 rules`.
pub fn show_count(count: impl TryInto<u64>, noun: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// `100 ms`, at most three decimals.
pub fn show_time(us: u64) -> String {
    show(us, &[(1_000_000, "s"), (1_000, "ms"), (1, "us")])
}

fn show(value: u64, units: &[(u64, &str)]) -> String {
    let (size, unit) = *units
        .iter()
        .find(|(size, _)| value >= *size)
        .unwrap_or(&units[units.len() - 1]);
    format!(
        "{} {unit}",
        (value as f64 / size as f64 * 1000.0).round() / 1000.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular() {
        let said = [0u64, 1, 2].map(|count| show_count(count, "rule"));
        assert_eq!(said, ["0 rules", "1 rule", "2 rules"]);
    }

    #[test]
    fn units_are_decimal_or_binary_as_written() {
        let texts = ["25MB", "32MiB", "1.5kB", "4 KiB", "0.001kB", "1GiB", ".5MB"];
        let values = [25_000_000, 33_554_432, 1500, 4096, 1, 1 << 30, 500_000];
        assert_eq!(texts.map(bytes), values.map(Some));
        let texts = ["900mbit", "1Gbit/s", "2.5 Gb/s", "8bit", "3kb/s", "1tbit"];
        let values = [
            900_000_000,
            1_000_000_000,
            2_500_000_000,
            8,
            3000,
            1_000_000_000_000,
        ];
        assert_eq!(texts.map(rate_bps), values.map(Some));
        assert_eq!(
            ["100ms", "20us", "1.5s", "7µs"].map(time_us),
            [100_000, 20, 1_500_000, 7].map(Some)
        );
    }

    #[test]
    fn times_may_be_long_and_shares_small() {
        assert_eq!(
            ["500ns", "2.5us", "1.5 s", "2min", "1h"].map(time_ns),
            [
                500,
                2_500,
                1_500_000_000,
                120_000_000_000,
                3_600_000_000_000
            ]
            .map(Some)
        );
        assert_eq!(
            ["1%", "0.01 %", "100%", "0%"].map(share),
            [0.01, 0.0001, 1.0, 0.0].map(Some)
        );
        assert_eq!(["1", "0.01", "-1%", "%", "1%%"].map(share), [None; 5]);
    }

    #[test]
    fn what_can_be_read_two_ways_is_refused() {
        for text in [
            "64K", "64k", "1kb", "1Kb", "1M", "12", "", "MB", "1.2.3MB", "-1MB", "1e3MB", "1..MB",
            "1.MB",
        ] {
            assert_eq!(bytes(text), None, "{text}");
        }
        assert_eq!(meant_by_bps("1.5Mbps").as_deref(), Some("1.5mbit"));
        assert_eq!(meant_by_bps("9 bps").as_deref(), Some("9 bit"));
        for text in ["1mbit", "bps", "x1kbps", "1MBps/s", "1xbps"] {
            assert_eq!(meant_by_bps(text), None, "{text}");
        }
        for text in ["1Mb", "1MB", "1MB/s", "1mbps", "1gbps", "1000", "1 bits"] {
            assert_eq!(rate_bps(text), None, "{text}");
        }
        for text in ["100", "100m", "1min", "100 ms 3", "0x10s"] {
            assert_eq!(time_us(text), None, "{text}");
        }
    }

    #[test]
    fn people_get_the_unit_that_fits() {
        assert_eq!(
            [12_500_000, 999, 1_073_741_823, 0].map(show_bytes),
            ["12.5 MB", "999 B", "1.074 GB", "0 B"]
        );
        assert_eq!(
            [1_000_000_000, 622_080_000].map(show_rate),
            ["1 Gb/s", "622.08 Mb/s"]
        );
        assert_eq!(
            [100_000, 7, 1_500_000].map(show_time),
            ["100 ms", "7 us", "1.5 s"]
        );
    }
}

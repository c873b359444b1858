// SPDX-License-Identifier: MIT OR Apache-2.0
//! Readers of single values: each takes a TOML value and gives it typed, or says what is allowed.
//!
//! The ranges of the settings stand in their table ([`Measure::of`]), every other range in this file, in a
//! [`Measure`] or at its reader.

use crate::instruments::MAX_SAMPLED_FLOWS;
use crate::rule::Follows;
use crate::settings::{Chosen, User};
use crate::trace::MAX_TRACED_FLOWS;
use crate::{Path, PortRange, Prefix, RUDE_LAW, Setting, SettingValue, Spec, Unit};
use fatpath_toml::{DeValue, Refusal, Value, nearest, shortened};
use fatpath_units as quantity;
use std::borrow::Cow;

/// A kind of number: its range and how it is written.
pub(crate) struct Measure {
    min: u64,
    max: u64,
    /// Whether a bare integer is taken; where it is not, the unit would be a guess.
    bare: bool,
    /// Reads number and unit; `None` for counts, which have no unit.
    with_unit: Option<fn(&str) -> Option<u128>>,
    /// The range and the forms, for people.
    allowed: Cow<'static, str>,
}

/// These sysctls are ints.
pub(crate) const SYSCTL_BYTES: Measure = Measure {
    min: 4096,
    max: i32::MAX as u64,
    bare: true,
    with_unit: Some(quantity::bytes),
    allowed: Cow::Borrowed(
        "one value (of tcp_rmem and tcp_wmem the third, the maximum), 4 KiB to 2 GiB - 1: bytes as an integer, \"64MiB\", or \"auto\"",
    ),
};
pub(crate) const RTT: Measure = Measure {
    min: 1,
    max: 60_000_000,
    bare: false,
    with_unit: Some(quantity::time_us),
    allowed: Cow::Borrowed("1us to 60s, with its unit: \"100ms\", \"250us\", \"1.5s\""),
};
pub(crate) const RATE: Measure = Measure {
    min: 1_000,
    max: 100_000_000_000_000,
    bare: false,
    with_unit: Some(quantity::rate_bps),
    allowed: Cow::Borrowed(
        "1kbit to 100tbit, with its unit (bit, kbit, mbit, gbit, tbit, or Mb/s and the like; decimal, a second): \"900mbit\"",
    ),
};
/// 1/(2N) is 0.001 at least.
pub(crate) const STREAMS: Measure = count(1, 500, "an integer of 1 to 500 parallel streams");
/// At most once a round trip anyway; the kernel's clock of ACKs is finer.
pub(crate) const SAMPLE_INTERVAL: Measure = Measure {
    min: 1_000,
    max: 60_000_000,
    bare: false,
    with_unit: Some(quantity::time_us),
    allowed: Cow::Borrowed("1ms to 60s, with its unit: \"100ms\""),
};
pub(crate) const ARCHIVE_DAYS: Measure = count(1, 3650, "an integer of 1 to 3650 days");
pub(crate) const ARCHIVE_BYTES: Measure = Measure {
    min: 16 << 20,
    max: 16 << 40,
    bare: true,
    with_unit: Some(quantity::bytes),
    allowed: Cow::Borrowed("16 MiB to 16 TiB: bytes as an integer, or \"2GB\""),
};
pub(crate) const SPOOL_BYTES: Measure = Measure {
    min: 1 << 20,
    max: 64 << 30,
    bare: true,
    with_unit: Some(quantity::bytes),
    allowed: Cow::Borrowed("1 MiB to 64 GiB: bytes as an integer, or \"256MiB\""),
};
pub(crate) const ARCHIVE_FLOW_BYTES: Measure = Measure {
    min: 0,
    max: 1 << 50,
    bare: true,
    with_unit: Some(quantity::bytes),
    allowed: Cow::Borrowed("0 to 1 PiB: bytes as an integer, or \"1MB\""),
};
pub(crate) const HOST_INTERVAL: Measure = Measure {
    min: 1_000_000,
    max: 3_600_000_000,
    bare: false,
    with_unit: Some(quantity::time_us),
    allowed: Cow::Borrowed("1s to 3600s, with its unit: \"60s\""),
};
pub(crate) const ONE_IN: Measure = count(1, 1_000_000, "an integer of 1 to 1000000 flows");
pub(crate) const SAMPLES_PER_S: Measure = count(
    10,
    10_000_000,
    "an integer of 10 to 10000000 samples a second",
);
pub(crate) const MAX_FLOWS: Measure = count(
    1,
    MAX_SAMPLED_FLOWS as u64,
    "an integer of 1 to 1000000 flows",
);
pub(crate) const MAX_FLOWS_PER_PREFIX: Measure = count(
    0,
    MAX_SAMPLED_FLOWS as u64,
    "an integer of 0 (no bound) to 1000000 flows",
);
pub(crate) const TRACED_FLOWS: Measure =
    count(1, MAX_TRACED_FLOWS as u64, "an integer of 1 to 10000 flows");
pub(crate) const TRACE_FILES: Measure = count(2, 10_000, "an integer of 2 to 10000 files");
pub(crate) const TRACE_FILE_BYTES: Measure = Measure {
    min: 1 << 20,
    max: 4 << 30,
    bare: true,
    with_unit: Some(quantity::bytes),
    allowed: Cow::Borrowed("1 MiB to 4 GiB: bytes as an integer, or \"64MiB\""),
};
pub(crate) const TRACE_BYTES: Measure = Measure {
    min: 2 << 20,
    max: 16 << 40,
    bare: true,
    with_unit: Some(quantity::bytes),
    allowed: Cow::Borrowed("2 MiB to 16 TiB: bytes as an integer, or \"1GiB\""),
};

const fn count(min: u64, max: u64, allowed: &'static str) -> Measure {
    Measure {
        min,
        max,
        bare: true,
        with_unit: None,
        allowed: Cow::Borrowed(allowed),
    }
}

impl Measure {
    /// Of a setting that is a number.
    pub fn of(setting: Setting) -> Measure {
        let Spec {
            unit, least, most, ..
        } = setting.spec();
        let with_unit: Option<fn(&str) -> Option<u128>> = match unit {
            Unit::Bytes => Some(quantity::bytes),
            Unit::Us => Some(quantity::time_us),
            Unit::Bps => Some(quantity::rate_bps),
            _ => None,
        };
        Measure {
            min: *least,
            max: *most,
            bare: matches!(unit, Unit::Bytes | Unit::Pkts),
            with_unit,
            allowed: Cow::Owned(setting.allowed()),
        }
    }

    /// The number and how it was written.
    pub fn read(&self, value: &Value) -> Result<Chosen<u64>, Refusal> {
        let number = match value.as_str() {
            Some(text) => self.read_text(text),
            None => value
                .as_u64()
                .filter(|number| self.bare && self.holds(*number)),
        };
        let number = number.ok_or_else(|| value.found(self.allowed()))?;
        Ok(Chosen::new(number, format!("given as {}", written(value)?)))
    }

    /// A number with its unit.
    pub fn read_text(&self, text: &str) -> Option<u64> {
        let number = self.with_unit.and_then(|with_unit| with_unit(text));
        number.and_then(|number| self.within(number))
    }

    /// The same, where another form is allowed, too.
    pub fn or(self, form: &str) -> Measure {
        Measure {
            allowed: Cow::Owned(format!("{}{form}", self.allowed)),
            ..self
        }
    }

    /// The range and the forms, for people.
    pub fn allowed(&self) -> &str {
        &self.allowed
    }

    /// The number and how it was written, for ranges that end within 32 bits.
    pub fn read_u32(&self, value: &Value) -> Result<Chosen<u32>, Refusal> {
        self.read(value).map(narrow)
    }

    /// Whether the range has it.
    pub fn holds(&self, number: u64) -> bool {
        (self.min..=self.max).contains(&number)
    }

    fn within(&self, number: u128) -> Option<u64> {
        u64::try_from(number)
            .ok()
            .filter(|number| self.holds(*number))
    }
}

fn narrow(wide: Chosen<u64>) -> Chosen<u32> {
    Chosen {
        value: u32::try_from(wide.value).expect("the range ends within 32 bits"),
        reason: wide.reason,
    }
}

/// A value as it stands in the file, a text without its quotes.
fn written(value: &Value) -> Result<String, Refusal> {
    Ok(shortened(&value.plain()?))
}

/// A buffer: bytes, or a multiple of what the path holds. `Ok(None)` when that cannot be said because
/// the path's own values were refused (`path` is `None` then), or are still to be measured.
pub(crate) fn buffer(
    value: &Value,
    setting: Setting,
    path: Option<&Path>,
) -> Result<Option<Chosen<u64>>, Refusal> {
    let measure = Measure::of(setting);
    let factor = value
        .as_str()
        .and_then(|text| text.trim().strip_suffix("bdp"));
    match factor {
        Some(factor) => {
            let factor_milli = bdp_factor(factor.trim_end(), value)?;
            path.map_or(Ok(None), |path| bdp(factor_milli, value, path, &measure))
        }
        None => measure.read(value).map(Some),
    }
}

fn bdp_factor(factor: &str, value: &Value) -> Result<u128, Refusal> {
    let allowed = "\"bdp\", or up to 1000 times it with at most three decimals: \"1.5bdp\"";
    let factor_milli = match factor {
        "" => Some(1000),
        factor => quantity::thousandths(factor),
    };
    factor_milli
        .filter(|milli| (1..=1_000_000).contains(milli))
        .ok_or_else(|| value.found(allowed))
}

fn bdp(
    factor_milli: u128,
    value: &Value,
    path: &Path,
    measure: &Measure,
) -> Result<Option<Chosen<u64>>, Refusal> {
    let Some((bdp_bytes, reason)) = times_bdp(factor_milli, value, path)? else {
        return Ok(None);
    };
    if path.follows.by.is_some() {
        return Ok(Some(bounded(bdp_bytes, reason, path, measure)));
    }
    match measure.within(bdp_bytes) {
        Some(bytes) => Ok(Some(Chosen::new(bytes, reason))),
        None => Err(value
            .refusal(format!("out of range: {reason}"))
            .allowed(format!("allowed: {}", measure.allowed))),
    }
}

/// Of a path that is measured: nobody wrote this number, and a peer alone can make it large.
fn bounded(bdp_bytes: u128, reason: String, path: &Path, measure: &Measure) -> Chosen<u64> {
    let most = path.follows.most_buffer_bytes.unwrap_or(measure.max);
    let most = most.clamp(measure.min, measure.max);
    let wanted = u64::try_from(bdp_bytes).unwrap_or(u64::MAX);
    let why = match wanted {
        wanted if wanted < measure.min => ", as far as a buffer goes".to_owned(),
        wanted if wanted <= most => String::new(),
        _ => format!(", at most {} a flow", quantity::show_bytes(most)),
    };
    Chosen::new(wanted.clamp(measure.min, most), format!("{reason}{why}"))
}

/// What the path holds, whatever it is; none while it is still to be measured.
pub(crate) fn bdp_bytes(value: &Value, path: &Path) -> Result<Option<Chosen<u64>>, Refusal> {
    let times = times_bdp(1000, value, path)?;
    Ok(times.map(|(bytes, reason)| Chosen::new(u64::try_from(bytes).unwrap_or(u64::MAX), reason)))
}

fn times_bdp(
    factor_milli: u128,
    value: &Value,
    path: &Path,
) -> Result<Option<(u128, String)>, Refusal> {
    if path.waits() {
        return Ok(None);
    }
    let Some(bdp_bytes) = path.bdp_bytes().map(u128::from) else {
        let message = format!("\"{}\" needs the path's rtt and rate", written(value)?);
        let remedy = "give the rule both, for instance rtt = \"100ms\" and rate = \"1gbit\", or \"measured\"";
        return Err(value.refusal(message).allowed(remedy));
    };
    let reason = bdp_reason(path, bdp_bytes, factor_milli);
    Ok(Some((bdp_bytes * factor_milli / 1000, reason)))
}

/// `1 Gb/s x 100 ms = 12.5 MB (bdp), x 2`.
fn bdp_reason(path: &Path, bdp_bytes: u128, factor_milli: u128) -> String {
    let rate = quantity::show_rate(path.rate_bps.unwrap_or_default());
    let rtt = quantity::show_time(path.rtt_us.unwrap_or_default().into());
    let bdp = quantity::show_bytes(u64::try_from(bdp_bytes).unwrap_or(u64::MAX));
    let times = match factor_milli {
        1000 => String::new(),
        factor => format!(", x {}", factor as f64 / 1000.0),
    };
    let measured = match &path.follows {
        Follows { by: Some(by), .. } => format!(", measured {by}"),
        follows if follows.is_nothing() => String::new(),
        _ => ", until it is measured".to_owned(),
    };
    format!("{rate} x {rtt} = {bdp} (bdp){times}{measured}")
}

/// A setting without a reader of its own: a number, a fraction, or on or off.
pub(crate) fn plain(value: &Value, setting: Setting) -> Result<Chosen<SettingValue>, Refusal> {
    match setting.spec().unit {
        Unit::Truth => truth(value)
            .map(|truth| Chosen::new(SettingValue::Truth(truth), format!("given as {truth}"))),
        Unit::Milli => milli(value, setting).map(|milli| milli.map(SettingValue::Number)),
        _ => {
            refuse_share(value, setting)?;
            let number = Measure::of(setting).read(value);
            number.map(|number| number.map(SettingValue::Number))
        }
    }
}

/// A number with at most three decimals, in thousandths.
pub(super) fn thousandths(value: &Value) -> Option<u64> {
    let milli = number(value).map(|number| number * 1000.0);
    let whole = milli.filter(|milli| (milli - milli.round()).abs() < 1e-6);
    whole.map(|milli| milli.round() as u64)
}

/// A fraction, kept in thousandths.
fn milli(value: &Value, setting: Setting) -> Result<Chosen<u64>, Refusal> {
    let whole = thousandths(value);
    whole
        .filter(|milli| Measure::of(setting).holds(*milli))
        .map(|milli| Chosen::new(milli, format!("given as {}", milli as f64 / 1000.0)))
        .ok_or_else(|| value.found(&setting.allowed()))
}

pub(crate) fn truth(value: &Value) -> Result<bool, Refusal> {
    value.boolean()
}

/// A rule's name: it stands in logs, tables and file names.
pub(crate) fn name(value: &Value) -> Result<String, Refusal> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    match value.as_str() {
        Some(text) if (1..=63).contains(&text.len()) && text.bytes().all(plain) => {
            Ok(text.to_owned())
        }
        _ => Err(value.found("a text of 1 to 63 letters, digits, `.`, `_` or `-`")),
    }
}

pub(crate) fn prefix(value: &Value) -> Result<Prefix, Refusal> {
    let allowed = "a text such as \"10.5.0.0/16\", \"192.0.2.7\" or \"2001:db8::/32\"";
    let text = value.as_str().ok_or_else(|| value.found(allowed))?;
    shortened(text)
        .parse()
        .map_err(|error: crate::PrefixError| {
            value.refusal(error.to_string()).allowed(error.remedy())
        })
}

pub(crate) fn ports(value: &Value) -> Result<PortRange, Refusal> {
    let refused = || value.found("a port of 1 to 65535, or a range such as \"5000-5010\"");
    let port = |text: &str| -> Option<u16> {
        text.bytes()
            .all(|byte| byte.is_ascii_digit())
            .then(|| text.parse().ok())
            .flatten()
    };
    let (first, last) = match value.as_str() {
        Some(text) => match text.split_once('-') {
            Some((first, last)) => (port(first.trim()), port(last.trim())),
            None => (port(text.trim()), port(text.trim())),
        },
        None => {
            let one = value.as_u64().and_then(|number| u16::try_from(number).ok());
            (one, one)
        }
    };
    let (first, last) = first.zip(last).ok_or_else(refused)?;
    let reversed = || {
        value
            .refusal(format!("the range {first}-{last} is reversed"))
            .allowed(format!("write \"{last}-{first}\""))
    };
    PortRange::new(first, last).ok_or_else(|| {
        if first > last && last > 0 {
            reversed()
        } else {
            refused()
        }
    })
}

/// A cgroup-2 path as /proc/PID/cgroup shows it.
pub(crate) fn cgroup(value: &Value) -> Result<String, Refusal> {
    let allowed = "a cgroup-2 path from the root, without `.`, `..`, `//` or a `/` at its end, such as \"/system.slice/gridftp.service\"";
    let part =
        |part: &str| !["", ".", ".."].contains(&part) && part.len() <= 255 && !part.contains('\0');
    match value.as_str() {
        Some("/") => Ok("/".to_owned()),
        Some(text)
            if text.len() < 4096
                && text
                    .strip_prefix('/')
                    .is_some_and(|rest| rest.split('/').all(part)) =>
        {
            Ok(text.to_owned())
        }
        _ => Err(value.found(allowed)),
    }
}

/// A user's name (useradd(8)) or number; the last number means nobody (chown(2)).
pub(crate) fn user(value: &Value) -> Result<User, Refusal> {
    let begins = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.$".contains(&byte);
    let read = match value.as_str() {
        Some(text) => Some(text)
            .filter(|text| (1..=32).contains(&text.len()) && begins(text.as_bytes()[0]))
            .filter(|text| text.bytes().all(plain))
            .map(|text| User::Name(text.to_owned())),
        None => value
            .as_u64()
            .and_then(|number| u32::try_from(number).ok())
            .filter(|id| *id != u32::MAX)
            .map(User::Id),
    };
    read.ok_or_else(|| value.found("a user's name, such as \"alice\", or number"))
}

/// The name of a law, as the kernel bounds it (TCP_CA_NAME_MAX with its end) and has it registered.
pub(crate) fn law_name(value: &Value, registered: Option<&[String]>) -> Result<String, Refusal> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    let name = match value.as_str() {
        Some(text) if (1..=15).contains(&text.len()) && text.bytes().all(plain) => text,
        _ => {
            return Err(value.found(&Setting::CongestionControl.allowed()));
        }
    };
    if name == RUDE_LAW {
        let message = format!("`{name}` is not a congestion-control law");
        return Err(value.refusal(message).allowed("write rude = \"always\""));
    }
    match registered {
        Some(laws) if !laws.iter().any(|law| law == name) => {
            let message = format!("no law `{name}` is registered with the kernel");
            let allowed = match nearest(name, laws.iter().map(String::as_str)) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("allowed here: {}", laws.join(", ")),
            };
            Err(value.refusal(message).allowed(allowed))
        }
        _ => Ok(name.to_owned()),
    }
}

/// A plain number.
pub(crate) fn number(value: &Value) -> Option<f64> {
    match value.as_toml() {
        DeValue::Float(number) => number.as_str().parse().ok(),
        _ => value.as_u64().map(|number| number as f64),
    }
}

/// Of a text that ends in `/n`, a share of a rate, what is before it.
pub(super) fn before_n(text: &str) -> Option<&str> {
    text.trim().strip_suffix("/n").map(str::trim_end)
}

/// Refuses a share of a rate that cannot be shared.
fn refuse_share(value: &Value, setting: Setting) -> Result<(), Refusal> {
    if value.as_str().and_then(before_n).is_none() {
        return Ok(());
    }
    let refusal = value.refusal(format!(
        "of rates only {} can be shared (\"/n\")",
        Setting::PacingRate.key()
    ));
    Err(refusal.allowed(format!("allowed: {}", setting.allowed())))
}

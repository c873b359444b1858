// SPDX-License-Identifier: MIT OR Apache-2.0
//! A setting as data: its name, unit, range, stage and the way it takes to a flow.
//!
//! The settings stand in bpf/include/setting_table.h; [`Setting`] and the rows behind [`Setting::spec`] are
//! generated from it. Here is what a row means to people.

use table::SPECS;
pub(crate) use table::{FP_MIN_SHARE_BYTES, FP_RUDE_CONVERGED_MILLI};
mod table;

pub use table::Setting;

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Spec {
    /// Its name in the policy file.
    pub key: &'static str,
    /// The same where no unit stands beside a number: `rto_min_us`.
    pub name_with_unit: &'static str,
    /// What a value is counted in.
    pub unit: Unit,
    /// The least number, in the unit.
    pub least: u64,
    /// The greatest.
    pub most: u64,
    /// When in its life a flow is given it.
    pub stage: Stage,
    /// How it reaches a flow.
    pub way: Way,
    /// How it is written: examples, or all that is allowed.
    pub forms: &'static str,
    /// What it does.
    pub becomes: &'static str,
}

/// What the value of a setting is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Segments.
    Pkts,
    /// Microseconds.
    Us,
    /// Bits a second.
    Bps,
    /// Thousandths.
    Milli,
    /// On or off.
    Truth,
    /// One of a few words.
    Word,
    /// A law and its parameters.
    Law,
    /// Users.
    Users,
}

/// When in its life a flow is given a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Before the SYN, and whenever it changes: what the SYN says depends on it.
    BeforeSyn,
    /// Before the first byte of data, and never again.
    Established,
    /// Before the first byte of data, and whenever it changes.
    Live,
}

/// How a setting reaches a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// By a socket option.
    Option,
    /// By a socket option; the kernel keeps the time in its ticks.
    Timer,
    /// By code of its own in bpf/include/settings.h, which sets the socket.
    Own,
    /// The laws of bpf/cc read it of the rule.
    Laws,
    /// Rude TCP reads it of the rule.
    Rude,
    /// As a metric of routes.
    Route,
    /// It changes what other settings of the rule do.
    Rule,
}

impl Setting {
    /// Its row.
    pub fn spec(self) -> &'static Spec {
        &SPECS[self as usize]
    }

    /// Its name in the policy file.
    pub fn key(self) -> &'static str {
        self.spec().key
    }

    /// What it does, for the manual.
    pub fn becomes(self) -> &'static str {
        self.spec().becomes
    }

    /// Those that take this way, in the order of the manual.
    pub fn of_way(way: Way) -> impl Iterator<Item = Setting> {
        let all = Setting::ALL.into_iter();
        all.filter(move |setting| setting.spec().way == way)
    }

    /// Its name where no unit stands beside the value: `rto_min_us`.
    pub fn name_with_unit(self) -> &'static str {
        self.spec().name_with_unit
    }

    /// What the policy file may say, for people.
    pub fn allowed(self) -> String {
        let Spec { unit, forms, .. } = self.spec();
        let range = self.range();
        match unit {
            Unit::Bytes => format!("{range}: bytes as an integer, {forms}"),
            Unit::Pkts if forms.is_empty() => format!("an integer of {range} segments"),
            Unit::Pkts => format!("an integer of {range} segments, {forms}"),
            Unit::Us => format!("{range}, with its unit: {forms}"),
            Unit::Bps => {
                let most = if range.ends_with("tbit") {
                    ", tbit"
                } else {
                    ""
                };
                format!(
                    "{range}, with its unit (kbit, mbit, gbit{most}, or Mb/s and the like; decimal, a second): {forms}"
                )
            }
            Unit::Milli => format!("{range}, with at most three decimals"),
            Unit::Truth => "true or false".to_owned(),
            Unit::Word | Unit::Law | Unit::Users => (*forms).to_owned(),
        }
    }

    /// `1ms to 200ms`.
    fn range(self) -> String {
        let Spec {
            unit, least, most, ..
        } = self.spec();
        format!("{} to {}", unit.written(*least), unit.written(*most))
    }
}

impl Unit {
    /// What an explanation calls it; empty for what has none.
    pub fn text(self) -> &'static str {
        match self {
            Unit::Bytes => "bytes",
            Unit::Pkts => "segments",
            Unit::Us => "us",
            Unit::Bps => "bit/s",
            Unit::Milli => "thousandths",
            Unit::Truth | Unit::Word | Unit::Law | Unit::Users => "",
        }
    }

    /// An end of a range as the policy file would have it.
    pub(crate) fn written(self, number: u64) -> String {
        const GIB: u64 = 1 << 30;
        let of = |units: &[(u64, &str)], space: &str| {
            let whole = units.iter().find(|(size, _)| number.is_multiple_of(*size));
            let (size, unit) = whole.unwrap_or(&(1, ""));
            format!("{}{space}{unit}", number / size)
        };
        match self {
            Unit::Bytes if number == 1 => "1 byte".to_owned(),
            Unit::Bytes if (number + 1).is_multiple_of(GIB) => {
                format!("{} GiB - 1", (number + 1) / GIB)
            }
            Unit::Bytes => of(
                &[
                    (GIB, "GiB"),
                    (1 << 20, "MiB"),
                    (1 << 10, "KiB"),
                    (1, "bytes"),
                ],
                " ",
            ),
            Unit::Us => of(&[(1_000_000, "s"), (1_000, "ms"), (1, "us")], ""),
            Unit::Bps => of(
                &[
                    (1_000_000_000_000, "tbit"),
                    (1_000_000_000, "gbit"),
                    (1_000_000, "mbit"),
                    (1_000, "kbit"),
                    (1, "bit"),
                ],
                "",
            ),
            Unit::Milli => (number as f64 / 1000.0).to_string(),
            Unit::Pkts | Unit::Truth | Unit::Word | Unit::Law | Unit::Users => number.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_written_as_the_file_would_have_it() {
        let range = |setting: Setting| setting.range();
        assert_eq!(range(Setting::NotsentLowat), "1 byte to 1 GiB - 1");
        assert_eq!(range(Setting::SendBuffer), "4 KiB to 1 GiB - 1");
        assert_eq!(range(Setting::RtoMin), "1ms to 200ms");
        assert_eq!(range(Setting::InitialRate), "8kbit to 1tbit");
        assert_eq!(range(Setting::RudeConverged), "0.001 to 1");
    }

    #[test]
    fn names_are_those_of_the_flow_log() {
        let name = |setting: Setting| setting.name_with_unit();
        assert_eq!(name(Setting::CwndClamp), "cwnd_clamp_pkts");
        assert_eq!(name(Setting::PacingRate), "pacing_rate_bps");
        assert_eq!(name(Setting::CongestionControl), "congestion_control");
    }

    /// bpf/include/abi.h counts on it.
    #[test]
    fn those_that_a_socket_is_given_come_first_and_then_those_that_a_rule_holds() {
        let place = |way: Way| match way {
            Way::Option | Way::Timer | Way::Own => 0,
            Way::Laws => 1,
            Way::Rude => 2,
            Way::Route => 3,
            Way::Rule => 4,
        };
        let places = Setting::ALL.map(|setting| place(setting.spec().way));
        assert!(places.is_sorted(), "{places:?}");
    }
}

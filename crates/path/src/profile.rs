// SPDX-License-Identifier: MIT OR Apache-2.0
//! Settings as flows of many paths can share them.

use serde::{Deserialize, Serialize};
use std::fmt::{self, Write};

/// What the flows of a path get. Sizes and thresholds are powers of the square root of 2, so that paths share profiles.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Profile {
    /// SO_SNDBUF, bytes; none: the kernel sizes it.
    pub send_buffer_bytes: Option<u64>,
    /// SO_RCVBUF, bytes; none: the kernel sizes it.
    pub receive_buffer_bytes: Option<u64>,
    /// The law; none: the host's.
    pub law: Option<Law>,
    /// Slow-start threshold of a new flow, segments.
    pub initial_ssthresh_pkts: Option<u64>,
    /// Rate at which a new flow starts, bits a second.
    #[serde(default)]
    pub initial_rate_bps: Option<u64>,
    /// Rate above which a flow never sends, bits a second, in steps of a hundredth.
    #[serde(default)]
    pub pacing_rate_bps: Option<u64>,
    /// The buffers replace smaller ones that programs set.
    #[serde(default)]
    pub override_application: bool,
}

/// A law that a path can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Law {
    /// CUBIC by RFC 9438 with HyStart++.
    #[serde(rename = "fp_cubic")]
    Cubic,
    /// Scalable TCP.
    #[serde(rename = "fp_scalable")]
    Scalable,
    /// BBR version 3.
    #[serde(rename = "fp_bbr")]
    Bbr,
}

/// The steps of sizes and thresholds.
const STEP: f64 = std::f64::consts::SQRT_2;

/// The steps of pacing rates: what they leave unused is lost to the flow.
const FINE_STEP: f64 = 1.01;

impl Law {
    /// The law of a name in the kernel.
    pub fn named(name: &str) -> Option<Law> {
        let mut laws = [Law::Cubic, Law::Scalable, Law::Bbr].into_iter();
        laws.find(|law| law.name() == name)
    }

    /// Its name in the kernel.
    pub fn name(self) -> &'static str {
        match self {
            Law::Cubic => "fp_cubic",
            Law::Scalable => "fp_scalable",
            Law::Bbr => "fp_bbr",
        }
    }
}

impl Profile {
    /// Whether it leaves everything to the kernel.
    pub fn is_empty(&self) -> bool {
        *self == Profile::default()
    }

    /// Whether the other differs by at most a step in each number: not worth a change. A threshold is, where it is a step too
    /// low: the rest of a long path takes CUBIC many round trips.
    pub(crate) fn is_near(&self, other: &Profile) -> bool {
        let numbers = |of: &Profile| {
            [
                of.send_buffer_bytes,
                of.receive_buffer_bytes,
                of.initial_ssthresh_pkts,
                of.initial_rate_bps,
            ]
        };
        let mut pairs = numbers(self).into_iter().zip(numbers(other));
        self.law == other.law
            && self.override_application == other.override_application
            && self.initial_ssthresh_pkts >= other.initial_ssthresh_pkts
            && pairs.all(|(one, other)| are_near(one, other, STEP))
            && are_near(self.pacing_rate_bps, other.pacing_rate_bps, FINE_STEP)
    }
}

fn are_near(one: Option<u64>, other: Option<u64>, step: f64) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => {
            let ratio = (one as f64 / other as f64).ln().abs();
            ratio <= step.ln() * 1.01
        }
        (None, None) => true,
        _ => false,
    }
}

/// As keys of a rule of the policy file, a line each.
impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = String::new();
        let numbers = [
            ("send_buffer", self.send_buffer_bytes),
            ("receive_buffer", self.receive_buffer_bytes),
            ("initial_ssthresh", self.initial_ssthresh_pkts),
        ];
        for (key, value) in numbers {
            if let Some(value) = value {
                writeln!(lines, "{key} = {value}")?;
            }
        }
        if let Some(bps) = self.initial_rate_bps {
            writeln!(lines, "initial_rate = \"{bps}bit\"")?;
        }
        if let Some(bps) = self.pacing_rate_bps {
            writeln!(lines, "pacing_rate = \"{bps}bit\"")?;
        }
        if let Some(law) = self.law {
            writeln!(lines, "congestion_control = \"{}\"", law.name())?;
        }
        if self.override_application {
            writeln!(lines, "override_application = true")?;
        }
        f.write_str(&lines)
    }
}

/// The power of the square root of 2 next to a number, by ratio.
pub(crate) fn stepped(value: f64) -> u64 {
    STEP.powf((value.ln() / STEP.ln()).round()).round() as u64
}

/// The greatest of the steps of pacing rates that is no more than a rate.
pub(crate) fn finely_stepped_down(bps: f64) -> u64 {
    FINE_STEP.powf((bps.ln() / FINE_STEP.ln()).floor()) as u64
}

/// The greatest power of the square root of 2 that is no more than a number.
pub(crate) fn stepped_down(value: f64) -> u64 {
    STEP.powf((value.ln() / STEP.ln()).floor()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_profile_is_printed_as_keys_of_a_rule() {
        let profile = Profile {
            send_buffer_bytes: Some(1 << 24),
            law: Some(Law::Bbr),
            ..Profile::default()
        };
        let lines = "send_buffer = 16777216\ncongestion_control = \"fp_bbr\"\n";
        assert_eq!(profile.to_string(), lines);
        assert!(Profile::default().is_empty() && !profile.is_empty());
    }

    #[test]
    fn a_step_is_worth_a_change_only_where_the_threshold_is_too_low() {
        let of = |pkts, bytes| Profile {
            initial_ssthresh_pkts: Some(pkts),
            send_buffer_bytes: Some(bytes),
            ..Profile::default()
        };
        let known = of(1448, 1 << 20);
        assert!(known.is_near(&of(1024, 1 << 20)) && !known.is_near(&of(2048, 1 << 20)));
        assert!(known.is_near(&of(1448, 1_482_910)) && known.is_near(&of(1448, 741_455)));
        assert!(!known.is_near(&of(724, 1 << 20)) && !known.is_near(&of(1448, 1 << 21)));
    }

    proptest! {
        #[test]
        fn steps_are_close(value in 1e3..1e12_f64) {
            let ratio = stepped(value) as f64 / value;
            prop_assert!((0.84..1.19).contains(&ratio), "{ratio}");
            let down = stepped_down(value) as f64;
            prop_assert!(down <= value && down > value / 1.5 - 1.0, "{down}");
        }
    }
}

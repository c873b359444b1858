// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which flows the instruments sample, and how often: the `[instruments]` section.
//!
//! Formulas of derived events are kept as text; `fatpath-estats` reads them. Start at [`Instruments`].

use crate::Rule;
use fatpath_units as quantity;
use serde::Serialize;

/// The most flows that can be sampled at once: so many sockets the kernel half keeps a state for.
pub const MAX_SAMPLED_FLOWS: u32 = 1_000_000;
/// The most derived events, and the longest formula in bytes.
pub const MAX_DERIVED: usize = 64;
/// See [`MAX_DERIVED`].
pub const MAX_FORMULA_BYTES: usize = 1024;

/// The `[instruments]` section; its default is what holds without one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Instruments {
    /// Which flows.
    pub flows: SampledFlows,
    /// At [`SampledFlows::Rules`], only those that met one of these; empty: any rule.
    pub rules: Vec<String>,
    /// Two samples of a flow are at least so far apart, except events; 1 ms to 60 s.
    pub interval_us: u32,
    /// Of so many flows one is sampled, 1 to 1,000,000.
    pub one_in: u32,
    /// At once; others are counted as not sampled. 1 to [`MAX_SAMPLED_FLOWS`].
    pub max_flows: u32,
    /// At once, of one peer's /24 or /64; 0 = no bound.
    pub max_flows_per_prefix: u32,
    /// The administrator's own variables, in file order.
    pub derived: Vec<DerivedText>,
}

/// Which flows are sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SampledFlows {
    /// All.
    #[default]
    All,
    /// Those that matched a rule.
    Rules,
    /// None.
    None,
}

/// A derived event as the file has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DerivedText {
    /// Its name: a letter, then letters, digits and `_`.
    pub name: String,
    /// Its formula, unread.
    pub formula: String,
    /// Its line in the file, from 1.
    pub line: u32,
}

impl Default for Instruments {
    fn default() -> Self {
        Instruments {
            flows: SampledFlows::All,
            rules: Vec::new(),
            interval_us: 100_000,
            one_in: 1,
            max_flows: 20_000,
            max_flows_per_prefix: 0,
            derived: Vec::new(),
        }
    }
}

impl SampledFlows {
    pub(crate) const ALL: [SampledFlows; 3] =
        [SampledFlows::All, SampledFlows::Rules, SampledFlows::None];

    /// As it stands in the policy file.
    pub fn name(self) -> &'static str {
        match self {
            SampledFlows::All => "all",
            SampledFlows::Rules => "rules",
            SampledFlows::None => "none",
        }
    }
}

impl Instruments {
    /// Whether flows of this rule (`None`: that matched none) are among those to sample.
    pub fn wants(&self, rule: Option<&Rule>) -> bool {
        match (self.flows, rule) {
            (SampledFlows::All, _) => true,
            (SampledFlows::None, _) | (SampledFlows::Rules, None) => false,
            (SampledFlows::Rules, Some(rule)) => {
                self.rules.is_empty() || self.rules.contains(&rule.name)
            }
        }
    }

    /// What a section that was written means for a flow of this rule, for people.
    pub(crate) fn note(&self, rule: Option<&Rule>) -> Option<String> {
        if *self == Instruments::default() {
            return None;
        }
        if !self.wants(rule) {
            let flows = self.flows.name();
            return Some(format!(
                "the instruments do not sample it (flows = \"{flows}\")"
            ));
        }
        let interval = quantity::show_time(self.interval_us.into());
        let which = match self.one_in {
            1 => "it".to_owned(),
            one_in => format!("1 in {one_in} such flows"),
        };
        Some(format!(
            "the instruments sample {which}, every {interval} at most"
        ))
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is loaded: for `fatpath status`, from the pins alone, so also without a daemon.

use crate::abi;
use crate::load::{Kernel, LAW_PREFIX};
use crate::unload::{name_of, pins};
use crate::{KernelError, SampleCounts, law};
use serde::Serialize;
use std::path::PathBuf;

/// The kernel half as it is now.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// Directory of the pins.
    pub pin_dir: PathBuf,
    /// Everything that is pinned there.
    pub pinned: Vec<Pinned>,
    /// Names of the live policy's rules.
    pub rules: Vec<String>,
    /// Counts policies made live since the load; 0 = none is.
    pub policy_generation: u32,
    /// Laws of ours that the kernel has registered.
    pub laws: Vec<String>,
    /// Counters since the load.
    pub counts: Counts,
    /// What the instruments counted; none where the kernel did not take them.
    pub instruments: Option<SampleCounts>,
}

/// One pin.
#[derive(Clone, Debug, Serialize)]
pub struct Pinned {
    /// Its file's name.
    pub name: String,
    /// `map`, `link`, `program` or `law`.
    pub kind: &'static str,
}

/// Counters since the load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Flows that met a rule.
    pub flows_met: u64,
    /// Flows that met none.
    pub flows_passed: u64,
    /// Events lost because nobody read them in time.
    pub events_lost: u64,
    /// Flows left untuned because their socket had no memory for fatpath's state.
    pub flows_without_storage: u64,
    /// Times a law found parameters out of range and took Reno's.
    pub bad_law_parameters: u64,
    /// Rude flows that went polite because nobody marked their segments.
    pub rude_flows_unmarked: u64,
}

impl Kernel {
    /// Reads the state of the kernel half.
    ///
    /// # Errors
    /// When a pin cannot be read.
    pub fn status(&self) -> Result<Status, KernelError> {
        let pin_dir = self.places.pin_dir.clone();
        let pinned: Vec<Pinned> = pins(&pin_dir)?
            .iter()
            .map(|pin| pinned_as(name_of(pin)))
            .collect();
        let control: abi::fp_control = self.table("fp_control")?.get(0)?;
        let mut rules: Vec<String> = self.rule_names()?.into_values().collect();
        rules.sort();
        let registered = law::registered_laws()?;
        let ours = pinned
            .iter()
            .filter_map(|p| p.name.strip_prefix(LAW_PREFIX));
        let laws = ours
            .filter(|law| registered.iter().any(|r| r == law))
            .map(str::to_owned);
        Ok(Status {
            laws: laws.collect(),
            counts: self.counts()?,
            instruments: self
                .has_instruments()
                .then(|| self.sample_counts())
                .transpose()?,
            policy_generation: control.generation,
            pin_dir,
            pinned,
            rules,
        })
    }

    /// The counters.
    ///
    /// # Errors
    /// When their map cannot be read.
    pub fn counts(&self) -> Result<Counts, KernelError> {
        let counts = self.table("fp_counts")?;
        Ok(Counts {
            flows_met: counts.sum(abi::FP_COUNT_MET)?,
            flows_passed: counts.sum(abi::FP_COUNT_PASSED)?,
            events_lost: counts.sum(abi::FP_COUNT_LOST)?,
            flows_without_storage: counts.sum(abi::FP_COUNT_NO_STORAGE)?,
            bad_law_parameters: counts.sum(abi::FP_COUNT_BAD_PARAMS)?,
            rude_flows_unmarked: counts.sum(abi::FP_COUNT_UNMARKED)?,
        })
    }
}

fn pinned_as(name: String) -> Pinned {
    let kind = match name.split('_').next() {
        Some("link") => "link",
        Some("prog") => "program",
        Some("law") => "law",
        _ => "map",
    };
    Pinned { name, kind }
}

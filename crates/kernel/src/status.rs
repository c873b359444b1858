// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is loaded: for `fatpath status`, from the pins alone, so also without a daemon.

use crate::abi;
use crate::handle::Kernel;
use crate::pins::{LAW_PREFIX, name_of, pins};
use crate::{KernelError, law};
use fatpath_api::{Counts, KernelStatus, PinKind, Pinned};

impl Kernel {
    /// Reads the state of the kernel half.
    ///
    /// # Errors
    /// When a pin cannot be read.
    pub fn status(&self) -> Result<KernelStatus, KernelError> {
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
        Ok(KernelStatus {
            laws: laws.collect(),
            counts: self.counts()?,
            instruments: self
                .has_instruments()
                .then(|| self.sample_counts())
                .transpose()?,
            lists_by_namespace: self.lists_by_namespace(),
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
            buffers_withheld: counts.sum(abi::FP_COUNT_WITHHELD)?,
        })
    }
}

fn pinned_as(name: String) -> Pinned {
    let kind = match name.split('_').next() {
        Some("link") => PinKind::Link,
        Some("prog") => PinKind::Program,
        Some("law") => PinKind::Law,
        _ => PinKind::Map,
    };
    Pinned { name, kind }
}

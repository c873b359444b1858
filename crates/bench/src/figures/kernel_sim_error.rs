// SPDX-License-Identifier: MIT OR Apache-2.0
//! How far the simulator is from the kernel: `fatpath lab compare` of experiments/agreement.toml, every law
//! over 1 Gb/s and 100 ms, clean and with random loss. A case's error is that of the medians of its runs,
//! each of which is to be trusted: one that is not is made again.

use crate::figure::{Better, Figure, Summary};
use crate::lab::{self, RETRIES, Times};
use crate::run::Run;
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Mutex;

const LAWS: Comparison = Comparison {
    scenario: "agreement.toml",
    repeats: 5,
};

/// Without random loss.
pub const CLEAN: Figure = Figure {
    name: "law.kernel_sim_error.clean",
    what: "goodput of every law, simulator against kernel, 1 Gb/s x 100 ms: worst error of the medians",
    unit: "ratio - 1",
    better: Better::Lower,
    goal: Some(0.10),
    summary: Summary::Worst,
    measure: |run| LAWS.errors(run, Case::is_clean),
};

/// With it.
pub const LOSSY: Figure = Figure {
    name: "law.kernel_sim_error.lossy",
    what: "the same with one segment lost in 100,000, in 10,000 and in 1,000",
    unit: "ratio - 1",
    better: Better::Lower,
    goal: Some(0.20),
    summary: Summary::Worst,
    measure: |run| LAWS.errors(run, |case| !case.is_clean()),
};

/// Of these, CUBIC, which hosts without a policy have: clean and with loss.
pub const CUBIC: Figure = Figure {
    name: "law.kernel_sim_error.cubic",
    what: "the same of fp_cubic, clean and with loss",
    measure: |run| LAWS.errors(run, |case| case.variant == "fp_cubic"),
    ..LOSSY
};

/// A scenario made by both.
#[derive(Clone, Copy)]
pub(super) struct Comparison {
    pub(super) scenario: &'static str,
    pub(super) repeats: usize,
}

/// A case of compare.json.
#[derive(Clone, Deserialize)]
pub(super) struct Case {
    variant: String,
    vary: BTreeMap<String, String>,
    kernel: Option<Side>,
    simulator: Option<Side>,
    error_percent: Option<f64>,
}

#[derive(Clone, Deserialize)]
struct Side {
    /// Of the runs that are to be trusted; `None`: there are none.
    goodput_mbps: Option<Values>,
    most_attempts: Option<u32>,
}

#[derive(Clone, Deserialize)]
struct Values {
    n: usize,
}

impl Comparison {
    /// Of the cases that are asked for.
    pub(super) fn errors(self, run: &Run, asked: impl Fn(&Case) -> bool) -> Result<Vec<f64>> {
        let cases = self.cases(run)?.into_iter().filter(asked);
        cases.map(|case| case.error(run, self.repeats)).collect()
    }

    /// Made once: several figures are of the same runs.
    fn cases(self, run: &Run) -> Result<Vec<Case>> {
        static COMPARED: Mutex<BTreeMap<&str, Vec<Case>>> = Mutex::new(BTreeMap::new());
        let mut compared = COMPARED.lock().expect("nothing panics while it is held");
        if let Some(cases) = compared.get(self.scenario) {
            return Ok(cases.clone());
        }
        let times = Times::of(self.repeats);
        let cases: Vec<Case> = lab::printed(run, "compare", self.scenario, times, &[])?;
        compared.insert(self.scenario, cases.clone());
        Ok(cases)
    }
}

impl Case {
    /// Without random loss.
    pub(super) fn is_clean(&self) -> bool {
        self.vary.get("loss").is_some_and(|loss| loss == "0%")
    }

    fn name(&self) -> String {
        let varied = self
            .vary
            .iter()
            .map(|(key, value)| format!("{key} {value}"));
        let varied: Vec<String> = varied.collect();
        format!("{} at {}", self.variant, varied.join(", "))
    }

    /// Of the simulator's median, as a share of the kernel's.
    fn error(&self, run: &Run, repeats: usize) -> Result<f64> {
        let name = self.name();
        let trusted = |side: &Option<Side>| {
            let values = side.as_ref().and_then(|side| side.goodput_mbps.as_ref());
            values.map_or(0, |values| values.n)
        };
        let of_kernel = trusted(&self.kernel);
        ensure!(
            of_kernel == repeats,
            "{name}: {of_kernel} of {repeats} runs ended well and are trusted, after {RETRIES} retries"
        );
        // Where nothing is drawn, one run is that of every repeat.
        ensure!(trusted(&self.simulator) > 0, "{name}: was not simulated");
        let percent = self
            .error_percent
            .with_context(|| format!("{name}: no goodput"))?;
        let attempts = self.kernel.as_ref().and_then(|side| side.most_attempts);
        let attempts = attempts.unwrap_or(1);
        run.say(format!(
            "  {name}: {percent:+.1} %, {attempts} attempts at most"
        ));
        Ok(percent / 100.0)
    }
}

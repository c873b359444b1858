// SPDX-License-Identifier: MIT OR Apache-2.0
//! How far the simulator is from the kernel in a scenario: `fatpath lab compare`. A case's error is that of the medians of its
//! runs, each of which is to be trusted: one that is not is made again.

use crate::lab::{self, RETRIES, Times};
use crate::run::Run;
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// A scenario made by both.
#[derive(Clone, Copy)]
pub struct Comparison {
    /// A file below `experiments/`.
    pub scenario: &'static str,
    /// Of each case on the kernel; all have to be trusted.
    pub repeats: usize,
}

/// A case of compare.json.
#[derive(Clone, Deserialize)]
pub struct Case {
    /// Of the scenario.
    pub variant: String,
    #[serde(default)]
    vary: BTreeMap<String, String>,
    kernel: Option<Side>,
    simulator: Option<Side>,
    error_percent: Option<f64>,
}

/// The kernel's runs, or the simulator's.
#[derive(Clone, Deserialize)]
pub struct Side {
    /// Of the runs that are to be trusted; `None`: there are none.
    goodput_mbps: Option<Values>,
    /// Of the times that transfers took in a run: the median of the runs.
    pub transfer_mean_s: Option<f64>,
    /// The longest but for one of a hundred.
    pub transfer_p99_s: Option<f64>,
    most_attempts: Option<u32>,
}

#[derive(Clone, Deserialize)]
struct Values {
    n: usize,
}

impl Comparison {
    /// Of the goodputs of the cases that are asked for.
    ///
    /// # Errors
    /// A run is missing, or none is to be trusted.
    pub fn errors(self, run: &Run, asked: impl Fn(&Case) -> bool) -> Result<Vec<f64>> {
        let cases = self.cases(run)?.into_iter().filter(asked);
        let error = |case: Case| case.error(run, self.repeats, case.error_percent);
        cases.map(error).collect()
    }

    /// Of these times of transfers.
    ///
    /// # Errors
    /// As [`Comparison::errors`].
    pub fn times(self, run: &Run, time_s: fn(&Side) -> Option<f64>) -> Result<Vec<f64>> {
        let error = |case: Case| {
            let [kernel, simulator] =
                [&case.kernel, &case.simulator].map(|side| side.as_ref().and_then(time_s));
            let both = kernel.zip(simulator);
            let percent = both.map(|(kernel, simulator)| 100.0 * (simulator / kernel - 1.0));
            case.error(run, self.repeats, percent)
        };
        self.cases(run)?.into_iter().map(error).collect()
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
    pub fn is_clean(&self) -> bool {
        self.vary.get("loss").is_some_and(|loss| loss == "0%")
    }

    fn name(&self) -> String {
        let varied = self
            .vary
            .iter()
            .map(|(key, value)| format!("{key} {value}"));
        let varied: Vec<String> = varied.collect();
        [vec![self.variant.clone()], varied].concat().join(", ")
    }

    /// Of the simulator's median, as a share of the kernel's.
    fn error(&self, run: &Run, repeats: usize, percent: Option<f64>) -> Result<f64> {
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
        let percent = percent.with_context(|| format!("{name}: no figure of both"))?;
        let attempts = self.kernel.as_ref().and_then(|side| side.most_attempts);
        let attempts = attempts.unwrap_or(1);
        run.say(format!(
            "  {name}: {percent:+.1} %, {attempts} attempts at most"
        ));
        Ok(percent / 100.0)
    }
}

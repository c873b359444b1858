// SPDX-License-Identifier: MIT OR Apache-2.0
//! How far the simulator is from the kernel: `fatpath lab compare` of experiments/agreement.toml, every law
//! over 1 Gb/s and 100 ms, clean and with random loss. A case's error is that of the medians of its runs,
//! each of which is to be trusted: one that is not is made again.

use crate::figure::{Better, Figure, Summary};
use crate::lab::{self, RETRIES};
use crate::run::Run;
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::OnceLock;

const SCENARIO: &str = "agreement.toml";
const REPEATS: usize = 5;

/// Without random loss.
pub const CLEAN: Figure = Figure {
    name: "law.kernel_sim_error.clean",
    what: "goodput of every law, simulator against kernel, 1 Gb/s x 100 ms: worst error of the medians",
    unit: "ratio - 1",
    better: Better::Lower,
    goal: Some(0.10),
    summary: Summary::Worst,
    measure: |run| measure(run, true),
};

/// With it.
pub const LOSSY: Figure = Figure {
    name: "law.kernel_sim_error.lossy",
    what: "the same with one segment lost in 100,000, in 10,000 and in 1,000",
    unit: "ratio - 1",
    better: Better::Lower,
    goal: Some(0.20),
    summary: Summary::Worst,
    measure: |run| measure(run, false),
};

/// A case of compare.json.
#[derive(Clone, Deserialize)]
struct Case {
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

fn measure(run: &Run, is_clean: bool) -> Result<Vec<f64>> {
    let cases = compared(run)?.into_iter();
    let cases = cases.filter(|case| (case.loss() == "0%") == is_clean);
    cases.map(|case| case.error(run)).collect()
}

/// Both figures are of the same runs.
fn compared(run: &Run) -> Result<Vec<Case>> {
    static COMPARED: OnceLock<Vec<Case>> = OnceLock::new();
    if let Some(cases) = COMPARED.get() {
        return Ok(cases.clone());
    }
    let cases: Vec<Case> = lab::printed(run, "compare", SCENARIO, REPEATS, &[])?;
    Ok(COMPARED.get_or_init(|| cases).clone())
}

impl Case {
    fn loss(&self) -> &str {
        self.vary.get("loss").map_or("", String::as_str)
    }

    /// Of the simulator's median, as a share of the kernel's.
    fn error(&self, run: &Run) -> Result<f64> {
        let name = format!("{} at {} loss", self.variant, self.loss());
        let trusted = |side: &Option<Side>| {
            let values = side.as_ref().and_then(|side| side.goodput_mbps.as_ref());
            values.map_or(0, |values| values.n)
        };
        let of_kernel = trusted(&self.kernel);
        ensure!(
            of_kernel == REPEATS,
            "{name}: {of_kernel} of {REPEATS} runs ended well and are trusted, after {RETRIES} retries"
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

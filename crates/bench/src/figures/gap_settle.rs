// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long a flow of a learned path takes to have the new rate when it becomes another path, and whether settings are taken
//! back of the flows behind it (`experiments/gap/settle.toml`).

use crate::figure::{Better, Figure, Summary};
use crate::lab::{self, Case};
use crate::run::Run;
use anyhow::{Context, Result, ensure};
use fatpath_gap::settle;
use std::fs;
use std::path::Path;

const SCENARIO: &str = "gap/settle.toml";

/// With the rates that the paths have behind the change, b/s.
const PATHS: [(&str, f64); 2] = [("500m-100ms-falls", 1e8), ("500m-50ms-doubles", 5e8)];

/// Of both paths.
pub const FIGURE: Figure = Figure {
    name: "gap.settle_s",
    what: "seconds after a path's rate fell to a fifth, and its RTT doubled, until the flow that lives has 0.8 of its rate \
           in any five seconds; the longer of both. Settings that ten later flows have taken back fail it",
    unit: "s",
    better: Better::Lower,
    goal: Some(30.0),
    summary: Summary::Worst,
    measure,
};

fn measure(run: &Run) -> Result<Vec<f64>> {
    let of_path = |(path, rate_bps)| {
        let kept = lab::kept(run, &Case::of(SCENARIO, "auto").path(path))?;
        let history = fs::read_to_string(kept.path().join("history.jsonl"))?;
        let intervals = settle::intervals(&history).context("the run failed")?;
        let settled = settle::settled_s(&intervals, rate_bps);
        let states = states(kept.path())?;
        run.say(format!("  {path}: {settled:?} s, then {states}"));
        ensure!(!states.contains("quarantined"), "{path}: {states}");
        settled.with_context(|| format!("{path}: never"))
    };
    PATHS.into_iter().map(of_path).collect()
}

/// Of the daemon's paths, at the end.
fn states(folder: &Path) -> Result<String> {
    let mut files = fs::read_dir(folder.join("runs"))?.flatten();
    // The first program of the scenario.
    let is_it = |name: String| name.ends_with(".1-source-sh.out");
    let file = files.find(|file| is_it(file.file_name().to_string_lossy().into_owned()));
    let known = fs::read_to_string(file.context("nothing asked for the paths")?.path())?;
    settle::states(&known).context("no paths")
}

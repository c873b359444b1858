// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long flows of a learned path take to have its new rate when it becomes another path (`experiments/gap/settle.toml`).

use crate::figure::{Better, Figure, Summary};
use crate::lab::{self, Case};
use crate::run::Run;
use anyhow::{Context, Result};
use fatpath_gap::settle::{intervals, settled_s};
use serde_json::Value;
use std::fs;
use std::path::Path;

const SCENARIO: &str = "gap/settle.toml";

/// With the rates that the paths have behind the change, b/s.
const PATHS: [(&str, f64); 2] = [("500m-100ms-falls", 1e8), ("500m-50ms-doubles", 5e8)];

/// Of both paths.
pub const FIGURE: Figure = Figure {
    name: "gap.settle_s",
    what: "seconds after a path's rate fell to a fifth, and its RTT doubled, until its flows together have 0.8 of its rate \
           in any five seconds; the longer of both",
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
        let intervals = intervals(&history).context("the run failed")?;
        let settled = settled_s(&intervals, rate_bps);
        run.say(format!(
            "  {path}: {settled:?} s, then {}",
            states(kept.path())?
        ));
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
    let text = fs::read_to_string(file.context("nothing asked for the paths")?.path())?;
    let known: Value = serde_json::from_str(&text)?;
    let paths = known["paths"].as_array().context("no paths")?;
    let states: Vec<String> = paths.iter().map(|path| path["state"].to_string()).collect();
    Ok(states.join(", "))
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long flows of a learned path take to have its new rate when it becomes another path (`experiments/gap/settle.toml`).

use crate::figure::{Better, Figure, Summary};
use crate::lab::{self, Case};
use crate::run::Run;
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::fs;
use std::path::Path;

const SCENARIO: &str = "gap/settle.toml";

/// With the rates that the paths have behind the change, b/s.
const PATHS: [(&str, f64); 2] = [("500m-100ms-falls", 1e8), ("500m-50ms-doubles", 5e8)];

/// When the path changes and when the long flow ends, seconds since the programs began.
const CHANGED_S: f64 = 48.0;
const ENDS_S: f64 = 98.0;

/// Settled: from then on the flows have this share of the rate in any five seconds.
const SHARE: f64 = 0.8;
const WINDOW_S: f64 = 5.0;

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
        let intervals = intervals(kept.path())?;
        let settled = settled_s(&intervals, rate_bps);
        let state = state(kept.path())?;
        run.say(format!("  {path}: {settled:?} s, then {state}"));
        settled.with_context(|| format!("{path}: never"))
    };
    PATHS.into_iter().map(of_path).collect()
}

/// The throughput of a stretch of time.
#[derive(Clone, Copy, Debug, Deserialize)]
struct Interval {
    start: f64,
    end: f64,
    bits_per_second: f64,
}

/// Of all flows together.
fn intervals(folder: &Path) -> Result<Vec<Interval>> {
    #[derive(Deserialize)]
    struct Entry {
        run: Kept,
    }
    #[derive(Deserialize)]
    struct Kept {
        measured: Measured,
    }
    #[derive(Deserialize)]
    struct Measured {
        intervals: Vec<Interval>,
    }
    let history = fs::read_to_string(folder.join("history.jsonl"))?;
    let last = history.lines().last().context("no run")?;
    Ok(serde_json::from_str::<Entry>(last)?.run.measured.intervals)
}

/// Of the path, at the end.
fn state(folder: &Path) -> Result<String> {
    #[derive(Deserialize)]
    struct Known {
        state: String,
    }
    let mut files = fs::read_dir(folder.join("runs"))?.flatten();
    let is_it = |name: String| name.ends_with("-sh.out");
    let file = files.find(|file| is_it(file.file_name().to_string_lossy().into_owned()));
    let text = fs::read_to_string(file.context("nothing asked for the paths")?.path())?;
    let known: Vec<Known> = serde_json::from_str(&text)?;
    ensure!(!known.is_empty(), "no path is known");
    let states: Vec<String> = known.into_iter().map(|path| path.state).collect();
    Ok(states.join(", "))
}

/// Seconds since the change; none if the last window is still too slow.
fn settled_s(intervals: &[Interval], rate_bps: f64) -> Option<f64> {
    let lived: Vec<&Interval> = intervals.iter().filter(|one| one.end <= ENDS_S).collect();
    let is_slow = |from: &&&Interval| {
        let window = lived
            .iter()
            .filter(|one| one.start >= from.start && one.end <= from.start + WINDOW_S);
        let bits: f64 = window
            .map(|one| one.bits_per_second * (one.end - one.start))
            .sum();
        bits < SHARE * rate_bps * WINDOW_S
    };
    let begins = lived
        .iter()
        .filter(|one| one.start >= CHANGED_S && one.start + WINDOW_S <= ENDS_S);
    match begins.clone().rfind(is_slow) {
        None => Some(0.0),
        // The first window behind the last slow one.
        Some(slow) => {
            let next = begins
                .map(|one| one.start)
                .find(|start| *start > slow.start);
            next.map(|start| start - CHANGED_S)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A second each, from the change to the end of the flow.
    fn seconds(mbps: impl Fn(f64) -> f64) -> Vec<Interval> {
        let of = |second| Interval {
            start: CHANGED_S + second,
            end: CHANGED_S + second + 1.0,
            bits_per_second: mbps(second) * 1e6,
        };
        (0..50).map(|second| of(f64::from(second))).collect()
    }

    #[test]
    fn it_is_settled_behind_the_last_slow_window() {
        let settled = |mbps: fn(f64) -> f64| settled_s(&seconds(mbps), 1e8);
        assert_eq!(settled(|_| 90.0), Some(0.0));
        assert_eq!(settled(|_| 70.0), None);
        assert_eq!(
            settled(|second| if second < 10.0 { 20.0 } else { 90.0 }),
            Some(10.0)
        );
        assert_eq!(
            settled(|second| if second == 20.0 { 0.0 } else { 90.0 }),
            Some(21.0)
        );
    }
}

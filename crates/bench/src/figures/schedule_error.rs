// SPDX-License-Identifier: MIT OR Apache-2.0
//! How late scheduled tests start: a daemon with 200 tests, each of which starts a program every 5 s.

use super::measured_tests::outcomes;
use crate::alone::Alone;
use crate::figure::{Better, Figure, Summary};
use crate::instance::{RUN_DIR, TICK, place};
use crate::loaded::Loaded;
use crate::run::Run;
use anyhow::{Context, Result, ensure};
use fatpath_api::TestOutcome;
use std::time::{Duration, Instant};

const TESTS: usize = 200;
const RUNS: usize = 1_000;
const POLICY: &str = "[archive]\n";
/// They take 25 s when none is late.
const ALL_WITHIN: Duration = Duration::from_secs(120);

/// The 99th percentile of a thousand.
pub const FIGURE: Figure = Figure {
    name: "measure.schedule_error",
    what: "99th percentile of start - due, 1,000 runs of 200 tests",
    unit: "s",
    better: Better::Lower,
    goal: Some(1.0),
    summary: Summary::Worst,
    measure,
};

fn measure(run: &Run) -> Result<Vec<f64>> {
    let alone = Alone::wait(run)?;
    std::fs::create_dir_all(RUN_DIR).context(RUN_DIR)?;
    std::fs::write(place("measure.toml"), plan())?;
    let _loaded = Loaded::start(run, &alone, POLICY, None)?;
    let end = Instant::now() + ALL_WITHIN;
    let mut late_s = loop {
        run.pause(50 * TICK)?;
        let late_s = late_s(run)?;
        if late_s.len() >= RUNS {
            break late_s;
        }
        ensure!(Instant::now() < end, "{} runs only", late_s.len());
    };
    late_s.sort_by(f64::total_cmp);
    let at = |share: f64| late_s[(share * (late_s.len() - 1) as f64) as usize];
    run.say(format!(
        "  {} runs: median {:.4} s, 99 % {:.4} s, most {:.4} s",
        late_s.len(),
        at(0.5),
        at(0.99),
        at(1.0)
    ));
    Ok(vec![at(0.99)])
}

fn plan() -> String {
    let test = |n| {
        format!(
            "[[test]]\nname = 't{n}'\ntool = 'program'\nevery = '5s'\nduration = '1s'\n\
             run = ['echo', '{{\"x\": 1}}']\nvalues.x = {{ field = 'x', unit = '1' }}\n"
        )
    };
    (0..TESTS).map(test).collect()
}

/// How late each run that is archived by now was, in seconds.
fn late_s(run: &Run) -> Result<Vec<f64>> {
    let late = |outcome: TestOutcome| {
        let due_us = outcome.due_us.context("a run without a due time")?;
        Ok((outcome.start_us - due_us) as f64 / 1e6)
    };
    outcomes(run)?.into_iter().map(late).collect()
}

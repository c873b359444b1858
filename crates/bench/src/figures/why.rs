// SPDX-License-Identifier: MIT OR Apache-2.0
//! How often `fatpath why` is right: tests/why.rs emulates each cause and a healthy transfer, five times.
//!
//! A verdict is right when the findings at both ends are the wanted ones and no other.

use crate::figure::{Better, Figure, Summary};
use crate::run::Run;
use anyhow::{Context, Result, ensure};
use std::process::Command;

const REPEATS: u32 = 5;

/// Share of all verdicts.
pub const FIGURE: Figure = Figure {
    name: "why.accuracy",
    what: "right verdicts of fatpath why among emulated causes and healthy transfers, five times each",
    unit: "share",
    better: Better::Higher,
    goal: Some(1.0),
    summary: Summary::Median,
    measure,
};

fn measure(run: &Run) -> Result<Vec<f64>> {
    let (mut right, mut all) = (0, 0);
    for repeat in 1..=REPEATS {
        run.check()?;
        let said = verdicts()?;
        for line in said
            .lines()
            .filter_map(|line| line.strip_prefix("verdict: "))
        {
            run.say(format!("  {repeat}: {line}"));
            right += u32::from(line.starts_with("right"));
            all += 1;
        }
    }
    ensure!(all > 0, "no cause could be emulated: is this root?");
    Ok(vec![f64::from(right) / f64::from(all)])
}

/// What the test prints; it fails where a verdict is wrong, and that is counted here.
fn verdicts() -> Result<String> {
    let arguments = [
        "test",
        "--quiet",
        "-p",
        "fatpath-cli",
        "--test",
        "why",
        "--",
        "--nocapture",
        "--ignored",
    ];
    let output = Command::new("cargo").args(arguments).output();
    let output = output.context("cannot run cargo test")?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

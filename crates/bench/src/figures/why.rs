// SPDX-License-Identifier: MIT OR Apache-2.0
//! How often `fatpath why` is right: tests/why.rs emulates each cause and a healthy transfer, five times.
//!
//! A verdict is right when the findings at both ends are the wanted ones and no other.

use crate::figure::{Better, Figure, Summary};
use crate::printed::printed;
use crate::run::Run;
use anyhow::{Result, ensure};

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

/// Of each cause that has a cure with an expected gain.
pub const GAIN_ERROR: Figure = Figure {
    name: "why.gain_error",
    what: "what the cure of a finding of fatpath why gives, against what the finding expects of it",
    unit: "share",
    better: Better::Lower,
    goal: Some(0.25),
    summary: Summary::Median,
    measure: measure_gains,
};

fn measure_gains(run: &Run) -> Result<Vec<f64>> {
    let printed = printed("why", "what_cures_give_is_printed_with_what_was_expected")?;
    let lines = printed
        .lines()
        .filter_map(|line| line.strip_prefix("gain: "));
    let errors: Vec<f64> = lines
        .inspect(|line| run.say(format!("  {line}")))
        .filter_map(gain_error)
        .collect();
    ensure!(
        !errors.is_empty(),
        "no cause could be emulated: is this root?"
    );
    Ok(errors)
}

/// Warnings and problems among flows of which nothing is wrong.
pub const FALSE_PER_1000: Figure = Figure {
    name: "why.false_per_1000",
    what: "warnings and problems of fatpath why among 1,000 flows of ordinary traffic: web, database, SSH, video, backups",
    unit: "findings",
    better: Better::Lower,
    goal: Some(1.0),
    summary: Summary::Median,
    measure: measure_false,
};

fn measure_false(run: &Run) -> Result<Vec<f64>> {
    let printed = printed("why", "findings_of_ordinary_traffic_are_printed")?;
    let lines = printed
        .lines()
        .filter_map(|line| line.strip_prefix("ordinary: "));
    let counts = lines
        .inspect(|line| run.say(format!("  {line}")))
        .filter_map(counts);
    let (found, flows) = counts.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    ensure!(flows > 0.0, "no traffic could be emulated: is this root?");
    Ok(vec![1000.0 * found / flows])
}

/// Of `NAME: 1 of 250` both numbers.
fn counts(line: &str) -> Option<(f64, f64)> {
    let (_, numbers) = line.split_once(": ")?;
    let (found, flows) = numbers.split_once(" of ")?;
    Some((found.parse().ok()?, flows.parse().ok()?))
}

/// Of `NAME ID: expected 1.5 reached 1.2` the deviation of what was expected.
fn gain_error(line: &str) -> Option<f64> {
    let (_, numbers) = line.split_once(": expected ")?;
    let (expected, reached) = numbers.split_once(" reached ")?;
    let (expected, reached): (f64, f64) = (expected.parse().ok()?, reached.parse().ok()?);
    Some((expected / reached - 1.0).abs())
}

fn measure(run: &Run) -> Result<Vec<f64>> {
    let (mut right, mut all) = (0, 0);
    for repeat in 1..=REPEATS {
        run.check()?;
        let said = printed("why", "each_cause_is_found_and_no_other")?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_expected_is_compared_with_what_was_reached() {
        let error = gain_error("send-buffer FP-SNDBUF: expected 1.50 reached 1.20");
        assert!((error.expect("both numbers are there") - 0.25).abs() < 1e-9);
        assert_eq!(gain_error("no numbers"), None);
        assert_eq!(counts("web-far: 1 of 250"), Some((1.0, 250.0)));
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `fatpath analyse` says, beside the kernel that made the packets and the path that is known: tests/capture_kernel.rs
//! emulates and prints it.

use crate::figure::{Better, Figure, Summary};
use crate::printed::printed;
use crate::run::Run;
use anyhow::{Result, ensure};

/// Share of all scenarios.
pub const KINDS_EXACT: Figure = Figure {
    name: "capture.kinds_exact",
    what: "analyse: scenarios in which retransmissions by kind are exactly the kernel's own counters, of 20",
    unit: "share",
    better: Better::Higher,
    goal: Some(1.0),
    summary: Summary::Median,
    measure: |run| {
        share(
            run,
            "kinds_of_each_scenario_are_those_of_the_kernel",
            "kinds: ",
        )
    },
};

/// The worst of four paths.
pub const RTT_ERROR: Figure = Figure {
    name: "capture.rtt_error",
    what: "analyse: median round-trip time of a capture at the sender, against that of tcpi_rtt, four paths",
    unit: "share",
    better: Better::Lower,
    goal: Some(0.02),
    summary: Summary::Worst,
    measure: rtt_errors,
};

/// Share of all causes and healthy transfers.
pub const FINDINGS: Figure = Figure {
    name: "capture.findings",
    what: "analyse: right findings on captures of the causes of why.accuracy, and none on healthy transfers",
    unit: "share",
    better: Better::Higher,
    goal: Some(1.0),
    summary: Summary::Median,
    measure: |run| {
        share(
            run,
            "a_capture_shows_each_cause_that_it_can_and_no_other",
            "findings: ",
        )
    },
};

/// Of lines that say `right`.
fn share(run: &Run, test: &str, prefix: &str) -> Result<Vec<f64>> {
    let said = printed("capture_kernel", test)?;
    let lines = said.lines().filter_map(|line| line.strip_prefix(prefix));
    let verdicts: Vec<bool> = lines
        .inspect(|line| run.say(format!("  {line}")))
        .map(|line| line.starts_with("right"))
        .collect();
    ensure!(
        !verdicts.is_empty(),
        "nothing could be captured: is this root, is tcpdump there?"
    );
    let right = verdicts.iter().filter(|is_right| **is_right).count();
    Ok(vec![right as f64 / verdicts.len() as f64])
}

fn rtt_errors(run: &Run) -> Result<Vec<f64>> {
    let said = printed(
        "capture_kernel",
        "round_trips_are_printed_beside_the_kernels",
    )?;
    let lines = said.lines().filter_map(|line| line.strip_prefix("rtt: "));
    let errors: Vec<f64> = lines
        .inspect(|line| run.say(format!("  {line}")))
        .filter_map(rtt_error)
        .collect();
    ensure!(
        !errors.is_empty(),
        "nothing could be captured: is this root, is tcpdump there?"
    );
    Ok(errors)
}

/// Of `NAME: 40100 the kernel 40000 of 900 samples` the deviation from the kernel's.
fn rtt_error(line: &str) -> Option<f64> {
    let (_, numbers) = line.split_once(": ")?;
    let (ours, rest) = numbers.split_once(" the kernel ")?;
    let (kernels, _) = rest.split_once(' ')?;
    let (ours, kernels): (f64, f64) = (ours.parse().ok()?, kernels.parse().ok()?);
    Some(ours / kernels - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_is_compared_with_the_kernels() {
        let error = rtt_error("queue: 40400 the kernel 40000 of 900 samples");
        assert!((error.expect("both numbers are there") - 0.01).abs() < 1e-9);
        assert_eq!(rtt_error("no numbers"), None);
    }
}

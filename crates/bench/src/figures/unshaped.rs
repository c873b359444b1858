// SPDX-License-Identifier: MIT OR Apache-2.0
//! How fast the emulator itself is: one TCP flow over a link that does nothing.

use crate::alone::{Alone, NETWORK};
use crate::figure::{Better, Figure, Summary};
use crate::run::Run;
use anyhow::Result;
use fatpath_emulator::{ChainSpec, unshaped};

const RUNS: u32 = 5;
const SECONDS: u32 = 5;

/// Median of five runs of iperf3.
pub const FIGURE: Figure = Figure {
    name: "emulator.unshaped_gbps",
    what: "one TCP flow through an emulated link without rate, delay or loss",
    unit: "Gb/s",
    better: Better::Higher,
    goal: Some(12.0),
    summary: Summary::Median,
    measure,
};

fn measure(run: &Run) -> Result<Vec<f64>> {
    let _alone = Alone::wait(run)?;
    let mut samples = Vec::new();
    for n in 1..=RUNS {
        run.check()?;
        let gbps = unshaped::tcp_gbps(NETWORK, &ChainSpec::default(), SECONDS)?;
        run.say(format!("  run {n} of {RUNS}: {gbps:.2} Gb/s"));
        samples.push(gbps);
    }
    Ok(samples)
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What splitting every super-packet costs: one TCP flow over an `exact` link that does nothing else.

use crate::alone::{Alone, NETWORK};
use crate::figure::{Better, Figure, Summary};
use crate::run::Run;
use anyhow::Result;
use fatpath_emulator::{ChainSpec, unshaped};

const RUNS: u32 = 5;
const SECONDS: u32 = 5;

/// Median of five runs of iperf3.
pub const FIGURE: Figure = Figure {
    name: "emulator.exact_gbps",
    what: "one TCP flow through an emulated link that does nothing but split packets, to 1,500 bytes",
    unit: "Gb/s",
    better: Better::Higher,
    goal: Some(1.5),
    summary: Summary::Median,
    measure,
};

fn measure(run: &Run) -> Result<Vec<f64>> {
    let _alone = Alone::wait(run)?;
    let mut topology = unshaped::two_hosts(NETWORK, &ChainSpec::default());
    topology.links[0].exact = true;
    let gbps = |n| {
        run.check()?;
        let (gbps, _) = unshaped::tcp_gbps_over(&topology, SECONDS)?;
        run.say(format!("  run {n} of {RUNS}: {gbps:.2} Gb/s"));
        Ok(gbps)
    };
    (1..=RUNS).map(gbps).collect()
}

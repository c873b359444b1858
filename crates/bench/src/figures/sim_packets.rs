// SPDX-License-Identifier: MIT OR Apache-2.0
//! How fast the simulator is: one flow over 1 Gb/s, 100 ms and one loss in 100,000.

use crate::figure::{Better, Figure, Summary};
use crate::run::Run;
use crate::simulated::{cost, path, unlimited_flow};
use anyhow::{Context, Result};
use fatpath_cc::Law;
use fatpath_link::CellSpec;

const RATE_BPS: u64 = 1_000_000_000;
/// Rate × round trip.
const QUEUE_BYTES: u64 = 12_500_000;
const LOSS: f64 = 1e-5;
const RUNS: u64 = 5;
/// Of simulated time: two million packets and more.
const SECONDS: u64 = 60;

/// Median of five runs a law, each with other losses.
pub const FIGURE: Figure = Figure {
    name: "sim.packets_per_s",
    what: "simulator: data packets delivered in a second of one core, 1 Gb/s x 100 ms, 1e-5 loss",
    unit: "packets/s",
    better: Better::Higher,
    goal: Some(1e6),
    summary: Summary::Median,
    measure,
};

fn measure(run: &Run) -> Result<Vec<f64>> {
    let mut samples = Vec::new();
    for seed in 1..=RUNS {
        for name in ["reno", "scalable"] {
            run.check()?;
            let law = Law::named(name).context(name)?;
            let cost = cost(&spec(law, seed))?;
            run.say(format!(
                "  {name}: {} packets, {:.0} ns each, {:.0} Mb/s simulated",
                cost.outcome.delivered_packets,
                cost.packet_ns,
                cost.outcome.flows[0].goodput_bps() / 1e6
            ));
            samples.push(1e9 / cost.packet_ns);
        }
    }
    Ok(samples)
}

fn spec(law: Law, seed: u64) -> fatpath_sim::Spec {
    let queue = CellSpec::rate(RATE_BPS, Some(QUEUE_BYTES));
    let mut spec = path([CellSpec::loss(LOSS), queue], SECONDS);
    spec.links[0].directions[0].seed = seed;
    spec.flows = vec![unlimited_flow(law)];
    spec
}

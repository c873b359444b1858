// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether an ACK costs the simulator more when the window is large: stacks that walked the whole send
//! queue spoiled the measurements of Scalable TCP (Kelly 2003). With a loss now and then, since it is in
//! recovery that they walk it.

use crate::figure::{Better, Figure, Summary};
use crate::run::Run;
use crate::simulated::{MSS_BYTES, cost, flow, path};
use anyhow::{Context, Result, ensure};
use fatpath_cc::Law;
use fatpath_link::{CellSpec, LossSpec};
use fatpath_sim::Spec;

const SMALL_PKTS: u64 = 200;
const LARGE_PKTS: u64 = 20_000;
/// Both deliver as much: three million packets.
const SMALL_SECONDS: u64 = 1_500;
const LARGE_SECONDS: u64 = SMALL_SECONDS * SMALL_PKTS / LARGE_PKTS;
/// Of the data; ten and more round trips of the larger window, by which Scalable TCP has recovered.
const LOSS_EVERY: u64 = 500_000;
/// No queue builds.
const RATE_BPS: u64 = 100_000_000_000;
const PAIRS: usize = 5;

/// Median of five pairs, run in turn.
pub const FIGURE: Figure = Figure {
    name: "sim.window_cost_ratio",
    what: "simulator: cost of a packet at a window of 20,000 over that at 200",
    unit: "ratio",
    better: Better::Lower,
    goal: Some(1.5),
    summary: Summary::Median,
    measure,
};

fn measure(run: &Run) -> Result<Vec<f64>> {
    (0..PAIRS).map(|_| ratio(run)).collect()
}

fn ratio(run: &Run) -> Result<f64> {
    run.check()?;
    let small_ns = packet_ns(SMALL_PKTS, SMALL_SECONDS)?;
    let large_ns = packet_ns(LARGE_PKTS, LARGE_SECONDS)?;
    run.say(format!(
        "  {small_ns:.0} ns at {SMALL_PKTS}, {large_ns:.0} ns at {LARGE_PKTS}"
    ));
    Ok(large_ns / small_ns)
}

fn packet_ns(window_pkts: u64, seconds: u64) -> Result<f64> {
    let cost = cost(&spec(window_pkts, seconds)?)?;
    let least = window_pkts as f64 * seconds as f64 * 10.0 * 0.8;
    ensure!(
        cost.outcome.delivered_packets as f64 > least,
        "the window was not {window_pkts}: {} packets",
        cost.outcome.delivered_packets
    );
    Ok(cost.packet_ns)
}

fn spec(window_pkts: u64, seconds: u64) -> Result<Spec> {
    let loss = CellSpec::Loss(LossSpec::Periodic {
        every: LOSS_EVERY,
        first: LOSS_EVERY,
    });
    let mut spec = path([loss, CellSpec::rate(RATE_BPS, None)], seconds);
    let law = Law::named("scalable").context("no law `scalable`")?;
    spec.flows = vec![flow(law, window_pkts * MSS_BYTES)];
    Ok(spec)
}

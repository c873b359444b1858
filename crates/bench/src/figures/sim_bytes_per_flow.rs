// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory of a simulated flow: 100,000 of them at once, in a process of its own, whose kernel says
//! how much it had at most.

use crate::figure::{Better, Figure, Summary};
use crate::run::Run;
use crate::simulated::{cost, path, unlimited_flow};
use anyhow::{Context, Result, ensure};
use fatpath_cc::Law;
use fatpath_link::CellSpec;
use std::process::Command;

const FLOWS: usize = 100_000;
/// A megabit a second each: nine segments in flight, and losses.
const RATE_BPS: u64 = 100_000_000_000;
/// A tenth of rate × round trip.
const QUEUE_BYTES: u64 = 125_000_000;
const SECONDS: u64 = 3;

/// One run: equal specs take equal memory.
pub const FIGURE: Figure = Figure {
    name: "sim.bytes_per_flow",
    what: "simulator: memory of each of 100,000 flows at once (4 GiB for all)",
    unit: "bytes",
    better: Better::Lower,
    goal: Some((4u64 << 30) as f64 / FLOWS as f64),
    summary: Summary::Worst,
    measure,
};

fn measure(run: &Run) -> Result<Vec<f64>> {
    let program = std::env::current_exe().context("cannot tell where this program is")?;
    let output = Command::new(program)
        .args(["--simulate-flows", &FLOWS.to_string()])
        .output()
        .context("cannot run this program again")?;
    let (said, error) = (&output.stdout, String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "{error}");
    let peak_bytes: u64 = String::from_utf8_lossy(said).trim().parse()?;
    run.say(format!(
        "  {:.2} GB in all, {}",
        peak_bytes as f64 / 1e9,
        error.trim()
    ));
    Ok(vec![peak_bytes as f64 / FLOWS as f64])
}

/// What the process of this figure does: prints the most memory that it had, bytes.
pub fn simulate_flows(flows: usize) -> Result<()> {
    let mut spec = path([CellSpec::rate(RATE_BPS, Some(QUEUE_BYTES))], SECONDS);
    spec.flows = vec![unlimited_flow(Law::RENO); flows];
    for (index, flow) in spec.flows.iter_mut().enumerate() {
        // All begin within the first second.
        flow.start_ns = index as u64 * 1_000_000_000 / flows as u64;
    }
    let cost = cost(&spec)?;
    let established = cost
        .outcome
        .flows
        .iter()
        .filter(|flow| flow.connections > 0);
    eprintln!(
        "{} flows, {} packets, {:.0} ns each",
        established.count(),
        cost.outcome.delivered_packets,
        cost.packet_ns
    );
    println!("{}", peak_bytes()?);
    Ok(())
}

fn peak_bytes() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.context("no VmHWM in /proc/self/status")?;
    let kib: u64 = peak.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kib * 1024)
}

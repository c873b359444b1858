// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the daemon uses of a processor while 20,000 established flows do nothing.
//!
//! In the kernel an idle flow costs nothing: its programs run at its own acknowledgements. What is left is
//! the daemon's own: its walks over all sockets among them.

use super::ALL;
use crate::alone::Alone;
use crate::cpu_time;
use crate::crowd::Crowd;
use crate::figure::{Better, Figure, Summary};
use crate::loaded::Loaded;
use crate::run::Run;
use anyhow::{Result, ensure};
use std::time::{Duration, Instant};

const SAMPLES: u32 = 3;
/// Several of the daemon's walks.
const SLICE: Duration = Duration::from_secs(120);
/// The flows' beginning is over, and for so long they did nothing that the daemon's walks leave them out.
const SETTLE: Duration = Duration::from_secs(45);

/// Median of three samples.
pub const FIGURE: Figure = Figure {
    name: "estats.idle_core_share",
    what: "share of a core that the daemon uses beside 20,000 idle flows",
    unit: "core",
    better: Better::Lower,
    goal: Some(0.003),
    summary: Summary::Median,
    measure: |run| beside(run, 20_000),
};

/// The same beside five times as many.
pub const FIGURE_100K: Figure = Figure {
    name: "estats.idle_core_share_100k",
    what: "share of a core that the daemon uses beside 100,000 idle flows",
    unit: "core",
    better: Better::Lower,
    goal: Some(0.01),
    summary: Summary::Median,
    measure: |run| beside(run, 100_000),
};

/// Of the flows all are sampled.
fn beside(run: &Run, flows: usize) -> Result<Vec<f64>> {
    let alone = Alone::wait(run)?;
    let policy = format!("{ALL}max_flows = {}\n", flows + 1000);
    let loaded = Loaded::start(run, &alone, &policy, None)?;
    let _crowd = Crowd::of(run, flows)?;
    run.pause(SETTLE)?;
    let counts = loaded.kernel()?.sample_counts()?;
    ensure!(
        counts.flows_sampled >= flows as u64 * 99 / 100,
        "{counts:?}"
    );
    let sample = |n| {
        let (before, start) = (cpu_time::of_process(loaded.pid())?, Instant::now());
        run.pause(SLICE)?;
        let used = cpu_time::of_process(loaded.pid())? - before;
        let share = used.as_secs_f64() / start.elapsed().as_secs_f64();
        run.say(format!("  sample {n} of {SAMPLES}: {share:.4}"));
        Ok(share)
    };
    (1..=SAMPLES).map(sample).collect()
}

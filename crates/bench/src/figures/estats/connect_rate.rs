// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the instruments cost a connection that does nothing else: a begin and an end of either side.
//! As `tune.connect_rate_ratio`, without a rule and with every flow sampled. The worst that can be asked.

use super::ALL;
use crate::figure::{Better, Figure, Summary};
use crate::figures::connect_rate::paired;
use crate::run::Run;
use anyhow::ensure;

/// Median of thirty samples.
pub const FIGURE: Figure = Figure {
    name: "estats.connect_rate_ratio",
    what: "connections a second over loopback, every flow sampled over unloaded",
    unit: "ratio",
    better: Better::Higher,
    goal: Some(0.95),
    summary: Summary::Median,
    measure,
};

fn measure(run: &Run) -> anyhow::Result<Vec<f64>> {
    paired(run, ALL, |loaded, connections| {
        let counts = loaded.kernel()?.sample_counts()?;
        let events = counts.samples + counts.samples_lost;
        ensure!(events >= 4 * connections.count, "{counts:?}: not sampled");
        Ok(())
    })
}

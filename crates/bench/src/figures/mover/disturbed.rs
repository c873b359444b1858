// SPDX-License-Identifier: MIT OR Apache-2.0
//! What reordering and bursts of loss take of a transfer: a file over a path that has them, and over the same path without.

use super::{Place, fill, moved_over, path, ratios};
use crate::alone::Alone;
use crate::figure::{Better, Figure, Summary};
use crate::run::Run;
use anyhow::Result;
use fatpath_emulator::Topology;
use fatpath_link::{CellSpec, LossSpec, ReorderSpec};

/// 10 s of the path.
const BYTES: u64 = 1_165_000_000;
const DISPLACED: CellSpec = CellSpec::Reorder(ReorderSpec {
    probability: 0.01,
    displacement_packets: 10,
    hold_limit_ns: 10_000_000, // where a scenario says nothing (docs/lab.md)
});
/// A burst each 10,000 segments, of ten in the mean.
const BURSTS: CellSpec = CellSpec::Loss(LossSpec::GilbertElliott {
    to_bad: 0.0001,
    to_good: 0.1,
    loss_in_good: 0.0,
    loss_in_bad: 1.0,
});

pub const REORDERED: Figure = Figure {
    name: "mover.reorder_ratio",
    what: "a file of 1.2 GB over 1 Gb/s x 100 ms, 1 % of segments displaced by 10: its rate over that on the path in order",
    unit: "ratio",
    better: Better::Higher,
    goal: Some(0.8),
    summary: Summary::Median,
    measure: |run| measure(run, &DISPLACED),
};

pub const IN_BURSTS: Figure = Figure {
    name: "mover.bursts_ratio",
    what: "the same with bursts of ten lost segments in the mean, one in 10,000 segments: its rate over that without loss",
    measure: |run| measure(run, &BURSTS),
    ..REORDERED
};

fn measure(run: &Run, disturbance: &CellSpec) -> Result<Vec<f64>> {
    let _alone = Alone::wait(run)?;
    let place = Place::new()?;
    fill(&place.path("file"), BYTES, 1)?;
    let over = |path: &Topology| moved_over(run, &place, path, "file");
    ratios(run, |seed| {
        let clean = path(50, 0.0, seed);
        let disturbed = disturbed(clean.clone(), disturbance);
        Ok([over(&disturbed)?, over(&clean)?])
    })
}

/// Segments of the data meet it behind the bottleneck.
fn disturbed(mut path: Topology, disturbance: &CellSpec) -> Topology {
    let cells = &mut path.links[0].directions[0].cells;
    cells.insert(1, disturbance.clone());
    path
}

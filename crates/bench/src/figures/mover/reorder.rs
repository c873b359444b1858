// SPDX-License-Identifier: MIT OR Apache-2.0
//! What reordering takes of a transfer: a file over a path that displaces segments, and over the same path in order.

use super::{Place, fill, moved_over, path, ratios};
use crate::alone::Alone;
use crate::figure::{Better, Figure, Summary};
use crate::run::Run;
use anyhow::Result;
use fatpath_emulator::Topology;
use fatpath_link::{CellSpec, ReorderSpec};

/// 10 s of the path.
const BYTES: u64 = 1_165_000_000;
const DISPLACED: ReorderSpec = ReorderSpec {
    probability: 0.01,
    displacement_packets: 10,
    hold_limit_ns: 10_000_000, // where a scenario says nothing (docs/lab.md)
};

pub const FIGURE: Figure = Figure {
    name: "mover.reorder_ratio",
    what: "a file of 1.2 GB over 1 Gb/s x 100 ms, 1 % of segments displaced by 10: its rate over that on the path in order",
    unit: "ratio",
    better: Better::Higher,
    goal: Some(0.8),
    summary: Summary::Median,
    measure,
};

fn measure(run: &Run) -> Result<Vec<f64>> {
    let _alone = Alone::wait(run)?;
    run.say_load()?;
    let place = Place::new()?;
    fill(&place.path("file"), BYTES, 1)?;
    let over = |path: &Topology| moved_over(run, &place, path, "file");
    ratios(run, |seed| {
        let clean = path(50, 0.0, seed);
        Ok([over(&displacing(clean.clone()))?, over(&clean)?])
    })
}

/// Segments of the data are displaced behind the bottleneck.
fn displacing(mut path: Topology) -> Topology {
    let cells = &mut path.links[0].directions[0].cells;
    cells.insert(1, CellSpec::Reorder(DISPLACED));
    path
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What it takes of a transfer that its bytes are in many files: a folder over a long path, and one file of as many bytes.

use super::{Place, fill, fill_folder, moved_over, path, ratios};
use crate::alone::Alone;
use crate::figure::{Better, Figure, Summary};
use crate::run::Run;
use anyhow::Result;

const FILES: u64 = 2_000;
const FILE_BYTES: u64 = 1_000_000;

pub const FIGURE: Figure = Figure {
    name: "mover.small_files_ratio",
    what: "2,000 files of 1 MB over 1 Gb/s x 100 ms: their rate over that of one file of 2 GB",
    unit: "ratio",
    better: Better::Higher,
    goal: Some(0.9),
    summary: Summary::Median,
    measure,
};

fn measure(run: &Run) -> Result<Vec<f64>> {
    let _alone = Alone::wait(run)?;
    let place = Place::new()?;
    fill_folder(&place.path("files"), FILES, FILE_BYTES)?;
    fill(&place.path("file"), FILES * FILE_BYTES, 1)?;
    ratios(run, |seed| {
        let over = |what| moved_over(run, &place, &path(50, 0.0, seed), what);
        Ok([over("files")?, over("file")?])
    })
}

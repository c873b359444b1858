// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the mark costs: processor time per byte of one flow over veth with TSO, its segments marked, over
//! that of the same flow while the interface has no filter.
//!
//! One connection, slices in turn. As in `law.reno_cpu_ratio` one thread on one processor does all the
//! work, in its own time. The flow keeps the host's law, so that the mark alone differs.

use crate::alone::Alone;
use crate::figure::{Better, Figure, Summary};
use crate::loaded::Loaded;
use crate::one_processor::OneProcessor;
use crate::run::Run;
use crate::transfer::Transfer;
use crate::wire::Wire;
use anyhow::{Result, ensure};
use fatpath_kernel::Kernel;
use std::fs::File;
use std::os::fd::AsFd;
use std::time::Duration;

/// Samples, each the median of as many pairs of slices.
const SAMPLES: u32 = 30;
const PAIRS_A_SAMPLE: u32 = 10;
/// Long against the first touch of caches, short against the machine's moods.
const SLICE: Duration = Duration::from_millis(40);

/// Median of thirty samples.
pub const FIGURE: Figure = Figure {
    name: "rude.mark_cpu_ratio",
    what: "processor time per byte of a flow over veth with TSO, marked over without a filter",
    unit: "ratio",
    better: Better::Lower,
    goal: Some(1.02),
    summary: Summary::Median,
    measure,
};

fn measure(run: &Run) -> Result<Vec<f64>> {
    let alone = Alone::wait(run)?;
    let loaded = Loaded::start(run, &alone, "# tunes nothing\n", None)?;
    let kernel = loaded.kernel()?;
    let wire = Wire::lay(&alone)?;
    let (sender, receiver) = wire.connection()?;
    kernel.mark_as_if_rude(sender.as_fd())?;
    let mut pair = Pair {
        kernel: &kernel,
        client: wire.client_file()?,
        transfer: Transfer::new(sender, receiver)?,
    };
    let _one = OneProcessor::keep()?;
    pair.plain()?;
    (1..=SAMPLES).map(|n| sample(run, &mut pair, n)).collect()
}

/// Time of marked over time of plain, for the same bytes.
fn sample(run: &Run, pair: &mut Pair<'_>, n: u32) -> Result<f64> {
    run.check()?;
    let ratios = (0..PAIRS_A_SAMPLE).map(|turn| {
        let (marked, plain) = match turn % 2 {
            0 => (pair.marked()?, pair.plain()?),
            _ => {
                let plain = pair.plain()?;
                (pair.marked()?, plain)
            }
        };
        Ok(plain / marked)
    });
    let ratio = Summary::Median
        .of(&ratios.collect::<Result<Vec<f64>>>()?)
        .expect("there are pairs");
    run.say(format!("  sample {n} of {SAMPLES}: {ratio:.3}"));
    Ok(ratio)
}

struct Pair<'k> {
    kernel: &'k Kernel,
    client: File,
    transfer: Transfer,
}

impl Pair<'_> {
    fn marked(&mut self) -> Result<f64> {
        let before = self.marked_pkts()?;
        self.kernel.mark_in(&self.client)?;
        let bytes_per_s = self.transfer.bytes_per_s(SLICE)?;
        ensure!(self.marked_pkts()? > before, "nothing was marked");
        self.kernel.unmark_in(&self.client)?;
        Ok(bytes_per_s)
    }

    fn plain(&mut self) -> Result<f64> {
        let before = self.marked_pkts()?;
        let bytes_per_s = self.transfer.bytes_per_s(SLICE)?;
        ensure!(self.marked_pkts()? == before, "marked without a filter");
        Ok(bytes_per_s)
    }

    fn marked_pkts(&self) -> Result<u32> {
        Ok(self.kernel.marked_pkts(self.transfer.sender.as_fd())?)
    }
}

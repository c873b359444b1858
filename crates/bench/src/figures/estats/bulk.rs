// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a bulk flow gets over veth with TSO while it is sampled every millisecond, over what one gets that
//! none of fatpath's programs sees.
//!
//! Two connections, slices in turn: one was made in the cgroup whose flows are sampled, the other
//! outside. One thread on one processor serves both ends.

use crate::alone::Alone;
use crate::figure::{Better, Figure, Summary};
use crate::group::Group;
use crate::loaded::Loaded;
use crate::one_processor::OneProcessor;
use crate::run::Run;
use crate::transfer::Transfer;
use crate::wire::Wire;
use anyhow::{Result, ensure};
use std::time::Duration;

/// Samples, each the median of as many pairs of slices.
const SAMPLES: u32 = 30;
const PAIRS_A_SAMPLE: u32 = 10;
const SLICE: Duration = Duration::from_millis(40);
const POLICY: &str = "[instruments]\ninterval = '1ms'\n";

/// Median of thirty samples.
pub const FIGURE: Figure = Figure {
    name: "estats.bulk_goodput_ratio",
    what: "goodput of a bulk flow sampled each millisecond, over one that is not",
    unit: "ratio",
    better: Better::Higher,
    goal: Some(0.97),
    summary: Summary::Median,
    measure,
};

fn measure(run: &Run) -> Result<Vec<f64>> {
    let alone = Alone::wait(run)?;
    let group = Group::make()?;
    let loaded = Loaded::start(run, &alone, POLICY, Some(group.path()))?;
    let kernel = loaded.kernel()?;
    let wire = Wire::lay(&alone)?;
    group.enter()?;
    let sampled = wire.connection();
    group.leave()?;
    let (sender, receiver) = sampled?;
    let mut sampled = Transfer::new(sender, receiver)?;
    let (sender, receiver) = wire.connection()?;
    let mut plain = Transfer::new(sender, receiver)?;
    let _one = OneProcessor::keep()?;
    plain.bytes_per_s(SLICE)?;
    sampled.bytes_per_s(SLICE)?;
    let before = kernel.sample_counts()?.samples;
    let samples = (1..=SAMPLES).map(|n| sample(run, &mut sampled, &mut plain, n));
    let samples = samples.collect::<Result<Vec<f64>>>()?;
    let made = kernel.sample_counts()?.samples - before;
    let slices_ms = u128::from(SAMPLES * PAIRS_A_SAMPLE) * SLICE.as_millis();
    run.say(format!("  {made} samples in {slices_ms} ms of its slices"));
    // A round trip of full buffers lasts some milliseconds.
    ensure!(
        u128::from(made) > slices_ms / 20,
        "the flow was not sampled"
    );
    Ok(samples)
}

fn sample(run: &Run, sampled: &mut Transfer, plain: &mut Transfer, n: u32) -> Result<f64> {
    run.check()?;
    let ratios = (0..PAIRS_A_SAMPLE).map(|turn| {
        let (with, without) = match turn % 2 {
            0 => (sampled.bytes_per_s(SLICE)?, plain.bytes_per_s(SLICE)?),
            _ => {
                let without = plain.bytes_per_s(SLICE)?;
                (sampled.bytes_per_s(SLICE)?, without)
            }
        };
        Ok(with / without)
    });
    let ratio = Summary::Median
        .of(&ratios.collect::<Result<Vec<f64>>>()?)
        .expect("there are pairs");
    run.say(format!("  sample {n} of {SAMPLES}: {ratio:.3}"));
    Ok(ratio)
}

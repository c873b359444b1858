// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a rude flow reaches of a long path that loses packets: goodput of its first 20 s, start-up included, over
//! the link's rate x (1 - loss). 1 Gb/s and 100 ms, the real kernel, `experiments/rude/share.toml`; with a share
//! of 950 Mb/s, without one, and over Reno on the same path.

use crate::figure::{Better, Figure, Summary};
use crate::lab::{self, Case, Reached};
use crate::run::Run;
use anyhow::{Context, Result};

const SCENARIO: &str = "rude/share.toml";

/// With a share, without one, and over Reno, whose goodput is of the same losses, repeat by repeat.
pub const FIGURES: [Figure; 14] = [
    with_rate("rude.share_with_rate.0", 0.85, |run| rated(run, "0%")),
    with_rate("rude.share_with_rate.0.01", 0.85, |run| rated(run, "0.01%")),
    with_rate("rude.share_with_rate.0.1", 0.85, |run| rated(run, "0.1%")),
    with_rate("rude.share_with_rate.1", 0.85, |run| rated(run, "1%")),
    with_rate("rude.share_with_rate.5", 0.75, |run| rated(run, "5%")),
    without_rate("rude.share_without_rate.0", |run| unrated(run, "0%")),
    without_rate("rude.share_without_rate.0.01", |run| unrated(run, "0.01%")),
    without_rate("rude.share_without_rate.0.1", |run| unrated(run, "0.1%")),
    without_rate("rude.share_without_rate.1", |run| unrated(run, "1%")),
    over_reno("rude.over_reno.0", None, |run| ratios(run, "0%")),
    over_reno("rude.over_reno.0.01", None, |run| ratios(run, "0.01%")),
    over_reno("rude.over_reno.0.1", Some(50.0), |run| ratios(run, "0.1%")),
    over_reno("rude.over_reno.1", Some(50.0), |run| ratios(run, "1%")),
    over_reno("rude.over_reno.5", Some(50.0), |run| ratios(run, "5%")),
];

type Measure = fn(&Run) -> Result<Vec<f64>>;

const fn with_rate(name: &'static str, goal: f64, measure: Measure) -> Figure {
    Figure {
        name,
        what: "goodput of a rude flow of 950 Mb/s over 1 Gb/s x 100 ms, over rate x (1 - loss); loss in % at the end",
        unit: "share",
        better: Better::Higher,
        goal: Some(goal),
        summary: Summary::Median,
        measure,
    }
}

const fn without_rate(name: &'static str, measure: Measure) -> Figure {
    Figure {
        what: "the same of a rude flow that was not told its share",
        ..with_rate(name, 0.80, measure)
    }
}

const fn over_reno(name: &'static str, goal: Option<f64>, measure: Measure) -> Figure {
    Figure {
        what: "goodput of a rude flow of 950 Mb/s over that of Reno on the same path",
        unit: "ratio",
        goal,
        ..with_rate(name, 0.0, measure)
    }
}

fn rated(run: &Run, loss: &'static str) -> Result<Vec<f64>> {
    shares(run, "rude-share", loss)
}

fn unrated(run: &Run, loss: &'static str) -> Result<Vec<f64>> {
    shares(run, "rude", loss)
}

fn shares(run: &Run, variant: &'static str, loss: &'static str) -> Result<Vec<f64>> {
    let kept = 1.0 - percent(loss)? / 100.0;
    let share = |reached: Reached| reached.goodput_mbps / (reached.bottleneck_mbps * kept);
    Ok(reached(run, variant, loss)?
        .into_iter()
        .map(share)
        .collect())
}

fn ratios(run: &Run, loss: &'static str) -> Result<Vec<f64>> {
    let rude = reached(run, "rude-share", loss)?;
    let reno = reached(run, "reno", loss)?;
    let pairs = rude.into_iter().zip(reno);
    let ratio = |(rude, reno): (Reached, Reached)| rude.goodput_mbps / reno.goodput_mbps;
    Ok(pairs.map(ratio).collect())
}

fn percent(text: &str) -> Result<f64> {
    let number = text.strip_suffix('%').context("a loss in %")?;
    Ok(number.parse()?)
}

fn reached(run: &Run, variant: &'static str, loss: &'static str) -> Result<Vec<Reached>> {
    lab::runs(run, Case::of(SCENARIO, variant).vary("loss", loss))
}

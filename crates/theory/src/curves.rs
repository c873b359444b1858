// SPDX-License-Identifier: MIT OR Apache-2.0
//! What laws are expected to reach, drawn over the loss rate.

use super::given::kernel_name;
use anyhow::{Context, Result};
use fatpath_cc::Law;
use fatpath_model::Path;
use fatpath_model::throughput::of_law;
use fatpath_plot::{Curve, Format, RatesOverLoss, picture};

/// Loss rates from 10^-9 to 10^-1, eight of each decade.
const DECADES: std::ops::Range<i32> = -9..-1;
const OF_DECADE: i32 = 8;

/// One line a law, by the first of its models, as far as that holds.
pub fn write(file: &std::path::Path, laws: &[Law], path: &Path, streams: u32) -> Result<()> {
    let lines = laws
        .iter()
        .map(|law| (kernel_name(law), curve(law, path, streams)));
    let figure = RatesOverLoss {
        title: format!("Rates by loss rate, round trip of {} ms", path.rtt_s * 1e3),
        lines: lines.filter(|(_, line)| !line.is_empty()).collect(),
    };
    let format = Format::of(file).context("--plot: give a file name that ends in .png or .svg")?;
    let bytes = picture(&figure, format)?;
    std::fs::write(file, bytes).with_context(|| format!("writing {}", file.display()))
}

fn curve(law: &Law, path: &Path, streams: u32) -> Curve {
    let steps = DECADES.start * OF_DECADE..=DECADES.end * OF_DECADE;
    let losses = steps.map(|step| 10f64.powf(f64::from(step) / f64::from(OF_DECADE)));
    losses
        .filter_map(|loss| point(law, &Path { loss, ..*path }, streams))
        .collect()
}

fn point(law: &Law, path: &Path, streams: u32) -> Option<(f64, f64)> {
    let expected = of_law(law, path, streams).into_iter().next()?;
    Some((path.loss, expected.rate_bps?)).filter(|_| expected.outside.is_empty())
}

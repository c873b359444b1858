// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs and summaries as the figures take them.
//!
//! It reads the series of runs. Start with [`throughput`].

use std::fs;
use std::path::Path;

use fatpath_plot::{CaseGoodput, Curve, Interval, Mean, ThroughputOfRun, WindowsOfRun};

use crate::measured::SeenBy;
use crate::results::summary::Summary;
use crate::results::{Row, Run, series};

/// Connections of a run whose windows are drawn.
const MOST_LINES: usize = 8;

/// Throughput over time.
pub(crate) fn throughput(runs: &[Run]) -> Vec<ThroughputOfRun> {
    runs.iter().map(throughput_of).collect()
}

fn throughput_of(run: &Run) -> ThroughputOfRun {
    let measured = run.measured.as_ref();
    let intervals = measured.into_iter().flat_map(|one| &one.intervals);
    ThroughputOfRun {
        panel: panel(&run.row),
        variant: run.row.variant.clone(),
        goodput_mbps: run.row.goodput_mbps,
        bottleneck_mbps: run.row.bottleneck_mbps,
        is_doubtful: run.row.trusted == Some(false),
        is_received: measured.is_some_and(|one| one.seen_by == SeenBy::Receiver),
        intervals: intervals
            .map(|one| Interval {
                start_s: one.start_s,
                end_s: one.end_s,
                mbps: one.rate_bps / 1e6,
            })
            .collect(),
    }
}

/// Congestion windows over time, of the first repeats that have series.
pub(crate) fn windows(runs: &[Run], folder: &Path) -> Vec<WindowsOfRun> {
    let is_drawn = |run: &&Run| run.row.repeat == 1 && run.series.is_some();
    let runs = runs.iter().filter(is_drawn);
    runs.map(|run| WindowsOfRun {
        panel: panel(&run.row),
        variant: run.row.variant.clone(),
        curves: curves(run, folder),
    })
    .collect()
}

fn curves(run: &Run, folder: &Path) -> Vec<Curve> {
    let file = run.series.as_ref().map(|name| folder.join(name));
    // Who has removed a series wants no line of it.
    let bytes = file.and_then(|file| fs::read(file).ok());
    bytes.map_or(vec![], |bytes| series::windows(&bytes, MOST_LINES))
}

/// The goodput of cases, for sweeps.
pub(crate) fn goodput(cases: &[Summary]) -> Vec<CaseGoodput> {
    let one = |case: &Summary| CaseGoodput {
        path: case.path.clone(),
        variant: case.variant.clone(),
        vary: case.vary.clone(),
        goodput: case.goodput_mbps().map(|goodput| Mean {
            mbps: goodput.mean,
            ci95_mbps: goodput.ci95,
        }),
        is_trusted: case.untrusted == 0,
    };
    cases.iter().map(one).collect()
}

/// The case of the network, with what varies.
fn panel(row: &Row) -> String {
    let vary = row.vary.iter();
    let vary = vary.map(|(name, value)| format!(", {name} = {value}"));
    row.path.clone() + &vary.collect::<String>()
}

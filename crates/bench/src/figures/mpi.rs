// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parts of MPI programs over two clusters, with rules by phase: `experiments/mpi/programs.toml` on the real kernel with
//! Open MPI. The variants are interleaved; a sample is the ratio of the times of one repeat. And what the probes cost.

use crate::alone::Alone;
use crate::figure::{Better, Figure, Summary};
use crate::instance::PIN_DIR;
use crate::lab::{self, Times};
use crate::run::Run;
use anyhow::{Context, Result, anyhow, ensure};
use fatpath_kernel::{Kernel, Phases, Places};
use fatpath_policy::{Policy, parse};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Mutex;

const SCENARIO: &str = "mpi/programs.toml";
const PAIRS: usize = 10;
/// Runs with late packets count, too: those of 16 ranks on few processors have them with any variant.
const TIMES: Times = Times {
    repeats: PAIRS,
    retries: 0,
};
/// Policies without phases: which is better depends on the part.
const STATIC: [&str; 2] = ["static", "static-paced"];
const PARTS: [&str; 4] = ["alltoall", "one", "chunks", "sort"];

/// The measurements of the probes' cost.
const PROBES: u32 = 10;

pub const FIGURES: [Figure; 6] = [
    over("mpi.one_after_alltoall", 0.45, |run| over_linux(run, "one")),
    Figure {
        what: "the same over the time with the better of two policies without phases",
        ..over("mpi.one_over_static", 0.85, |run| over_static(run, "one"))
    },
    Figure {
        what: "time of a sort like that of NPB's IS, whose data goes from all to all, over Linux as it comes",
        ..over("mpi.is", 0.85, |run| over_linux(run, "sort"))
    },
    Figure {
        what: "the same over the time with the better of two policies without phases",
        ..over("mpi.is_over_static", 1.0, |run| over_static(run, "sort"))
    },
    Figure {
        what: "the part whose median time over that of Linux as it comes is the greatest",
        summary: Summary::Worst,
        ..over("mpi.worst", 1.03, worst)
    },
    Figure {
        name: "mpi.probe_us",
        what: "what a collective call costs its program more: entry and return",
        unit: "us",
        better: Better::Lower,
        goal: Some(2.0),
        summary: Summary::Median,
        measure: probe_us,
    },
];

const fn over(name: &'static str, goal: f64, measure: fn(&Run) -> Result<Vec<f64>>) -> Figure {
    Figure {
        name,
        what: "time of 20 MB from one rank to one after an all-to-all of 16 ranks, 500 Mb/s x 20 ms, queue of 128 KiB, over Linux as it comes",
        unit: "ratio",
        better: Better::Lower,
        goal: Some(goal),
        summary: Summary::Median,
        measure,
    }
}

/// Over Linux as it comes.
fn over_linux(run: &Run, part: &'static str) -> Result<Vec<f64>> {
    ratios(run, part, "default")
}

/// Over the one of them with which the part is faster.
fn over_static(run: &Run, part: &'static str) -> Result<Vec<f64>> {
    let over = STATIC.map(|policy| ratios(run, part, policy));
    let mut over = over.into_iter().collect::<Result<Vec<_>>>()?;
    over.sort_by(|a, b| median(a).total_cmp(&median(b)));
    over.pop().context("no policies")
}

fn worst(run: &Run) -> Result<Vec<f64>> {
    let of = |part| Ok(median(&over_linux(run, part)?));
    PARTS.into_iter().map(of).collect()
}

fn median(ratios: &[f64]) -> f64 {
    Summary::Median.of(ratios).unwrap_or_default()
}

/// Time with phases over that of another variant. The bytes are the same, so it is that of the goodputs the other way about.
fn ratios(run: &Run, part: &'static str, other: &str) -> Result<Vec<f64>> {
    let runs = goodputs(run, part)?;
    let repeat = |repeat| {
        let mbps = |variant: &str| runs.get(&(repeat, variant.to_owned())).copied();
        let ratio = mbps(other)
            .zip(mbps("phases"))
            .map(|(other, phases)| other / phases);
        ratio.with_context(|| format!("{part}: repeat {repeat} is not whole"))
    };
    (1..=PAIRS).map(repeat).collect()
}

type Goodputs = BTreeMap<(usize, String), f64>;

#[derive(Deserialize)]
struct Row {
    repeat: usize,
    variant: String,
    goodput_mbps: Option<f64>,
    trusted: Option<bool>,
}

/// By repeat and variant; each part is run once for all figures.
fn goodputs(run: &Run, part: &'static str) -> Result<Goodputs> {
    static MADE: Mutex<BTreeMap<&str, Goodputs>> = Mutex::new(BTreeMap::new());
    let mut made = MADE.lock().expect("nothing panics while it is held");
    if let Some(goodputs) = made.get(part) {
        return Ok(goodputs.clone());
    }
    let part_is = format!("part={part}");
    let choice = ["--path", "short", "--vary", &part_is];
    let rows: Vec<Row> = lab::printed(run, "run", SCENARIO, TIMES, &choice)?;
    let late = rows.iter().filter(|row| row.trusted == Some(false)).count();
    run.say(format!("  {part}: {late} runs had late packets"));
    let of = |row: Row| Some(((row.repeat, row.variant), row.goodput_mbps?));
    let goodputs: Goodputs = rows.into_iter().filter_map(of).collect();
    for ((repeat, variant), mbps) in &goodputs {
        run.say(format!("  {part}, {variant}, {repeat}: {mbps:.1} Mb/s"));
    }
    made.insert(part, goodputs.clone());
    Ok(goodputs)
}

fn probe_us(run: &Run) -> Result<Vec<f64>> {
    let alone = Alone::wait(run)?;
    alone.wait_until_unloaded(run)?;
    let policy = parse("[phases.mpi]\n", None).map_err(|problems| anyhow!("{problems:?}"))?;
    let places = Places::new(Some(PIN_DIR.into()), None)?;
    let (kernel, _, _) = Kernel::load(places, &Policy::default())?;
    let one = |_| {
        run.check()?;
        let phases = Phases::begin(&kernel, &policy.phases)?;
        phases.probe_us().context("not measured on this processor")
    };
    let measured: Result<Vec<f64>> = (0..PROBES).map(one).collect();
    kernel.unload()?;
    let measured = measured?;
    ensure!(measured.iter().all(|us| *us > 0.0), "nothing was probed");
    Ok(measured)
}

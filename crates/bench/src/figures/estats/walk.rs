// SPDX-License-Identifier: MIT OR Apache-2.0
//! What one sample of every TCP socket costs, over what `ss -tinH` takes for the same.
//!
//! 18,000 idle sockets of loopback. Processor time, user and system: of `ss` as its parent is told it,
//! of the walk all of this process's (reading, decoding, and looking for network namespaces included).

use super::ALL;
use crate::alone::Alone;
use crate::cpu_time;
use crate::crowd::Crowd;
use crate::figure::{Better, Figure, Summary};
use crate::loaded::Loaded;
use crate::run::Run;
use anyhow::{Result, ensure};
use fatpath_clock::monotonic_ns;
use fatpath_kernel::Kernel;
use std::process::{Command, Stdio};
use std::time::Duration;

const SOCKETS: usize = 18_000;
const SAMPLES: u32 = 30;
/// In a sample, of each: what `ss` took is told in hundredths of a second.
const TURNS: u32 = 5;

/// Median of thirty samples.
pub const FIGURE: Figure = Figure {
    name: "estats.walk_over_ss",
    what: "processor time of a walk over 18,000 sockets, over that of ss -tinH",
    unit: "ratio",
    better: Better::Lower,
    goal: Some(0.17),
    summary: Summary::Median,
    measure,
};

/// The same, of a walk for which nearly all sockets did nothing.
pub const FIGURE_IDLE: Figure = Figure {
    name: "estats.walk_over_ss_idle",
    what: "processor time of a walk over 18,000 sockets of which 1 % moved, over that of ss -tinH",
    unit: "ratio",
    better: Better::Lower,
    goal: Some(0.08),
    summary: Summary::Median,
    measure: measure_idle,
};

fn measure(run: &Run) -> Result<Vec<f64>> {
    over_ss(run, |kernel, _| walk(kernel))
}

fn measure_idle(run: &Run) -> Result<Vec<f64>> {
    over_ss(run, walk_moved)
}

fn over_ss(run: &Run, walk: impl Fn(&Kernel, &mut Crowd) -> Result<Duration>) -> Result<Vec<f64>> {
    let alone = Alone::wait(run)?;
    let loaded = Loaded::start(run, &alone, ALL, None)?;
    let kernel = loaded.kernel()?;
    let mut crowd = Crowd::of(run, SOCKETS)?;
    let sample = |n| {
        run.check()?;
        let (mut walks, mut shows) = (Duration::ZERO, Duration::ZERO);
        for _ in 0..TURNS {
            walks += walk(&kernel, &mut crowd)?;
            shows += show()?;
        }
        let ratio = walks.as_secs_f64() / shows.as_secs_f64();
        let (walk, show) = (walks / TURNS, shows / TURNS);
        run.say(format!(
            "  sample {n} of {SAMPLES}: {ratio:.3}, {walk:.1?} over {show:.1?}"
        ));
        Ok(ratio)
    };
    (1..=SAMPLES).map(sample).collect()
}

fn walk(kernel: &Kernel) -> Result<Duration> {
    let start = cpu_time::own();
    let mut seen = 0;
    kernel.walk_samples(|_| seen += 1)?;
    ensure!(seen >= SOCKETS, "the walk saw {seen} sockets");
    Ok(cpu_time::own() - start)
}

/// The daemon's own walks are apart from these: theirs leave out less.
fn walk_moved(kernel: &Kernel, crowd: &mut Crowd) -> Result<Duration> {
    let since_ns = monotonic_ns();
    let moved = crowd.move_one_in_a_hundred()?;
    let start = cpu_time::own();
    let mut seen = 0;
    kernel.walk_moved(since_ns, |_| seen += 1)?;
    ensure!(seen >= moved, "the walk saw {seen} of {moved} sockets");
    Ok(cpu_time::own() - start)
}

fn show() -> Result<Duration> {
    let start = cpu_time::of_children()?;
    let status = Command::new("ss")
        .arg("-tinH")
        .stdout(Stdio::null())
        .status()?;
    ensure!(status.success(), "ss -tinH: {status}");
    Ok(cpu_time::of_children()? - start)
}

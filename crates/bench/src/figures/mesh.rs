// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the daemon of one host of a mesh uses of a processor: it asks for the round trip to each of the other hosts every 10 s. Those are
//! addresses of this host, at which the kernel answers, each on a path of its own.

use super::measured_tests::outcomes;
use crate::alone::Alone;
use crate::cpu_time;
use crate::figure::{Better, Figure, Summary};
use crate::instance::{RUN_DIR, place};
use crate::loaded::Loaded;
use crate::run::Run;
use anyhow::{Context, Result, ensure};
use std::time::{Duration, Instant};

/// One of which measures the others.
const HOSTS: u32 = 50;
const EVERY_S: u32 = 10;
const POLICY: &str = "[archive]\n";
const SAMPLES: u32 = 3;
/// Each test runs some times.
const SLICE: Duration = Duration::from_secs(40);
/// Until each has run once.
const SETTLE: Duration = Duration::from_secs(15);

/// Median of three samples.
pub const FIGURE: Figure = Figure {
    name: "measure.mesh_core_share",
    what: "share of a core of the daemon of one of 50 hosts that ping each other every 10 s",
    unit: "core",
    better: Better::Lower,
    goal: Some(0.01),
    summary: Summary::Median,
    measure,
};

fn measure(run: &Run) -> Result<Vec<f64>> {
    let alone = Alone::wait(run)?;
    std::fs::create_dir_all(RUN_DIR).context(RUN_DIR)?;
    std::fs::write(place("measure.toml"), plan())?;
    let loaded = Loaded::start(run, &alone, POLICY, None)?;
    run.pause(SETTLE)?;
    let samples = (1..=SAMPLES).map(|n| sample(run, &loaded, n));
    let samples = samples.collect::<Result<Vec<_>>>()?;
    let pings = outcomes(run)?;
    let least = SAMPLES * (HOSTS - 1) * SLICE.as_secs() as u32 / EVERY_S;
    ensure!(
        pings.len() as u32 >= least && pings.iter().all(|ping| ping.values.contains_key("rtt_avg")),
        "{} of {least} pings: is iputils-ping installed?",
        pings.len()
    );
    Ok(samples)
}

/// The programs that the daemon starts are told beside it.
fn sample(run: &Run, loaded: &Loaded, n: u32) -> Result<f64> {
    let used = || -> Result<[Duration; 2]> {
        Ok([
            cpu_time::of_process(loaded.pid())?,
            cpu_time::of_children_of(loaded.pid())?,
        ])
    };
    let (before, begun) = (used()?, Instant::now());
    run.pause(SLICE)?;
    let (after, elapsed_s) = (used()?, begun.elapsed().as_secs_f64());
    let share = |n: usize| (after[n] - before[n]).as_secs_f64() / elapsed_s;
    run.say(format!(
        "  sample {n} of {SAMPLES}: {:.4}, its programs {:.4}",
        share(0),
        share(1)
    ));
    Ok(share(0))
}

fn plan() -> String {
    let test = |n| {
        format!(
            "[[test]]\nname = 'h{n}'\ntool = 'ping'\nto = '127.0.{n}.1'\nevery = '{EVERY_S}s'\nduration = '1s'\n"
        )
    };
    (1..HOSTS).map(test).collect()
}

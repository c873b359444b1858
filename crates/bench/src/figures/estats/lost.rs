// SPDX-License-Identifier: MIT OR Apache-2.0
//! A minute of short connections, as many as one thread can make over loopback: is each of their four
//! events, a begin and an end of either side, handed over or counted as lost?
//!
//! The loop runs in a cgroup whose flows alone are sampled, so that the events are exactly its own.

use super::ALL;
use crate::alone::Alone;
use crate::connect_loop::connect_for_a_slice;
use crate::figure::{Better, Figure, Summary};
use crate::group::Group;
use crate::loaded::Loaded;
use crate::memory::resident_kib;
use crate::run::Run;
use anyhow::{Result, ensure};
use std::time::{Duration, Instant};

const LASTS: Duration = Duration::from_secs(60);
/// Begin and end of opener and acceptor.
const EVENTS: u64 = 4;
/// What the daemon's memory may grow by after the first seconds.
const STABLE_KIB: u64 = 16 * 1024;
const SETTLE: Duration = Duration::from_secs(5);

/// One sample: a number of events.
pub const FIGURE: Figure = Figure {
    name: "estats.lost_events_uncounted",
    what: "events of a minute of short connections that were neither handed over nor counted",
    unit: "events",
    better: Better::Lower,
    goal: Some(0.0),
    summary: Summary::Worst,
    measure,
};

fn measure(run: &Run) -> Result<Vec<f64>> {
    let alone = Alone::wait(run)?;
    let group = Group::make()?;
    let loaded = Loaded::start(run, &alone, ALL, Some(group.path()))?;
    let kernel = loaded.kernel()?;
    group.enter()?;
    let mut made = connect(run, SETTLE)?;
    let first_kib = resident_kib(loaded.pid())?;
    made += connect(run, LASTS)?;
    group.leave()?;
    let last_kib = resident_kib(loaded.pid())?;
    let counts = kernel.sample_counts()?;
    let known = counts.samples + counts.samples_lost + EVENTS / 2 * counts.flows_beyond_bounds;
    let per_s = made as f64 / (LASTS + SETTLE).as_secs_f64();
    run.say(format!(
        "  {made} connections, {per_s:.0} a second; {counts:?}; daemon {first_kib} to {last_kib} KiB"
    ));
    let grown_kib = last_kib.saturating_sub(first_kib);
    ensure!(grown_kib < STABLE_KIB, "the daemon grew by {grown_kib} KiB");
    Ok(vec![(EVENTS * made).abs_diff(known) as f64])
}

/// Answers how many. Each slice opens one more, to warm up.
fn connect(run: &Run, lasts: Duration) -> Result<u64> {
    let start = Instant::now();
    let mut made = 0;
    while start.elapsed() < lasts {
        run.check()?;
        made += connect_for_a_slice()?.connections + 1;
    }
    Ok(made)
}

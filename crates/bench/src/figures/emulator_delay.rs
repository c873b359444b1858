// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an idle path adds to a delay of 50 ms one way: single UDP packets, from the sending kernel's
//! timestamp at the device to the receiving kernel's. So neither end's system calls and wake-ups are
//! charged to the link; what the packets took from before the sending call is said beside it.

use crate::alone::{Alone, NETWORK};
use crate::figure::{Better, Figure, Summary};
use crate::run::Run;
use anyhow::Result;
use fatpath_emulator::idle;
use std::time::Duration;

const RUNS: u32 = 3;
const PACKETS: usize = 300;
const DELAY: Duration = Duration::from_millis(50);
/// Between the arrival of a packet and the next one.
const GAP: Duration = Duration::from_millis(10);

/// Median of the medians of three runs.
pub const P50: Figure = Figure {
    name: "emulator.delay_error_us_p50",
    what: "what an idle path of 50 ms adds to that, median",
    unit: "µs",
    better: Better::Lower,
    goal: Some(60.0),
    summary: Summary::Median,
    measure: |run| quantiles(run, 0.5),
};

/// Median of the 99th percentiles of three runs.
pub const P99: Figure = Figure {
    name: "emulator.delay_error_us_p99",
    what: "the same, 99th percentile",
    unit: "µs",
    better: Better::Lower,
    goal: Some(1000.0),
    summary: Summary::Median,
    measure: |run| quantiles(run, 0.99),
};

/// Of each run, the `share` quantile of what the packets took beyond the delay.
fn quantiles(run: &Run, share: f64) -> Result<Vec<f64>> {
    let _alone = Alone::wait(run)?;
    let of_run = |n| {
        run.check()?;
        let (added, stats) = idle::added_delays(NETWORK, DELAY, PACKETS, GAP)?;
        let value_us = quantile(added.iter().map(|added| added.from_device_us), share);
        let call_us = quantile(added.iter().map(|added| added.from_call_us), share);
        let late_us = (stats.lateness.p50_us, stats.lateness.p99_us);
        run.say(format!(
            "  run {n} of {RUNS}: {value_us:.0} µs, from the sending call {call_us:.0}; the \
             forwarder was late by {:.0} (median), {:.0} (p99)",
            late_us.0, late_us.1
        ));
        Ok(value_us)
    };
    (1..=RUNS).map(of_run).collect()
}

/// The least value that `share` of all do not pass.
fn quantile(values: impl Iterator<Item = f64>, share: f64) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let rank = (values.len() as f64 * share).ceil() as usize;
    values[rank.max(1) - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_the_least_that_enough_do_not_pass() {
        let values = (1..=300).rev().map(f64::from);
        assert_eq!(quantile(values.clone(), 0.5), 150.0);
        assert_eq!(quantile(values.clone(), 0.99), 297.0);
        assert_eq!(quantile(values, 1.0), 300.0);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What became of a run, and what the archive and the schedule make of it.

use crate::{Measured, Test, Unit};
use fatpath_api::{TestLevel, TestNote, TestOutcome};

/// A run that ended, with what its output was read as.
pub fn outcome(
    test: &Test,
    start_us: i64,
    duration_s: f64,
    read: Result<Measured, TestNote>,
) -> TestOutcome {
    let (measured, note) = match read {
        Ok(measured) => (measured, None),
        Err(note) => (Measured::default(), Some(note)),
    };
    TestOutcome {
        test: test.name.clone(),
        tool: test.tool.name().to_owned(),
        to: test.to.clone(),
        resources: test.resources.clone(),
        due_us: None,
        start_us,
        duration_s,
        values: measured.values,
        flows: measured.flows,
        note,
    }
}

/// A run failed: the peer may need to be left in peace for a while.
pub fn is_failure(outcome: &TestOutcome) -> bool {
    let note = outcome.note.as_ref();
    note.is_some_and(|note| note.level == TestLevel::Error)
}

/// The one number of a run's event.
pub fn main_value(outcome: &TestOutcome) -> Option<f64> {
    main_of(outcome).map(|(value, _)| *value)
}

/// The value that the tool is there for; of a program the first by name. A lower bound is none.
pub(crate) fn main_of(outcome: &TestOutcome) -> Option<&(f64, Unit)> {
    let main = [
        "delay_there_avg",
        "rtt_avg",
        "rate",
        "slower_way_rate",
        "goodput",
        "hops",
        "path_mtu",
    ];
    let named = main.iter().find_map(|name| outcome.values.get(*name));
    let is_program = outcome.tool == "program";
    let first = || outcome.values.values().next().filter(|_| is_program);
    named.or_else(first)
}

/// A rate with this doubt, a share of it, is no better than none: half or twice as much may be true.
const MOST_DOUBT: f64 = 0.5;

/// Round-trip time of the path that was measured, µs.
pub fn rtt_us(outcome: &TestOutcome) -> Option<f64> {
    let rtt = |unit| first_of(outcome, &["rtt_min", "rtt_avg", "rtt"], unit);
    rtt("ms").map(|ms| ms * 1e3).or_else(|| rtt("us"))
}

/// Rate of the path that was measured, bits a second, unless it is in too much doubt.
pub fn rate_bps(outcome: &TestOutcome) -> Option<f64> {
    let doubt = first_of(outcome, &["rate_doubt"], "1");
    let is_sure = doubt.is_none_or(|doubt| doubt < MOST_DOUBT);
    first_of(outcome, &["rate", "goodput"], "b/s").filter(|_| is_sure)
}

fn first_of(outcome: &TestOutcome, names: &[&str], unit: &str) -> Option<f64> {
    let mut values = names.iter().filter_map(|name| outcome.values.get(*name));
    values.find(|(_, of)| of == unit).map(|(value, _)| *value)
}

/// Something failed.
pub fn error(message: impl Into<String>) -> TestNote {
    TestNote {
        level: TestLevel::Error,
        message: message.into(),
    }
}

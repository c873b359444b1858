// SPDX-License-Identifier: MIT OR Apache-2.0
//! What fatpath costs connections that it tunes: as `connect_rate`, but every connection
//! of the loop matches a rule, the last of 1,000, at both of its ends, and each end's line
//! goes to the flow log. Far from what a host does: real flows live longer than 50 µs.

use crate::figure::{Better, Figure, Summary};
use crate::figures::connect_rate::{SETTINGS, paired, prelude, rules};
use crate::run::Run;
use anyhow::{Result, ensure};

/// Median of thirty samples.
pub const FIGURE: Figure = Figure {
    name: "tune.connect_rate_ratio_tuned",
    what: "the same where both ends of every connection get buffers, a law and an initial window",
    unit: "ratio",
    better: Better::Higher,
    goal: Some(0.85),
    summary: Summary::Median,
    measure,
};

const LAST_RULE: &str = "[[rule]]\nname = 'loopback'\ndestination = ['127.0.0.0/8']\n";

/// 1,000 rules, of which the last is the loop's.
pub fn policy(prelude: String) -> String {
    prelude + &rules(999) + LAST_RULE + SETTINGS
}

fn measure(run: &Run) -> Result<Vec<f64>> {
    paired(run, &policy(prelude()), |loaded, connections| {
        let counts = loaded.status()?.counts;
        ensure!(
            counts.flows_met >= 2 * connections.count,
            "{counts:?}: fatpath did not tune the loop"
        );
        if counts.events_lost > 0 {
            let (lost, of) = (counts.events_lost, counts.flows_met);
            run.say(format!("  {lost} of {of} lines of the flow log lost"));
        }
        Ok(())
    })
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The HTML file of a captured flow in Chromium: tests/capture_page.rs opens it, zooms, and prints how long that took.

use crate::figure::{Better, Figure, Summary};
use crate::printed::printed;
use crate::run::Run;
use anyhow::{Context, Result};

/// The longest of two openings and of all steps of zoom.
pub const STEP_MS: Figure = Figure {
    name: "capture.html_step_ms",
    what: "analyse --html: a flow of 2 million segments in Chromium, to open it, and each step from all of it to 1 µs",
    unit: "ms",
    better: Better::Lower,
    goal: Some(1000.0),
    summary: Summary::Worst,
    measure: steps_ms,
};

fn steps_ms(run: &Run) -> Result<Vec<f64>> {
    let said = printed("capture_page", "a_captured_flow_is_seen_in_a_browser")?;
    let found = said.lines().find_map(|line| Some((line, times_ms(line)?)));
    let (line, times) = found.context(
        "nothing was opened: needs web/node_modules and /usr/bin/chromium (packaging/setup.sh)",
    )?;
    run.say(format!("  {line}"));
    Ok(times)
}

/// By the clock.
fn times_ms(line: &str) -> Option<Vec<f64>> {
    let (_, rest) = line.split_once(" ms of the processor, ")?;
    let (opens, rest) = rest.split_once(" ms by the clock")?;
    let (_, most) = rest.split_once("at most ")?;
    let times = opens.split(',').chain([most.strip_suffix(" ms")?]);
    times.map(|time| time.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openings_and_the_longest_step_are_read() {
        let line =
            "opens: 500,490 ms of the processor, 900,950 ms by the clock; 28 steps: at most 103 ms";
        assert_eq!(times_ms(line), Some(vec![900.0, 950.0, 103.0]));
        assert_eq!(times_ms("Duration 12 ms"), None);
    }
}

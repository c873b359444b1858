// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long a flow takes to have the rate of a path that becomes another one under it (`experiments/gap/settle.toml`). Pure.

use fatpath_experiment::measured::Interval;
use fatpath_experiment::results::Run;
use serde::Deserialize;
use serde_json::Value;

/// When the path changes and when the flow ends, seconds since the programs began.
const CHANGED_S: f64 = 48.0;
const ENDS_S: f64 = 90.0;

/// Settled: from then on the flow has this share of the rate in any five seconds.
const SHARE: f64 = 0.8;
const WINDOW_S: f64 = 5.0;

/// Of all flows together, in the last run of an experiment's history (`history.jsonl`); none if it failed.
pub fn intervals(history: &str) -> Option<Vec<Interval>> {
    #[derive(Deserialize)]
    struct Entry {
        run: Run,
    }
    let last: Entry = serde_json::from_str(history.lines().last()?).ok()?;
    Some(last.run.measured?.intervals)
}

/// Seconds since the change; none if the last window is still too slow. `rate_bps` is that of the changed path.
pub fn settled_s(intervals: &[Interval], rate_bps: f64) -> Option<f64> {
    let begins = intervals.iter().map(|one| one.start_s);
    let begins = begins.filter(|begin_s| (CHANGED_S..=ENDS_S - WINDOW_S).contains(begin_s));
    // Where no interval is within a window, nobody knows.
    let is_slow = |begin_s: &f64| {
        let mean_bps = mean_bps(intervals, *begin_s);
        mean_bps.is_nan() || mean_bps < SHARE * rate_bps
    };
    begins.clone().next()?;
    let Some(slow_s) = begins.clone().rfind(is_slow) else {
        return Some(0.0);
    };
    let mut later = begins.filter(|begin_s| *begin_s > slow_s);
    later.next().map(|begin_s| begin_s - CHANGED_S)
}

/// Over the intervals that are within a window from then on, which seldom fill it.
fn mean_bps(intervals: &[Interval], begin_s: f64) -> f64 {
    let is_within = |one: &&Interval| one.start_s >= begin_s && one.end_s <= begin_s + WINDOW_S;
    let within = intervals.iter().filter(is_within);
    let (bits, seconds) = within.fold((0.0, 0.0), |(bits, seconds), one| {
        let lasts_s = one.end_s - one.start_s;
        (bits + one.rate_bps * lasts_s, seconds + lasts_s)
    });
    bits / seconds
}

/// Of the paths that a daemon knows (`fatpath paths --json`), in their order.
pub fn states(known: &str) -> Option<String> {
    let known: Value = serde_json::from_str(known).ok()?;
    let states = known["paths"].as_array()?.iter();
    let states: Vec<String> = states.map(|path| path["state"].to_string()).collect();
    Some(states.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the change on, of the same length.
    fn equal(count: u32, lasts_s: f64, rate_bps: f64) -> Vec<Interval> {
        let of = |n| Interval {
            start_s: CHANGED_S + lasts_s * f64::from(n),
            end_s: CHANGED_S + lasts_s * f64::from(n + 1),
            rate_bps,
        };
        (0..count).map(of).collect()
    }

    /// A second each, from the change on.
    fn seconds(mbps: impl Fn(f64) -> f64) -> Vec<Interval> {
        let of = |second| Interval {
            start_s: CHANGED_S + second,
            end_s: CHANGED_S + second + 1.0,
            rate_bps: mbps(second) * 1e6,
        };
        (0..50).map(|second| of(f64::from(second))).collect()
    }

    #[test]
    fn each_path_has_a_state() {
        let known = r#"{"paths":[{"state":"tuned"},{"state":"quarantined"}]}"#;
        assert_eq!(states(known).as_deref(), Some(r#""tuned", "quarantined""#));
        assert_eq!(states("away"), None);
    }

    #[test]
    fn it_is_settled_behind_the_last_slow_window() {
        let settled = |mbps: fn(f64) -> f64| settled_s(&seconds(mbps), 1e8);
        assert_eq!(settled(|_| 90.0), Some(0.0));
        assert_eq!(settled(|_| 70.0), None);
        let late = |second| if second < 10.0 { 20.0 } else { 90.0 };
        assert_eq!(settled(late), Some(10.0));
        let gap = |second| if second == 20.0 { 0.0 } else { 90.0 };
        assert_eq!(settled(gap), Some(21.0));
    }

    #[test]
    fn intervals_need_not_fill_a_window() {
        assert_eq!(settled_s(&equal(80, 0.501, 81e6), 1e8), Some(0.0));
    }

    #[test]
    fn of_intervals_longer_than_a_window_nothing_is_known() {
        assert_eq!(settled_s(&equal(7, 6.0, 1e8), 1e8), None);
        assert_eq!(settled_s(&[], 1e8), None);
    }
}

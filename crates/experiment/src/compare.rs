// SPDX-License-Identifier: MIT OR Apache-2.0
//! One scenario on the real kernel and in the simulator, case by case.
//!
//! Pure but for plots. It judges only against a limit that it is given. Start with [`compared`].

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fatpath_plot::{self as plot, Throughput};
use fatpath_statistics::{Ratio, Statistic, median};
use fatpath_table::aligned;
use serde::Serialize;

use crate::results::summary::summaries;
use crate::results::{Row, Run, files, pairs};
use crate::run::{ScenarioError, draw, goodput, throughput};

/// A case on both sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// The case of the network.
    pub path: String,
    /// The case of the tuning.
    pub variant: String,
    /// What `vary` gave the case.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub vary: BTreeMap<String, String>,
    /// On the real kernel; `None` (null) without runs.
    pub kernel: Option<Side>,
    /// In the simulator, likewise.
    pub simulator: Option<Side>,
    /// How much more the simulator's median is than the kernel's, per cent of the kernel's; `None` (null)
    /// without both.
    pub error_percent: Option<f64>,
    /// The simulator's goodput over the kernel's, by pairs of the same repeat.
    pub ratio: Option<Ratio>,
}

/// Goodput of the runs of a case on one side that are to be trusted, Mb/s.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Side {
    /// The median; `None` (null) if no run is to be trusted.
    pub median_mbps: Option<f64>,
    /// Mean, standard deviation and half the width of the mean's 95 % confidence interval; likewise.
    pub goodput_mbps: Option<Statistic>,
    /// How long a transfer took, mean of a run, and the longest but for one of a hundred: the medians of the runs; `None`
    /// (null) where none is timed.
    pub transfer_mean_s: Option<f64>,
    /// See there.
    pub transfer_p99_s: Option<f64>,
    /// Runs that failed.
    pub failed: usize,
    /// Runs that are not to be trusted.
    pub untrusted: usize,
    /// The most attempts that a run took; `None` (null) where none is counted, as in the simulator.
    pub most_attempts: Option<u32>,
}

/// What names a case.
type Key<'r> = (&'r str, &'r str, &'r BTreeMap<String, String>);

/// The cases of both sides, in the order in which they come.
pub fn compared(kernel: &[Row], simulator: &[Row]) -> Vec<Compared> {
    let mut keys: Vec<Key> = vec![];
    for row in kernel.iter().chain(simulator) {
        if !keys.contains(&key(row)) {
            keys.push(key(row));
        }
    }
    let one = |wanted: Key| {
        let [kernel, simulator] = [kernel, simulator].map(|rows| {
            let rows = rows.iter().filter(|row| key(row) == wanted);
            rows.collect::<Vec<_>>()
        });
        of_case(wanted, &kernel, &simulator)
    };
    keys.into_iter().map(one).collect()
}

fn key(row: &Row) -> Key<'_> {
    (&row.path, &row.variant, &row.vary)
}

fn of_case((path, variant, vary): Key, kernel: &[&Row], simulator: &[&Row]) -> Compared {
    let pairs = pairs(&trusted(simulator), &trusted(kernel));
    let ratio = Ratio::of(pairs.into_iter());
    let [kernel, simulator] = [kernel, simulator].map(side);
    let [of_kernel, of_simulator] = [kernel, simulator].map(|side| side?.median_mbps);
    let medians = of_kernel.filter(|kernel| *kernel > 0.0).zip(of_simulator);
    Compared {
        path: path.to_owned(),
        variant: variant.to_owned(),
        vary: vary.clone(),
        kernel,
        simulator,
        error_percent: medians.map(|(kernel, simulator)| 100.0 * (simulator / kernel - 1.0)),
        ratio,
    }
}

fn trusted<'r>(rows: &[&'r Row]) -> Vec<&'r Row> {
    let rows = rows.iter().copied();
    rows.filter(|row| row.trusted != Some(false)).collect()
}

fn side(rows: &[&Row]) -> Option<Side> {
    let of_trusted = |value: fn(&Row) -> Option<f64>| -> Vec<f64> {
        trusted(rows).into_iter().filter_map(value).collect()
    };
    let values = of_trusted(|row| row.goodput_mbps);
    (!rows.is_empty()).then(|| Side {
        median_mbps: median(&values),
        goodput_mbps: Statistic::of(&values),
        transfer_mean_s: median(&of_trusted(|row| Some(row.transfers?.mean_s))),
        transfer_p99_s: median(&of_trusted(|row| Some(row.transfers?.p99_s))),
        failed: rows.iter().filter(|row| row.error.is_some()).count(),
        untrusted: rows.iter().filter(|row| row.trusted == Some(false)).count(),
        most_attempts: rows.iter().filter_map(|row| row.attempts).max(),
    })
}

impl Compared {
    /// Whether the medians differ by that much or less; not if one is missing, or runs behind it failed
    /// or are not to be trusted.
    pub fn is_within(&self, most_percent: f64) -> bool {
        let sides = [self.kernel, self.simulator];
        let is_sound = |side: Side| side.failed == 0 && side.untrusted == 0;
        sides.into_iter().all(|side| side.is_some_and(is_sound))
            && self
                .error_percent
                .is_some_and(|error| error.abs() <= most_percent)
    }
}

/// The table for people.
pub fn table(cases: &[Compared]) -> String {
    let vary: Vec<&String> = cases
        .first()
        .map_or(vec![], |case| case.vary.keys().collect());
    let mut head = vec!["path".to_owned(), "variant".to_owned()];
    head.extend(vary.iter().map(|name| name.to_string()));
    let left = head.len();
    head.extend(["kernel", "simulator", "error", "simulator / kernel"].map(str::to_owned));
    let lines = cases.iter().map(|case| {
        let mut line = vec![case.path.clone(), case.variant.clone()];
        line.extend(
            vary.iter()
                .map(|name| case.vary.get(*name).cloned().unwrap_or_default()),
        );
        line.extend([
            side_cell(case.kernel.as_ref()),
            side_cell(case.simulator.as_ref()),
        ]);
        line.push(
            case.error_percent
                .map_or("-".to_owned(), |error| format!("{error:+.1} %")),
        );
        line.push(case.ratio.map_or("-".to_owned(), ratio_cell));
        line
    });
    let lines: Vec<Vec<String>> = [head].into_iter().chain(lines).collect();
    aligned(&lines, left)
}

fn side_cell(side: Option<&Side>) -> String {
    let Some(side) = side else {
        return "none".to_owned();
    };
    let mean = side.goodput_mbps;
    let interval = mean.and_then(|mean| Some((mean.mean, mean.ci95?)));
    let interval = interval.map(|(mean, ci95)| format!(" (mean {mean:.1} ± {ci95:.1})"));
    let interval = interval.unwrap_or_default();
    let goodput = side
        .median_mbps
        .map(|median| format!("{median:.1}{interval} Mb/s"));
    let counts = [(side.failed, "failed"), (side.untrusted, "not trusted")];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let counts = counts.map(|(count, what)| format!("{count} {what}"));
    goodput
        .into_iter()
        .chain(counts)
        .collect::<Vec<_>>()
        .join(", ")
}

fn ratio_cell(ratio: Ratio) -> String {
    match ratio.ci95 {
        Some([low, high]) => format!("{:.2} ({low:.2} to {high:.2})", ratio.mean),
        None => format!("{:.2}", ratio.mean),
    }
}

/// Both sides in one picture: throughput over time, a panel a case, and a plot for each sweep.
///
/// # Errors
/// If one cannot be drawn or written.
pub fn plots(
    out: &Path,
    scenario: &str,
    kernel: &[Run],
    simulator: &[Run],
) -> Result<Vec<PathBuf>, ScenarioError> {
    let sides = [("kernel", kernel), ("simulator", simulator)];
    let all = |rename: fn(&mut Row, &str)| {
        let runs = sides.iter().flat_map(|(side, runs)| {
            runs.iter().map(|run| {
                let mut run = run.clone();
                rename(&mut run.row, side);
                run
            })
        });
        runs.collect::<Vec<Run>>()
    };
    let mut plots = vec![];
    let of_cases = all(|row, side| {
        row.path = format!("{}, {}", row.path, row.variant);
        row.variant = side.to_owned();
    });
    if let Some(figure) = Throughput::of(scenario, &throughput(&of_cases)) {
        plots.extend(draw(out, files::THROUGHPUT, &figure)?);
    }
    let of_variants = all(|row, side| row.variant = format!("{} ({side})", row.variant));
    let rows: Vec<Row> = of_variants.into_iter().map(|run| run.row).collect();
    for sweep in plot::sweeps(scenario, &goodput(&summaries(&rows))) {
        let name = format!("{}{}", files::SWEEP, sweep.name);
        plots.extend(draw(out, &name, &sweep)?);
    }
    Ok(plots)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::examples::{failed, run};

    fn rows(variant: &str, mbps: &[f64]) -> Vec<Row> {
        let row = |(repeat, mbps): (u32, &f64)| {
            let mut row = run("clean", variant, mbps * 1e6).row;
            row.repeat = repeat;
            row
        };
        (1..).zip(mbps).map(row).collect()
    }

    #[test]
    fn medians_are_compared_and_ratios_are_of_pairs() {
        let kernel = rows("reno", &[100.0, 10.0, 50.0]);
        let simulator = rows("reno", &[110.0, 11.0, 55.0]);
        let case = &compared(&kernel, &simulator)[0];
        assert_eq!(case.kernel.unwrap().median_mbps, Some(50.0));
        assert!((case.error_percent.unwrap() - 10.0).abs() < 1e-9);
        let ratio = case.ratio.unwrap();
        assert_eq!(ratio.n, 3);
        assert!((ratio.mean - 1.1).abs() < 1e-9);
        assert!(case.is_within(10.1) && !case.is_within(9.9));
    }

    #[test]
    fn times_of_transfers_are_medians_of_trusted_runs() {
        let mut kernel = rows("reno", &[10.0, 10.0, 10.0, 10.0]);
        for (row, mean_s) in kernel.iter_mut().zip([1.0, 3.0, 2.0, 9.0]) {
            row.transfers = Some(crate::measured::Transfers {
                count: 2,
                mean_s,
                median_s: mean_s,
                p99_s: 2.0 * mean_s,
            });
            row.trusted = Some(mean_s < 9.0);
        }
        let case = &compared(&kernel, &rows("reno", &[10.0]))[0];
        let kernel = case.kernel.unwrap();
        assert_eq!(
            (kernel.transfer_mean_s, kernel.transfer_p99_s),
            (Some(2.0), Some(4.0))
        );
        assert_eq!(case.simulator.unwrap().transfer_mean_s, None);
    }

    #[test]
    fn a_case_without_both_sides_is_within_no_limit() {
        let kernel = [
            rows("reno", &[10.0]),
            vec![failed("clean", "aimd", "why").row],
        ]
        .concat();
        let simulator = [rows("reno", &[9.5]), rows("aimd", &[20.0])].concat();
        let cases = compared(&kernel, &simulator);
        assert_eq!((cases.len(), cases[1].error_percent), (2, None));
        assert!(!cases[1].is_within(1e9));
        insta::assert_snapshot!(table(&cases), @r#"
        path   variant     kernel  simulator   error  simulator / kernel
        clean  reno     10.0 Mb/s   9.5 Mb/s  -5.0 %                0.95
        clean  aimd      1 failed  20.0 Mb/s       -                   -
        "#);
    }

    #[test]
    fn a_case_with_runs_that_failed_or_are_untrusted_is_within_no_limit() {
        let good = rows("reno", &[10.0, 10.0]);
        assert!(compared(&good, &good)[0].is_within(0.0));
        let mut untrusted = good.clone();
        untrusted[1].trusted = Some(false);
        assert!(!compared(&untrusted, &good)[0].is_within(1e9));
        // It has no part in the figures.
        untrusted[1].goodput_mbps = Some(500.0);
        let case = &compared(&untrusted, &good)[0];
        let kernel = case.kernel.unwrap();
        assert_eq!((kernel.median_mbps, kernel.untrusted), (Some(10.0), 1));
        assert_eq!((case.error_percent, case.ratio.unwrap().n), (Some(0.0), 1));
        untrusted[0].trusted = Some(false);
        let case = &compared(&untrusted, &good)[0];
        assert_eq!(
            (case.kernel.unwrap().median_mbps, case.error_percent),
            (None, None)
        );
        let failed = [good.clone(), vec![failed("clean", "reno", "why").row]].concat();
        assert!(!compared(&failed, &good)[0].is_within(1e9));
    }

    #[test]
    fn both_sides_are_in_one_picture() {
        let out = std::env::temp_dir().join(format!("fatpath-compare-{}", std::process::id()));
        std::fs::create_dir_all(&out).unwrap();
        let (kernel, simulator) = (run("clean", "reno", 9e6), run("clean", "reno", 8e6));
        let plots = plots(&out, "demo", &[kernel], &[simulator]).unwrap();
        assert_eq!(plots.len(), 2);
        let svg = std::fs::read_to_string(out.join("throughput.svg")).unwrap();
        for part in ["clean, reno", "kernel, mean 9.0", "simulator, mean 8.0"] {
            assert!(svg.contains(part), "{part}");
        }
        std::fs::remove_dir_all(&out).unwrap();
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A summary of the runs of each case: mean, standard deviation and confidence interval of every
//! figure.
//!
//! Pure. Runs that failed have no figures; those that are not to be trusted count, and their number
//! is told. Start with [`summaries`].

use std::collections::BTreeMap;

use fatpath_statistics::{Ratio, Statistic};
use serde::Serialize;

use super::{Row, pairs};

/// One row of `summary.json`: a case.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The case of the network.
    pub path: String,
    /// The case of the tuning.
    pub variant: String,
    /// What `vary` gave the case.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub vary: BTreeMap<String, String>,
    /// The rate of the bottleneck.
    pub bottleneck_mbps: Option<f64>,
    /// Runs that were made.
    pub runs: usize,
    /// Of these, those that failed.
    pub failed: usize,
    /// Of these, those that are not to be trusted.
    pub untrusted: usize,
    /// Its goodput over that of the first variant of the same path and `vary`, by pairs of runs of the
    /// same repeat; `None` if there is no pair.
    pub ratio: Option<Ratio>,
    /// Every figure that a run has, by its name in tables, over the runs that have it.
    pub figures: BTreeMap<String, Statistic>,
}

impl Summary {
    /// What receivers got, Mb/s.
    pub fn goodput_mbps(&self) -> Option<&Statistic> {
        self.figures.get("goodput_mbps")
    }
}

/// A summary of each case, in the order of their first rows.
pub fn summaries(rows: &[Row]) -> Vec<Summary> {
    let mut cases: Vec<Vec<&Row>> = vec![];
    let mut places: BTreeMap<_, usize> = BTreeMap::new();
    for row in rows {
        let place = *places.entry(case_of(row)).or_insert(cases.len());
        if place == cases.len() {
            cases.push(vec![]);
        }
        cases[place].push(row);
    }
    // Of each path with what varies, the case that came first.
    let mut bases: BTreeMap<_, &[&Row]> = BTreeMap::new();
    cases
        .iter()
        .map(|rows| {
            let base = *bases.entry((&rows[0].path, &rows[0].vary)).or_insert(rows);
            summary(rows, base)
        })
        .collect()
}

fn case_of(row: &Row) -> (&str, &str, &BTreeMap<String, String>) {
    (&row.path, &row.variant, &row.vary)
}

/// Of the rows of one case, of which there is at least one, compared with another.
fn summary(rows: &[&Row], base: &[&Row]) -> Summary {
    let mut values: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (name, value) in rows.iter().flat_map(|row| row.figures()) {
        values.entry(name).or_default().push(value);
    }
    let figures = values
        .into_iter()
        .filter_map(|(name, values)| Some((name, Statistic::of(&values)?)));
    Summary {
        path: rows[0].path.clone(),
        variant: rows[0].variant.clone(),
        vary: rows[0].vary.clone(),
        // A run that failed did not tell in which direction its data went.
        bottleneck_mbps: {
            let ended = rows.iter().find(|row| row.error.is_none());
            ended.unwrap_or(&rows[0]).bottleneck_mbps
        },
        runs: rows.len(),
        failed: rows.iter().filter(|row| row.error.is_some()).count(),
        untrusted: {
            let untrusted = rows.iter().filter(|row| row.trusted == Some(false));
            untrusted.count()
        },
        ratio: Ratio::of(pairs(rows, base).into_iter()),
        figures: figures.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{failed, run};
    use super::*;

    #[test]
    fn the_bottleneck_is_that_of_a_run_that_did_not_fail() {
        let mut first = failed("clean", "default", "why").row;
        first.bottleneck_mbps = Some(10.0);
        let rows = [first.clone(), run("clean", "default", 10e6).row];
        assert_eq!(summaries(&rows)[0].bottleneck_mbps, Some(1000.0));
        assert_eq!(summaries(&[first])[0].bottleneck_mbps, Some(10.0));
    }

    #[test]
    fn a_variant_is_compared_with_the_first_one_repeat_by_repeat() {
        let repeat = |variant, repeat, bps| {
            let mut row = run("clean", variant, bps).row;
            row.repeat = repeat;
            row
        };
        // The second repeat of the tuned variant failed: nothing is compared with that of the first.
        let rows = [
            repeat("default", 1, 10e6),
            repeat("default", 2, 90e6),
            repeat("default", 3, 20e6),
            repeat("tuned", 3, 40e6),
            repeat("tuned", 1, 20e6),
        ];
        let ratios: Vec<_> = summaries(&rows).iter().map(|case| case.ratio).collect();
        assert_eq!(ratios[0].unwrap().mean, 1.0);
        let tuned = ratios[1].unwrap();
        assert_eq!(tuned.n, 2);
        assert!((tuned.mean - 2.0).abs() < 1e-9);
    }

    #[test]
    fn the_runs_of_a_case_are_summed_up_wherever_they_stand() {
        let mut untrusted = run("clean", "default", 12e6).row;
        untrusted.trusted = Some(false);
        let rows = [
            run("clean", "default", 10e6).row,
            run("lossy", "default", 1e6).row,
            untrusted,
            failed("clean", "default", "why").row,
        ];
        let summaries = summaries(&rows);
        assert_eq!(summaries.len(), 2);
        let clean = &summaries[0];
        assert_eq!((clean.runs, clean.failed, clean.untrusted), (3, 1, 1));
        let goodput = clean.goodput_mbps().unwrap();
        assert_eq!((goodput.n, goodput.mean), (2, 11.0));
        assert_eq!(summaries[1].goodput_mbps().unwrap().ci95, None);
    }
}

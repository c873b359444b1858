// SPDX-License-Identifier: MIT OR Apache-2.0
//! The report for people: a line a path, then the summary. Pure.

use crate::report::{AUTO, Harm, LeftOut, PathGap, RECIPE, Reached, Report, Summary};
use fatpath_table::aligned;

const HEAD: [&str; 9] = [
    "path",
    "oracle is",
    "default",
    "recipe",
    "oracle",
    "auto, 1st",
    "auto, 3rd",
    "closure, 1st/3rd",
    "resent/recipe",
];

/// Rates in Mb/s.
pub fn table(report: &Report) -> String {
    let parts = [
        gaps(&report.paths),
        harms(&report.harms),
        reached(&report.left_out),
        summary(&report.summary) + &doubts(report),
    ];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("\n")
}

fn gaps(paths: &[PathGap]) -> String {
    if paths.is_empty() {
        return String::new();
    }
    let mut lines = vec![HEAD.map(str::to_owned).to_vec()];
    lines.extend(paths.iter().map(line));
    aligned(&lines, 2)
}

/// What is known of paths that are not compared: a line a variant.
fn reached(paths: &[LeftOut]) -> String {
    let line = |path: &LeftOut, of: &Reached| {
        let mbps = |rate: f64| format!("{rate:.0}");
        let rates = [mbps(of.first_mbps), mbps(of.third_mbps)];
        [&[path.path.clone(), of.variant.clone()][..], &rates].concat()
    };
    let rows = paths
        .iter()
        .flat_map(|path| path.reached.iter().map(move |of| line(path, of)));
    let rows: Vec<Vec<String>> = rows.collect();
    if rows.is_empty() {
        return String::new();
    }
    let head = ["not compared", "variant", "1st", "3rd"];
    let head = vec![head.map(str::to_owned).to_vec()];
    aligned(&[head, rows].concat(), 2)
}

/// What the figures do not know of.
fn doubts(report: &Report) -> String {
    let left_out = report.left_out.iter().map(|path| {
        let missing = path.missing.join(", ");
        format!(
            "{} is not compared: no trusted run of: {missing}\n",
            path.path
        )
    });
    let experts = report.paths.iter().flat_map(|path| {
        path.without_runs.iter().map(|expert| {
            format!(
                "{}: {expert} has no run to trust, and may be the oracle\n",
                path.path
            )
        })
    });
    let nothing = report.paths.is_empty() && report.harms.is_empty();
    let nothing = nothing.then(|| format!("{NOTHING}\n"));
    left_out.chain(experts).chain(nothing).collect()
}

const NOTHING: &str = "nothing is compared yet: a path needs runs of the variants default, auto and one more; give them to \
                       `fatpath gap run` with the same folder";

fn line(gap: &PathGap) -> Vec<String> {
    let mbps = |rate: f64| format!("{rate:.0}");
    let share = |closure: Option<f64>| closure.map_or("-".into(), |share| format!("{share:.2}"));
    let resent = gap.recipe_retransmits.map_or("-".into(), |of_recipe| {
        format!("{}/{of_recipe}", gap.auto_retransmits)
    });
    vec![
        gap.path.clone(),
        gap.oracle.clone(),
        mbps(gap.default_mbps),
        gap.recipe_mbps.map_or("-".into(), mbps),
        mbps(gap.oracle_mbps),
        mbps(gap.auto_first_mbps),
        mbps(gap.auto_mbps),
        format!("{}/{}", share(gap.first_closure), share(gap.closure)),
        resent,
    ]
}

/// A line a path.
fn harms(harms: &[Harm]) -> String {
    if harms.is_empty() {
        return String::new();
    }
    let points = |path: &str, variant: &str| {
        let harm = harms
            .iter()
            .find(|harm| harm.path == path && harm.variant == variant);
        harm.map_or("-".into(), |harm| format!("{:+.1}", harm.points))
    };
    let head = ["harm to two flows of CUBIC, points", AUTO, RECIPE];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    let paths = harms.iter().filter(|harm| harm.variant == AUTO);
    lines.extend(paths.map(|harm| {
        let of = |variant| points(&harm.path, variant);
        vec![harm.path.clone(), of(AUTO), of(RECIPE)]
    }));
    aligned(&lines, 1)
}

fn summary(summary: &Summary) -> String {
    let figures = [
        ("closure, median", summary.closure_median),
        ("closure, worst", summary.closure_worst),
        (
            "closure of the first flow, median",
            summary.first_closure_median,
        ),
        ("over the recipe, median", summary.over_recipe_median),
        ("over the recipe, worst", summary.over_recipe_worst),
        (
            "retransmissions over the recipe's, median",
            summary.retransmits_over_recipe_median,
        ),
        ("harm, mean, points", summary.harm_points),
    ];
    let known = figures
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)));
    let mut lines = vec![vec!["paths".to_owned(), summary.paths.to_string()]];
    lines.extend(known.map(|(name, value)| vec![name.to_owned(), format!("{value:.2}")]));
    aligned(&lines, 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::{bulk, row};

    #[test]
    fn the_table_has_a_line_a_path_and_the_summary() {
        let flows = |neighbours| [190.0, 190.0, 60.0, neighbours];
        let harm = [
            row("p", "cubic", &flows(130.0), 0),
            row("p", "auto", &flows(126.0), 0),
        ];
        insta::assert_snapshot!(table(&Report::of(&bulk(), &harm)));
    }

    #[test]
    fn where_nothing_is_compared_the_table_says_what_is_missing() {
        let mut rows = bulk();
        rows.retain(|row| row.variant == AUTO);
        insta::assert_snapshot!(table(&Report::of(&rows, &[])));
    }
}

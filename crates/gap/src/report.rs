// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the runs of an experiment say of the gap. Pure.

use fatpath_experiment::results::Row;
use fatpath_statistics::median;
use serde::Serialize;
use std::collections::BTreeSet;

/// Linux as it comes.
pub const DEFAULT: &str = "default";
/// The daemon, which begins without knowledge of any path.
pub const AUTO: &str = "auto";
/// Whoever knows the path; of several, the best.
pub const EXPERT: &str = "expert";
/// BBR version 1 and large maxima; one of the experts.
pub const RECIPE: &str = "recipe";
/// CUBIC and the same maxima. In runs on harm, what one more flow of CUBIC costs others.
pub const CUBIC: &str = "cubic";

/// On a path whose gap is smaller, closure would be a ratio of noise.
const LEAST_GAP: f64 = 1.1;

/// Of the flows of a run, one after the other: the one on an unknown path, and the last, on a known one.
const FIRST: usize = 0;
const THIRD: usize = 2;

/// In a run on harm the neighbours' program comes behind the three flows.
const NEIGHBOURS: usize = 3;

/// All paths of an experiment.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// The paths on which `default`, `auto` and an expert were run, in the scenario's order.
    pub paths: Vec<PathGap>,
    /// The others: they are in no figure.
    pub left_out: Vec<LeftOut>,
    /// What flows cost their neighbours, by path; empty without runs on harm.
    pub harms: Vec<Harm>,
    /// Over the paths.
    pub summary: Summary,
}

/// One path. Rates are goodput in Mb/s, medians of the trusted runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PathGap {
    /// Its name.
    pub path: String,
    /// The third flow with the defaults.
    pub default_mbps: f64,
    /// The expert whose third flow was fastest.
    pub oracle: String,
    /// What it reached.
    pub oracle_mbps: f64,
    /// Experts with runs of which none is to be trusted: the oracle might have been one of them.
    pub without_runs: Vec<String>,
    /// The third flow of the recipe.
    pub recipe_mbps: Option<f64>,
    /// The first flow of `auto`, on the unknown path.
    pub auto_first_mbps: f64,
    /// The third.
    pub auto_mbps: f64,
    /// (auto - default) / (oracle - default) of the first flows; `None` where the oracle has less than a tenth more than the default.
    pub first_closure: Option<f64>,
    /// The same of the third flows.
    pub closure: Option<f64>,
    /// Goodput of the third flow over the recipe's.
    pub over_recipe: Option<f64>,
    /// Segments that all flows of `auto` retransmitted.
    pub auto_retransmits: u64,
    /// Those of the recipe.
    pub recipe_retransmits: Option<u64>,
}

/// A path that is not compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LeftOut {
    /// Its name.
    pub path: String,
    /// Which of `default`, `auto` and `expert` have no run that is to be trusted.
    pub missing: Vec<&'static str>,
    /// What the variants reached that have one.
    pub reached: Vec<Reached>,
}

/// What a variant reached on a path: goodput in Mb/s, medians of the trusted runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reached {
    /// Its name.
    pub variant: String,
    /// The first flow.
    pub first_mbps: f64,
    /// The third.
    pub third_mbps: f64,
}

/// What one flow costs two of CUBIC that share its path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Harm {
    /// The path's name.
    pub path: String,
    /// Who takes from them: `auto` or `recipe`.
    pub variant: String,
    /// The share of the bottleneck that they lose beyond what one more flow of CUBIC takes, percentage points.
    pub points: f64,
}

/// Over the paths; `None` where no path has the figure.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// How many paths there are figures of.
    pub paths: usize,
    /// Median closure of third flows.
    pub closure_median: Option<f64>,
    /// The least.
    pub closure_worst: Option<f64>,
    /// Median closure of first flows.
    pub first_closure_median: Option<f64>,
    /// Median of third flows over the recipe's.
    pub over_recipe_median: Option<f64>,
    /// The least.
    pub over_recipe_worst: Option<f64>,
    /// Median of `auto`'s retransmitted segments over the recipe's, one more of each.
    pub retransmits_over_recipe_median: Option<f64>,
    /// Mean harm of `auto`, points.
    pub harm_points: Option<f64>,
}

impl Report {
    /// Of the runs of bulk flows, and of those on harm. Runs that failed or are not to be trusted do not count.
    pub fn of(bulk: &[Row], harm: &[Row]) -> Report {
        let paths: Vec<PathGap> = names(bulk).filter_map(|path| gap(bulk, path)).collect();
        let is_in = |name: &&str| paths.iter().any(|path| path.path == *name);
        let left_out = names(bulk).filter(|name| !is_in(name));
        let left_out = left_out.map(|name| left_out_of(bulk, name)).collect();
        let of = |variant| names(harm).filter_map(move |path| harm_of(harm, path, variant));
        let harms: Vec<Harm> = of(AUTO).chain(of(RECIPE)).collect();
        let summary = Summary::of(&paths, &harms);
        Report {
            paths,
            left_out,
            harms,
            summary,
        }
    }
}

impl Summary {
    fn of(paths: &[PathGap], harms: &[Harm]) -> Summary {
        let all = |value: fn(&PathGap) -> Option<f64>| -> Vec<f64> {
            paths.iter().filter_map(value).collect()
        };
        let closures = all(|path| path.closure);
        let over_recipe = all(|path| path.over_recipe);
        let resent = all(|path| {
            let recipe = path.recipe_retransmits?;
            Some((path.auto_retransmits as f64 + 1.0) / (recipe as f64 + 1.0))
        });
        let of_auto = harms.iter().filter(|harm| harm.variant == AUTO);
        let points: Vec<f64> = of_auto.map(|harm| harm.points).collect();
        Summary {
            paths: paths.len(),
            closure_median: median(&closures),
            closure_worst: least(&closures),
            first_closure_median: median(&all(|path| path.first_closure)),
            over_recipe_median: median(&over_recipe),
            over_recipe_worst: least(&over_recipe),
            retransmits_over_recipe_median: median(&resent),
            harm_points: (!points.is_empty())
                .then(|| points.iter().sum::<f64>() / points.len() as f64),
        }
    }
}

fn least(values: &[f64]) -> Option<f64> {
    values.iter().copied().min_by(f64::total_cmp)
}

/// The part of the gap that is closed; `None` where no expert reaches more than the default by a tenth.
pub fn closure(default: f64, auto: f64, experts: &[f64]) -> Option<f64> {
    let oracle = experts.iter().copied().fold(default, f64::max);
    (oracle > 0.0 && oracle >= LEAST_GAP * default).then(|| (auto - default) / (oracle - default))
}

/// The paths, each once, in the order of their first runs.
fn names(rows: &[Row]) -> impl Iterator<Item = &str> {
    let first = |(at, row): &(usize, &Row)| !rows[..*at].iter().any(|r| r.path == row.path);
    let rows = rows.iter().enumerate().filter(first);
    rows.map(|(_, row)| row.path.as_str())
}

fn runs<'r>(rows: &'r [Row], path: &'r str, variant: &'r str) -> impl Iterator<Item = &'r Row> {
    let is_it = move |row: &&Row| row.path == path && row.variant == variant;
    rows.iter()
        .filter(is_it)
        .filter(|row| row.trusted == Some(true))
}

fn mbps(rows: &[Row], path: &str, variant: &str, program: usize) -> Option<f64> {
    let programs = runs(rows, path, variant).filter_map(|row| row.programs.get(program));
    let rates: Vec<f64> = programs.map(|program| program.goodput_mbps).collect();
    median(&rates)
}

fn retransmits(rows: &[Row], path: &str, variant: &str) -> Option<u64> {
    let counts = runs(rows, path, variant).filter_map(|row| row.retransmits);
    let counts: Vec<f64> = counts.map(|count| count as f64).collect();
    median(&counts).map(|count| count as u64)
}

/// All variants with runs, each once.
fn variants<'r>(rows: &'r [Row], path: &str) -> BTreeSet<&'r str> {
    let rows = rows.iter().filter(|row| row.path == path);
    rows.map(|row| row.variant.as_str()).collect()
}

/// Of these all but `default`, `auto` and others that learn.
fn experts<'r>(rows: &'r [Row], path: &str) -> BTreeSet<&'r str> {
    let mut experts = variants(rows, path);
    experts.retain(|variant| *variant != DEFAULT && !variant.starts_with(AUTO));
    experts
}

/// What keeps [`gap`] from comparing a path.
fn left_out_of(rows: &[Row], path: &str) -> LeftOut {
    let third = |variant: &str| mbps(rows, path, variant, THIRD);
    let has_expert = experts(rows, path)
        .iter()
        .any(|expert| third(expert) > Some(0.0));
    let has_auto = third(AUTO).is_some() && retransmits(rows, path, AUTO).is_some();
    let has = [
        (DEFAULT, third(DEFAULT).is_some()),
        (AUTO, has_auto),
        (EXPERT, has_expert),
    ];
    let missing = has.into_iter().filter(|(_, has)| !has);
    let reached = variants(rows, path).into_iter().filter_map(|variant| {
        Some(Reached {
            variant: variant.to_owned(),
            first_mbps: mbps(rows, path, variant, FIRST)?,
            third_mbps: third(variant)?,
        })
    });
    LeftOut {
        path: path.to_owned(),
        missing: missing.map(|(name, _)| name).collect(),
        reached: reached.collect(),
    }
}

fn gap(rows: &[Row], path: &str) -> Option<PathGap> {
    let experts = experts(rows, path);
    let reached = |flow| -> Vec<(&str, f64)> {
        let all = experts.iter();
        all.filter_map(|one| Some((*one, mbps(rows, path, one, flow)?)))
            .collect()
    };
    let without_runs = experts
        .iter()
        .filter(|one| runs(rows, path, one).next().is_none());
    let closed = |flow| -> Option<f64> {
        let experts: Vec<f64> = reached(flow).iter().map(|(_, mbps)| *mbps).collect();
        let of = |variant| mbps(rows, path, variant, flow);
        closure(of(DEFAULT)?, of(AUTO)?, &experts)
    };
    let auto_mbps = mbps(rows, path, AUTO, THIRD)?;
    let third = reached(THIRD);
    let (oracle, oracle_mbps) = third.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    if *oracle_mbps <= 0.0 {
        return None;
    }
    let recipe_mbps = mbps(rows, path, RECIPE, THIRD);
    Some(PathGap {
        path: path.to_owned(),
        default_mbps: mbps(rows, path, DEFAULT, THIRD)?,
        oracle: (*oracle).to_owned(),
        oracle_mbps: *oracle_mbps,
        without_runs: without_runs.map(|one| (*one).to_owned()).collect(),
        recipe_mbps,
        auto_first_mbps: mbps(rows, path, AUTO, FIRST)?,
        auto_mbps,
        first_closure: closed(FIRST),
        closure: closed(THIRD),
        over_recipe: recipe_mbps.map(|recipe| auto_mbps / recipe),
        auto_retransmits: retransmits(rows, path, AUTO)?,
        recipe_retransmits: retransmits(rows, path, RECIPE),
    })
}

fn harm_of(rows: &[Row], path: &str, variant: &str) -> Option<Harm> {
    let left = |variant| mbps(rows, path, variant, NEIGHBOURS);
    let bottleneck_mbps = runs(rows, path, variant).find_map(|row| row.bottleneck_mbps)?;
    Some(Harm {
        path: path.to_owned(),
        variant: variant.to_owned(),
        points: 100.0 * (left(CUBIC)? - left(variant)?) / bottleneck_mbps,
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use fatpath_experiment::results::ProgramFigures;

    pub(crate) fn row(path: &str, variant: &str, mbps: &[f64], retransmits: u64) -> Row {
        let program = |mbps: &f64| ProgramFigures {
            program: "0-a-iperf3".into(),
            goodput_mbps: *mbps,
            retransmits: None,
            udp: None,
            timeouts: None,
            congestion_events: None,
            undone_events: None,
            transfers: None,
            window: None,
        };
        Row {
            path: path.into(),
            variant: variant.into(),
            bottleneck_mbps: Some(200.0),
            retransmits: Some(retransmits),
            programs: mbps.iter().map(program).collect(),
            trusted: Some(true),
            ..Row::default()
        }
    }

    pub(crate) fn bulk() -> Vec<Row> {
        vec![
            row("far", "default", &[100.0, 100.0, 100.0], 0),
            row("far", "recipe", &[300.0, 300.0, 260.0], 999),
            row("far", "oracle-cubic", &[200.0, 300.0, 300.0], 50),
            row("far", "auto", &[250.0, 280.0, 290.0], 9),
            row("near", "default", &[95.0, 95.0, 95.0], 1),
            row("near", "recipe", &[90.0, 90.0, 90.0], 1),
            row("near", "auto", &[94.0, 94.0, 94.0], 1),
        ]
    }

    #[test]
    fn closure_is_a_share_of_the_gap() {
        assert_eq!(closure(100.0, 175.0, &[150.0, 200.0]), Some(0.75));
        assert_eq!(closure(100.0, 50.0, &[200.0]), Some(-0.5));
        assert_eq!(closure(100.0, 109.0, &[109.0]), None);
    }

    #[test]
    fn each_flow_is_compared_with_the_best_expert_of_its_place() {
        let report = Report::of(&bulk(), &[]);
        let [far, near] = &report.paths[..] else {
            panic!("{report:?}");
        };
        assert_eq!(
            (far.oracle.as_str(), far.oracle_mbps),
            ("oracle-cubic", 300.0)
        );
        assert_eq!((far.first_closure, far.closure), (Some(0.75), Some(0.95)));
        assert_eq!((near.first_closure, near.closure), (None, None));
        let summary = &report.summary;
        assert_eq!(summary.closure_median, Some(0.95));
        assert_eq!(summary.over_recipe_worst, Some(94.0 / 90.0));
        assert_eq!(
            summary.retransmits_over_recipe_median,
            Some((0.01 + 1.0) / 2.0)
        );
        assert_eq!(summary.harm_points, None);
    }

    #[test]
    fn runs_that_are_not_to_be_trusted_do_not_count() {
        let mut rows = bulk();
        rows.push(Row {
            trusted: Some(false),
            ..row("far", "recipe", &[900.0, 900.0, 900.0], 0)
        });
        assert_eq!(Report::of(&rows, &[]), Report::of(&bulk(), &[]));
        rows.retain(|row| row.variant != "auto" || row.path != "far");
        let without = Report::of(&rows, &[]);
        assert_eq!((without.paths.len(), without.summary.paths), (1, 1));
        let [far] = &without.left_out[..] else {
            panic!("{without:?}");
        };
        assert_eq!((far.path.as_str(), &far.missing[..]), ("far", &[AUTO][..]));
    }

    #[test]
    fn what_is_there_and_what_is_missing_is_told_where_nothing_is_compared() {
        let mut rows = bulk();
        rows.retain(|row| row.variant == AUTO && row.path == "far");
        let report = Report::of(&rows, &[]);
        assert!(report.paths.is_empty());
        let far = LeftOut {
            path: "far".into(),
            missing: vec![DEFAULT, EXPERT],
            reached: vec![Reached {
                variant: AUTO.into(),
                first_mbps: 250.0,
                third_mbps: 290.0,
            }],
        };
        assert_eq!(report.left_out, [far]);
    }

    #[test]
    fn an_expert_without_runs_to_trust_is_named() {
        let mut rows = bulk();
        let best = rows.iter_mut().find(|row| row.variant == "oracle-cubic");
        best.unwrap().trusted = Some(false);
        let report = Report::of(&rows, &[]);
        let far = &report.paths[0];
        assert_eq!(
            (far.oracle.as_str(), &far.without_runs[..]),
            ("recipe", &["oracle-cubic".to_owned()][..])
        );
    }

    #[test]
    fn harm_is_what_neighbours_lose_beyond_a_flow_of_cubic() {
        let flows = |neighbours| [190.0, 190.0, 60.0, neighbours];
        let harm = [
            row("p", "cubic", &flows(130.0), 0),
            row("p", "recipe", &flows(70.0), 0),
            row("p", "auto", &flows(126.0), 0),
        ];
        let report = Report::of(&[], &harm);
        let points: Vec<(&str, f64)> = report
            .harms
            .iter()
            .map(|harm| (harm.variant.as_str(), harm.points))
            .collect();
        assert_eq!(points, [("auto", 2.0), ("recipe", 30.0)]);
        assert_eq!(report.summary.harm_points, Some(2.0));
    }
}

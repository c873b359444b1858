// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much of the gap between the defaults and what an expert reaches is closed without anybody knowing the path:
//! bulk flows over paths of `experiments/gap/bulk.toml`, on the real kernel, one run of each variant and path.
//!
//! Harm is what flows of CUBIC lose to a flow that shares their path (`experiments/gap/harm.toml`).
//!
//! Closure is (auto - default) / (oracle - default), where oracle is the best of the policies and recipes that
//! somebody chose who knows the path.

use crate::figure::{Better, Figure, Summary};
use crate::lab::{self, Case, Reached};
use crate::run::Run;
use anyhow::{Context, Result};
use fatpath_gap::report::closure;

const SCENARIO: &str = "gap/bulk.toml";
const RANDOM: &str = "gap/random.toml";
const HARM: &str = "gap/harm.toml";
const SHORT: &str = "gap/short.toml";
const SMALL_BUFFERS: &str = "gap/small-buffers.toml";

/// A third of the scenario's paths, one or two of each kind.
const PATHS: [&str; 8] = [
    "1g-100ms",
    "1g-100ms-loss-1e-4",
    "500m-50ms-loss-1e-3",
    "200m-300ms",
    "500m-80ms-short",
    "1g-50ms-policed",
    "10m-40ms-deep",
    "300m-100ms-reordered",
];

/// A third of the paths that a seed drew, each third one, whatever it is.
const RANDOM_PATHS: [&str; 8] = [
    "r1-19m-178ms-clean",
    "r4-319m-48ms-clean",
    "r7-446m-165ms-bursts",
    "r10-1512m-77ms-clean",
    "r13-39m-17ms-bursts",
    "r16-1169m-17ms-bursts",
    "r19-2587m-66ms-reordered",
    "r22-40m-382ms-loss",
];

/// Those without losses of their own, where what is retransmitted is what the law does.
const CLEAN: [&str; 3] = ["1g-100ms", "200m-300ms", "10m-40ms-deep"];

/// Of the scenario on harm, those whose queue holds half of a bandwidth-delay product or more.
const SHARED: [&str; 5] = [
    "200m-80ms-half",
    "200m-80ms",
    "200m-80ms-deep",
    "200m-80ms-codel",
    "200m-80ms-loss-1e-4",
];

/// All of the scenario on short transfers.
const SHORT_PATHS: [&str; 6] = [
    "1g-100ms",
    "1g-100ms-loss-1e-4",
    "500m-50ms-loss-1e-3",
    "200m-300ms",
    "500m-80ms-short",
    "100m-200ms-loss-1e-2",
];

/// Of a run on short transfers: the objects come before the bulk flows.
const OBJECTS: usize = 3;

/// All of the scenario on programs that set small buffers.
const SMALL_BUFFERED: [&str; 3] = ["1g-100ms", "500m-50ms-loss-1e-3", "200m-300ms"];

/// Somebody who knows the path writes these.
const HAND_MADE: [&str; 3] = ["oracle-bbr", "oracle-cubic", "oracle-scalable"];

/// Nobody who writes them needs to.
const RECIPES: [&str; 2] = ["recipe", "cubic"];

/// Of the three flows of a run.
const FIRST: usize = 0;
const THIRD: usize = 2;
/// Of a run on harm, behind the three.
const NEIGHBOURS: usize = 3;

pub const FIGURES: [Figure; 10] = [
    higher(
        "gap.closure_median",
        "closure of the third flow of 15 s; median of the paths with a gap of a tenth or more",
        0.9,
        Summary::Median,
        |run| closures(run, SCENARIO, &PATHS, THIRD),
    ),
    higher(
        "gap.closure_worst",
        "the same on the worst path",
        0.75,
        Summary::Least,
        |run| closures(run, SCENARIO, &PATHS, THIRD),
    ),
    higher(
        "gap.first_flow_closure_median",
        "closure of the first flow of 15 s on an unknown path; median",
        0.7,
        Summary::Median,
        |run| closures(run, SCENARIO, &PATHS, FIRST),
    ),
    higher(
        "gap.over_recipe_median",
        "goodput of the third flow over that of BBR version 1 with maxima of 512 MiB; median of the paths",
        1.0,
        Summary::Median,
        over_recipe,
    ),
    higher(
        "gap.over_recipe_worst",
        "the same on the worst path",
        0.9,
        Summary::Least,
        over_recipe,
    ),
    Figure {
        better: Better::Lower,
        ..higher(
            "gap.retransmits_over_recipe_clean",
            "segments retransmitted by three flows over those of the recipe's; median of the paths without losses of their own",
            0.2,
            Summary::Median,
            retransmits_over_recipe,
        )
    },
    Figure {
        better: Better::Lower,
        unit: "points",
        ..higher(
            "gap.harm_points",
            "share of the path that two flows of CUBIC lose to one on a learned path, beyond what they lose to a third of \
             CUBIC; mean of the paths",
            5.0,
            Summary::Median,
            harm_points,
        )
    },
    Figure {
        better: Better::Lower,
        ..higher(
            "gap.short_time_ratio",
            "time of an object of 2 MB on a path that two flows showed, over its time with the defaults; median of the paths",
            0.6,
            Summary::Median,
            short_time_ratios,
        )
    },
    Figure {
        better: Better::Lower,
        unit: "points",
        ..higher(
            "gap.random_minus_suite_points",
            "closure of the third flow, median of paths that a seed drew, less that of the paths of the other figures",
            5.0,
            Summary::Worst,
            random_minus_suite_points,
        )
    },
    higher(
        "gap.small_buffers",
        "goodput of the third flow of a program that sets buffers of 128 KiB, over that of the best hand-made policy, where \
         both may override it; median of the paths",
        0.85,
        Summary::Median,
        small_buffers,
    ),
];

fn short_time_ratios(run: &Run) -> Result<Vec<f64>> {
    let ratio = |path| {
        // Objects have one size, so times are the inverse of rates.
        let mbps = |variant| {
            let reached = lab::once(run, Case::of(SHORT, variant).path(path))?;
            let objects = reached.programs_mbps.get(..OBJECTS);
            let objects = objects.context("three objects come first")?;
            fatpath_statistics::median(objects).context("no object")
        };
        Ok(mbps("default")? / mbps("auto")?)
    };
    SHORT_PATHS.into_iter().map(ratio).collect()
}

type Measure = fn(&Run) -> Result<Vec<f64>>;

const fn higher(
    name: &'static str,
    what: &'static str,
    goal: f64,
    summary: Summary,
    measure: Measure,
) -> Figure {
    Figure {
        name,
        what,
        unit: "ratio",
        better: Better::Higher,
        goal: Some(goal),
        summary,
        measure,
    }
}

/// Goodput of one of the flows, Mb/s.
fn mbps_of(run: &Run, case: Case, flow: usize) -> Result<f64> {
    let reached = lab::once(run, case)?;
    let mbps = reached.programs_mbps.get(flow);
    mbps.copied().context("three flows make a run")
}

/// Of each path with a gap.
fn closures(run: &Run, scenario: &'static str, paths: &[&str], flow: usize) -> Result<Vec<f64>> {
    let mut closures = Vec::new();
    for path in paths {
        let mbps = |variant| mbps_of(run, Case::of(scenario, variant).path(path), flow);
        let (default, auto) = (mbps("default")?, mbps("auto")?);
        let experts = RECIPES.into_iter().chain(HAND_MADE).map(mbps);
        let experts: Result<Vec<f64>> = experts.collect();
        closures.extend(closure(default, auto, &experts?));
    }
    Ok(closures)
}

/// Of the paths that were drawn, less that of the others.
fn random_minus_suite_points(run: &Run) -> Result<Vec<f64>> {
    let median = |scenario, paths| -> Result<f64> {
        let closures = closures(run, scenario, paths, THIRD)?;
        fatpath_statistics::median(&closures).context("no path has a gap")
    };
    let (suite, random) = (median(SCENARIO, &PATHS)?, median(RANDOM, &RANDOM_PATHS)?);
    run.say(format!("  closure {suite:.3}, of drawn paths {random:.3}"));
    Ok(vec![100.0 * (random - suite)])
}

fn over_recipe(run: &Run) -> Result<Vec<f64>> {
    let ratio = |path| {
        let mbps = |variant| mbps_of(run, Case::of(SCENARIO, variant).path(path), THIRD);
        Ok(mbps("auto")? / mbps("recipe")?)
    };
    PATHS.into_iter().map(ratio).collect()
}

/// One segment more of each, as the recipe may have none either.
fn retransmits_over_recipe(run: &Run) -> Result<Vec<f64>> {
    let ratio = |path| {
        let resent = |variant| -> Result<f64> {
            let case = Case::of(SCENARIO, variant).path(path);
            Ok(lab::once(run, case)?.retransmits as f64)
        };
        Ok((resent("auto")? + 1.0) / (resent("recipe")? + 1.0))
    };
    CLEAN.into_iter().map(ratio).collect()
}

fn harm_points(run: &Run) -> Result<Vec<f64>> {
    let harm = |path| {
        let reached = |variant| lab::once(run, Case::of(HARM, variant).path(path));
        let left = |reached: &Reached| {
            let mbps = reached.programs_mbps.get(NEIGHBOURS);
            mbps.copied()
                .context("the neighbours are the fourth program")
        };
        let (cubic, auto) = (reached("cubic")?, reached("auto")?);
        Ok(100.0 * (left(&cubic)? - left(&auto)?) / auto.bottleneck_mbps)
    };
    let harms: Result<Vec<f64>> = SHARED.into_iter().map(harm).collect();
    Ok(vec![harms?.iter().sum::<f64>() / SHARED.len() as f64])
}

fn small_buffers(run: &Run) -> Result<Vec<f64>> {
    let third = |path, variant| {
        let case = Case::of(SMALL_BUFFERS, variant).path(path);
        mbps_of(run, case, THIRD)
    };
    let ratio = |path| {
        let by_hand: Result<Vec<f64>> = HAND_MADE.iter().map(|by| third(path, by)).collect();
        let best = by_hand?.into_iter().fold(0.0, f64::max);
        Ok(third(path, "auto")? / best)
    };
    SMALL_BUFFERED.into_iter().map(ratio).collect()
}

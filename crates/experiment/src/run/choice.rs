// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cases of a scenario that a command line asks for, if they are not too many.
//!
//! Pure. Start with [`Choice`].

use std::collections::BTreeSet;

use clap::Args;
use fatpath_scenario::{Case, Experiment, MOST_REPEATS, MOST_RETRIES, Scenario};

use super::{Options, ScenarioError};

/// Of a second each they would take twelve days; each is planned, and kept, in memory.
const MOST_RUNS: u64 = 1_000_000;

/// Which cases: all, where nothing is given.
#[derive(Clone, Debug, Default, Args)]
pub struct Choice {
    /// Only this path; given more than once, each of them
    #[arg(long)]
    pub path: Vec<String>,
    /// Only this variant; given more than once, each of them
    #[arg(long)]
    pub variant: Vec<String>,
    /// Only this value of a name of [vary]; given more than once, each of them
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    pub vary: Vec<(String, String)>,
}

/// How often cases run on the real kernel.
#[derive(Clone, Copy, Debug, Args)]
pub struct Repeats {
    /// How often each case runs, instead of the scenario's `repeats`
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_REPEATS)))]
    repeats: Option<u32>,
    /// How often a run that is not trusted is repeated, instead of the scenario's `retries`
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=i64::from(MOST_RETRIES)))]
    retries: Option<u32>,
}

impl Repeats {
    /// What is given takes the place of what the scenario has.
    pub fn replace(&self, experiment: &mut Experiment) {
        experiment.repeats = self.repeats.unwrap_or(experiment.repeats);
        experiment.retries = self.retries.unwrap_or(experiment.retries);
    }
}

/// `loss=1%`
pub fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("give NAME=VALUE, such as loss=1%".to_owned()),
    }
}

/// The cases that are to be run.
///
/// # Errors
/// If there is none of that name, or more runs than would ever end.
pub(crate) fn cases<'s>(
    scenario: &'s Scenario,
    options: &Options,
) -> Result<Vec<&'s Case>, ScenarioError> {
    let cases = options.choice.of(scenario)?;
    check_count(cases.len(), &scenario.experiment)?;
    Ok(cases)
}

/// A command line may give other repeats than the file, and fewer cases.
fn check_count(cases: usize, experiment: &Experiment) -> Result<(), ScenarioError> {
    let repeats = u64::from(experiment.repeats);
    let of_a_case = repeats + u64::from(experiment.warm_up_runs);
    let runs = of_a_case.saturating_mul(cases as u64);
    let limits = [
        ("repeats of a case", repeats, MOST_REPEATS.into()),
        ("runs in all", runs, MOST_RUNS),
    ];
    match limits.into_iter().find(|(_, count, most)| count > most) {
        Some((what, count, most)) => Err(ScenarioError::TooMany { what, count, most }),
        None => Ok(()),
    }
}

impl Choice {
    /// The cases that it takes; at least one.
    ///
    /// # Errors
    /// If the scenario has no such path, variant or value.
    pub fn of<'s>(&self, scenario: &'s Scenario) -> Result<Vec<&'s Case>, ScenarioError> {
        let mut cases = scenario.cases.iter().collect();
        keep(&mut cases, "path", &self.path, |case| Some(&case.path))?;
        keep(&mut cases, "variant", &self.variant, |case| {
            Some(&case.variant)
        })?;
        let names: BTreeSet<&String> = self.vary.iter().map(|(name, _)| name).collect();
        for name in names {
            check_varies(&cases, name)?;
            let wanted = self.vary.iter().filter(|(other, _)| other == name);
            let wanted: Vec<String> = wanted.map(|(_, value)| value.clone()).collect();
            keep(&mut cases, name, &wanted, |case| value(case, name))?;
        }
        Ok(cases)
    }
}

/// What `[vary]` gave a case under a name.
fn value<'s>(case: &'s Case, name: &str) -> Option<&'s String> {
    let given = case.vary.iter().find(|(other, _)| other == name);
    given.map(|(_, value)| value)
}

/// The first case stands for all: every one has a value of each name.
fn check_varies(cases: &[&Case], name: &str) -> Result<(), ScenarioError> {
    let names = || cases.iter().take(1).flat_map(|case| &case.vary);
    match names().any(|(other, _)| other == name) {
        true => Ok(()),
        false => Err(no_case("[vary] of", name, names().map(|(name, _)| name))),
    }
}

/// Of the cases those with one of the wanted values, or all where none is wanted.
fn keep<'s>(
    cases: &mut Vec<&'s Case>,
    what: &str,
    wanted: &[String],
    value_of: impl Fn(&'s Case) -> Option<&'s String>,
) -> Result<(), ScenarioError> {
    let known: BTreeSet<&String> = cases.iter().copied().filter_map(&value_of).collect();
    if let Some(unknown) = wanted.iter().find(|value| !known.contains(value)) {
        return Err(no_case(what, unknown, known));
    }
    let is_wanted = |value| wanted.is_empty() || wanted.contains(value);
    cases.retain(|case| value_of(case).is_some_and(is_wanted));
    Ok(())
}

fn no_case<'s>(
    what: &str,
    name: &str,
    known: impl IntoIterator<Item = &'s String>,
) -> ScenarioError {
    let known: Vec<&str> = known.into_iter().map(String::as_str).collect();
    ScenarioError::NoCase {
        what: what.to_owned(),
        name: name.to_owned(),
        known: known.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOUR: &str = r#"
        name = "x"
        [hosts.a]
        sysctl = { "net.ipv4.tcp_sack" = "{sack}", "net.ipv4.tcp_ecn" = "{ecn}" }
        [vary]
        sack = ["0", "1"]
        ecn = ["0", "1"]
    "#;

    fn labels(vary: &[&str]) -> Result<Vec<String>, String> {
        let scenario = Scenario::parse("x.toml", FOUR).unwrap();
        let vary: Result<_, _> = vary.iter().map(|text| setting(text)).collect();
        let choice = Choice {
            vary: vary?,
            ..Choice::default()
        };
        let cases = choice.of(&scenario).map_err(|error| error.to_string())?;
        Ok(cases.iter().map(|case| case.label().to_owned()).collect())
    }

    #[test]
    fn values_of_a_name_add_cases_and_other_names_take_some_away() {
        assert_eq!(labels(&[]).unwrap().len(), 4);
        assert_eq!(labels(&["sack=0", "sack=1"]).unwrap().len(), 4);
        assert_eq!(
            labels(&["ecn=1"]).unwrap(),
            [
                "default.default.sack=0.ecn=1",
                "default.default.sack=1.ecn=1"
            ]
        );
        let one = labels(&["ecn=1", "sack=0"]).unwrap();
        assert_eq!(one, ["default.default.sack=0.ecn=1"]);
    }

    #[test]
    fn what_does_not_vary_is_refused_with_what_does() {
        let message = |text| labels(&[text]).unwrap_err();
        assert_eq!(message("ecn=2"), "the scenario has no ecn 2; it has: 0, 1");
        assert_eq!(
            message("rate=1"),
            "the scenario has no [vary] of rate; it has: sack, ecn"
        );
        assert_eq!(message("ecn"), "give NAME=VALUE, such as loss=1%");
    }

    #[test]
    fn more_runs_than_fit_are_refused_before_they_are_planned() {
        let message = |cases, repeats| {
            let experiment = Experiment {
                repeats,
                ..Experiment::default()
            };
            let checked = check_count(cases, &experiment);
            checked.map_or_else(|error| error.to_string(), |()| "fine".into())
        };
        assert_eq!(message(100, 10_000), "fine");
        assert_eq!(message(101, 10_000), "1010000 runs in all; at most 1000000");
        assert_eq!(message(1, 10_001), "10001 repeats of a case; at most 10000");
    }
}

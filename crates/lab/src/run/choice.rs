// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cases of a scenario that a command line asks for, if they are not too many.
//!
//! Pure. Start with [`cases`].

use super::{Options, ScenarioError};
use crate::scenario::{self, Experiment, MOST_REPEATS, Scenario};

/// Of a second each they would take twelve days; each is planned, and kept, in memory.
const MOST_RUNS: u64 = 1_000_000;

/// The cases that are to be run.
///
/// # Errors
/// If there is none of that name, or more runs than would ever end.
pub(crate) fn cases<'s>(
    scenario: &'s Scenario,
    options: &Options,
) -> Result<Vec<&'s scenario::Case>, ScenarioError> {
    let cases = chosen(
        scenario,
        options.path.as_deref(),
        options.variant.as_deref(),
    )?;
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

/// The cases of a path and a variant, or of all where none is named; at least one.
///
/// # Errors
/// If there is none of that name.
pub fn chosen<'s>(
    scenario: &'s Scenario,
    path: Option<&str>,
    variant: Option<&str>,
) -> Result<Vec<&'s scenario::Case>, ScenarioError> {
    let cases = scenario.cases.iter().collect();
    let cases = named(cases, "path", |case| &case.path, path)?;
    named(cases, "variant", |case| &case.variant, variant)
}

fn named<'s>(
    mut cases: Vec<&'s scenario::Case>,
    what: &'static str,
    name_of: fn(&scenario::Case) -> &String,
    name: Option<&str>,
) -> Result<Vec<&'s scenario::Case>, ScenarioError> {
    let Some(name) = name else {
        return Ok(cases);
    };
    let mut known: Vec<&str> = cases.iter().map(|case| name_of(case).as_str()).collect();
    known.sort_unstable();
    known.dedup();
    if !known.contains(&name) {
        return Err(ScenarioError::NoCase {
            what,
            name: name.to_owned(),
            known: known.join(", "),
        });
    }
    cases.retain(|case| name_of(case) == name);
    Ok(cases)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_runs_than_fit_are_refused_before_they_are_planned() {
        let told = |cases, repeats| {
            let experiment = Experiment {
                repeats,
                ..Experiment::default()
            };
            let checked = check_count(cases, &experiment);
            checked.map_or_else(|error| error.to_string(), |()| "fine".into())
        };
        assert_eq!(told(100, 10_000), "fine");
        assert_eq!(told(101, 10_000), "1010000 runs in all; at most 1000000");
        assert_eq!(told(1, 10_001), "10001 repeats of a case; at most 10000");
    }
}

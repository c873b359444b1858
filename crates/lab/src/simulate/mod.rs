// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cases of a scenario in the simulator: the same file as in the lab, the same folder of results, no
//! root, all cores.
//!
//! It refuses what the simulator does not do, by name and line, before anything runs. A run of a case has
//! one result, whatever runs beside it. Start with [`run`]; then `spec.rs`, how a case becomes a
//! simulation, and `outcome.rs`, how its outcome becomes a row.

pub mod cli;
mod command;
mod ends;
mod host;
mod law;
mod mapping;
mod options;
mod outcome;
mod series;
mod source;
mod spec;
#[cfg(test)]
mod tests;
mod window;
mod workers;

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use fatpath_policy::Policy;

use crate::plan::Plan;
use crate::progress::Together;
use crate::results::Row;
use crate::results::files;
use crate::run::folder::Folder;
use crate::run::order::{Planned, sequence};
use crate::run::shard::runs_of;
use crate::run::{self, Maker, Options, Outcome, ScenarioError};
use crate::scenario::{Case, Scenario};
use spec::{Mapped, Randomness};
use workers::{Made, Work};

pub use spec::MapError;

/// How runs are made.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// At a time.
    pub jobs: usize,
    /// Other random numbers than the scenario's; `None`: those that the lab has too.
    pub seed: Option<u64>,
}

/// Makes the runs that the folder of the results does not have yet, as [`run::run`] does in the lab.
///
/// # Errors
/// See [`ScenarioError`]; a run that fails is a row with an `error` instead.
pub fn run(scenario: &Scenario, options: &Options, how: How) -> Result<Outcome, ScenarioError> {
    let scenario = &without_warm_up(scenario);
    let simulator = Simulator::of(scenario, how)?;
    let once = simulator.check(&run::cases(scenario, options)?)?;
    let is_made_once = |case: &Case| once.contains(case.label());
    let maker = Maker::Simulator {
        seed: how.seed,
        shard: options.shard,
    };
    run::experiment(
        scenario,
        options,
        maker,
        is_made_once,
        |folder, sequence, stop| simulator.make_all(folder, &sequence, options.quiet, stop),
    )
}

/// All runs that a command would make, in order: the names of their files.
///
/// # Errors
/// If the scenario has no such case, or asks for what is not simulated.
pub fn names(
    scenario: &Scenario,
    options: &Options,
    how: How,
) -> Result<Vec<String>, ScenarioError> {
    let scenario = &without_warm_up(scenario);
    let cases = run::cases(scenario, options)?;
    let once = Simulator::of(scenario, how)?.check(&cases)?;
    let all = all_runs(scenario, &cases, &once);
    let own = runs_of(options.shard, &all);
    let is_own = |run: &&Planned| own.contains(&(run.case.label(), run.repeat().unwrap_or(0)));
    Ok(all.iter().filter(is_own).map(Planned::name).collect())
}

/// Joins the parts that commands with a shard have made in these folders.
///
/// # Errors
/// See [`run::MergeError`].
pub fn merge(
    scenario: &Scenario,
    options: &Options,
    seed: Option<u64>,
    folders: &[PathBuf],
) -> Result<Outcome, ScenarioError> {
    let scenario = &without_warm_up(scenario);
    let cases = run::cases(scenario, options)?;
    let once = Simulator::of(scenario, How { jobs: 1, seed })?.check(&cases)?;
    let all = all_runs(scenario, &cases, &once);
    let maker = Maker::Simulator { seed, shard: None };
    run::merge::merge(scenario, options, maker, (&cases, &all), folders)
}

/// In their order; of the cases in `once`, the first repeat alone.
fn all_runs<'c>(scenario: &Scenario, cases: &[&'c Case], once: &HashSet<&str>) -> Vec<Planned<'c>> {
    let is_needless = |case: &Case, repeat| repeat > 1 && once.contains(case.label());
    sequence(cases, &scenario.experiment, is_needless)
}

/// Nothing gets warm here.
pub(crate) fn without_warm_up(scenario: &Scenario) -> Scenario {
    let mut scenario = scenario.clone();
    scenario.experiment.warm_up_runs = 0;
    scenario
}

/// What all runs of a scenario share.
struct Simulator<'s> {
    scenario: &'s Scenario,
    how: How,
    policies: HashMap<&'s Path, Policy>,
}

impl<'s> Simulator<'s> {
    fn of(scenario: &'s Scenario, how: How) -> Result<Simulator<'s>, ScenarioError> {
        let mut policies = HashMap::new();
        for file in scenario.cases.iter().flat_map(|case| &case.policy) {
            if !policies.contains_key(file.as_path()) {
                policies.insert(file.as_path(), spec::policy(file)?);
            }
        }
        Ok(Simulator {
            scenario,
            how,
            policies,
        })
    }

    /// Finds what the simulator cannot do with the file before anything runs. A case that cannot be
    /// simulated for itself is a run that fails. Gives the labels of the cases of which all repeats are the
    /// same run.
    fn check<'c>(&self, cases: &[&'c Case]) -> Result<HashSet<&'c str>, MapError> {
        let mut once = HashSet::new();
        for case in cases {
            match self.mapped(case, &self.plan(case), 1) {
                Ok(mapped) if mapped.spec.is_random() => {}
                Ok(_) => {
                    once.insert(case.label());
                }
                Err(MapError::Case { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(once)
    }

    fn plan(&self, case: &Case) -> Plan {
        Plan::of(self.scenario, case, PathBuf::new())
    }

    fn mapped(&self, case: &Case, plan: &Plan, repeat: u32) -> Result<Mapped, MapError> {
        let policy = case
            .policy
            .as_ref()
            .and_then(|file| self.policies.get(file.as_path()));
        let seed = self.how.seed;
        let random = Randomness { repeat, seed };
        Mapped::of(case, plan, policy, &self.scenario.experiment, random)
    }

    fn make_all(
        &self,
        folder: &mut Folder,
        sequence: &[Planned],
        quiet: bool,
        stop: &AtomicBool,
    ) -> Result<(), ScenarioError> {
        let series = folder.part(files::SERIES)?;
        let mut progress = Together::new(sequence.len(), quiet);
        let work = Work::new(sequence.len(), self.how.jobs, stop);
        let sweep = Sweep {
            simulator: self,
            sequence,
        };
        let made = work.share(&sweep, &mut progress, |index, made| {
            let planned = &sequence[index];
            folder.check_room()?;
            let mut run = made.run;
            if let Some(bytes) = made.series {
                let name = format!("{}.csv", planned.name());
                files::write(&series.join(&name), bytes)?;
                run.series = Some(name);
            }
            let told = run::told(planned, &run.row);
            folder.add(planned, run)?;
            Ok(told)
        });
        progress.finish();
        made
    }

    /// A run; `None`: it was stopped. `watch` gets the share that is done, and says whether to go on.
    fn make(&self, planned: &Planned, watch: &mut dyn FnMut(f64) -> bool) -> Option<Made> {
        let mut row = self.row(planned);
        match self.simulate(planned.case, &mut row, watch) {
            Ok(made) => made,
            Err(error) => Some(Made::failed(row, error)),
        }
    }

    /// Of a run that fails, `row` has what was known by then.
    fn simulate(
        &self,
        case: &Case,
        row: &mut Row,
        watch: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Option<Made>, String> {
        let plan = self.plan(case);
        let mapped = self.mapped(case, &plan, row.repeat);
        let mapped = mapped.map_err(|error| error.to_string())?;
        row.every_repeat = !mapped.spec.is_random();
        row.bottleneck_mbps = outcome::bottleneck_mbps(case, &plan, &mapped, NO_END);
        let outcome = fatpath_sim::run(&mapped.spec, |progress| {
            let share = progress.now_ns as f64 / progress.end_ns.max(1) as f64;
            match watch(share) {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        });
        let outcome = outcome.map_err(|error| error.to_string())?;
        if outcome.stopped {
            return Ok(None);
        }
        let experiment = &self.scenario.experiment;
        let run = outcome::run(case, &plan, experiment, &mapped, &outcome, row.clone());
        Ok(Some(Made {
            run: run.map_err(|error| error.to_string())?,
            series: Some(series::csv(&mapped, &outcome)),
        }))
    }

    /// Its number is that of its case and repeat, whatever else was made, when, and of how many repeats.
    fn row(&self, planned: &Planned) -> Row {
        let case = planned.case;
        let repeat = planned.repeat().unwrap_or(0);
        let cases = &self.scenario.cases;
        let place = cases.iter().position(|one| one.label() == case.label());
        let earlier = repeat.saturating_sub(1) as usize * cases.len();
        Row {
            path: case.path.clone(),
            variant: case.variant.clone(),
            vary: case.vary.iter().cloned().collect(),
            run: (earlier + place.unwrap_or(0) + 1) as u32,
            repeat,
            ..Row::default()
        }
    }
}

/// Runs of a simulator.
struct Sweep<'w> {
    simulator: &'w Simulator<'w>,
    sequence: &'w [Planned<'w>],
}

impl workers::Runs for Sweep<'_> {
    fn make(&self, index: usize, watch: &mut dyn FnMut(f64) -> bool) -> Option<Made> {
        self.simulator.make(&self.sequence[index], watch)
    }

    fn panicked(&self, index: usize, said: &str) -> Made {
        let row = self.simulator.row(&self.sequence[index]);
        Made::failed(
            row,
            format!("the simulator panicked, which is a mistake in it: {said}"),
        )
    }
}

const NO_END: std::time::Duration = std::time::Duration::MAX;

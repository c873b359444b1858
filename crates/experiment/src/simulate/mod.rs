// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cases of a scenario in the simulator: the same file as in the lab, the same folder of results, no
//! root, all cores.
//!
//! It refuses what the simulator does not do, by name and line, before anything runs. A run of a case has
//! one result, whatever runs at the same time. Start with [`Simulator`]; then `spec.rs`, how a case becomes a
//! simulation, and `outcome.rs`, how its outcome becomes a row.

pub mod cli;
mod command;
mod ends;
mod host;
mod law;
mod mapped;
mod mapping;
mod models;
mod options;
mod outcome;
mod series;
mod source;
mod spec;
#[cfg(test)]
mod tests;
mod window;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fatpath_policy::Policy;
use fatpath_scenario::plan::Plan;
use fatpath_scenario::{Case, Scenario};

use crate::results::summary::summaries;
use crate::results::{Row, files};
use crate::run::{Made, Maker, Planned, Runner, ScenarioError, Shard, Watch};
use mapped::Mapped;
use spec::Randomness;

pub use mapped::MapError;
pub use models::{CaseModels, Expected};

const NO_END: Duration = Duration::MAX;

/// How runs are made.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// At a time.
    pub jobs: usize,
    /// Other random numbers than the scenario's; `None`: those that the lab has too.
    pub seed: Option<u64>,
}

/// The scenario as the simulator runs it: nothing gets warm here.
pub fn without_warm_up(scenario: &Scenario) -> Scenario {
    let mut scenario = scenario.clone();
    scenario.experiment.warm_up_runs = 0;
    scenario
}

/// What all runs of a scenario share.
#[derive(Debug)]
pub struct Simulator {
    scenario: Scenario,
    how: How,
    policies: HashMap<PathBuf, Policy>,
}

impl From<MapError> for ScenarioError {
    fn from(error: MapError) -> ScenarioError {
        match error {
            MapError::Line { line, why } => ScenarioError::Line { line, why },
            error => ScenarioError::Runner(Box::new(error)),
        }
    }
}

impl Runner for Simulator {
    fn name(&self) -> &'static str {
        "simulator"
    }

    fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    fn maker(&self, shard: Option<Shard>) -> Maker {
        Maker::Simulator {
            seed: self.how.seed,
            shard,
        }
    }

    fn folder(&self) -> &'static str {
        files::SERIES
    }

    fn jobs(&self) -> Option<usize> {
        Some(self.how.jobs)
    }

    fn check<'c>(&self, cases: &[&'c Case]) -> Result<HashSet<&'c str>, ScenarioError> {
        Ok(self.check_cases(cases)?)
    }

    fn make(
        &self,
        planned: &Planned,
        _: &Path,
        watch: &mut dyn Watch,
    ) -> Result<Option<Made>, ScenarioError> {
        let mut row = self.row(planned);
        Ok(match self.simulate(planned.case, &mut row, watch) {
            Ok(made) => made,
            Err(error) => Some(failed(row, error).into()),
        })
    }

    fn failed(&self, planned: &Planned, error: String) -> Row {
        failed(self.row(planned), error)
    }
}

fn failed(row: Row, error: String) -> Row {
    let error = Some(error);
    Row { error, ..row }
}

impl Simulator {
    /// The simulator of a scenario, with its policies.
    ///
    /// # Errors
    /// If a policy cannot be read.
    pub fn of(scenario: &Scenario, how: How) -> Result<Simulator, ScenarioError> {
        let mut policies = HashMap::new();
        for file in scenario.cases.iter().flat_map(|case| &case.policy) {
            if !policies.contains_key(file) {
                policies.insert(file.clone(), spec::policy(file)?);
            }
        }
        Ok(Simulator {
            scenario: without_warm_up(scenario),
            how,
            policies,
        })
    }

    /// Finds what the simulator cannot do with the file before anything runs. A case that cannot be
    /// simulated for itself is a run that fails. Gives the labels of the cases of which all repeats are the
    /// same run.
    fn check_cases<'c>(&self, cases: &[&'c Case]) -> Result<HashSet<&'c str>, MapError> {
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
        Plan::of(&self.scenario, case, PathBuf::new())
    }

    fn mapped(&self, case: &Case, plan: &Plan, repeat: u32) -> Result<Mapped, MapError> {
        let policy = case
            .policy
            .as_ref()
            .and_then(|file| self.policies.get(file));
        let seed = self.how.seed;
        let random = Randomness { repeat, seed };
        Mapped::of(case, plan, policy, &self.scenario.experiment, random)
    }

    /// What models expect of the cases of which these are the runs.
    pub fn models(&self, rows: &[Row]) -> Vec<CaseModels> {
        let of_case = |case: &Case, path: &str, variant: &str, vary: &BTreeMap<String, String>| {
            let own: BTreeMap<String, String> = case.vary.iter().cloned().collect();
            case.path == path && case.variant == variant && own == *vary
        };
        let cases = summaries(rows);
        let laid = cases.iter().filter_map(|one| {
            let mut all = self.scenario.cases.iter();
            let case = all.find(|case| of_case(case, &one.path, &one.variant, &one.vary))?;
            let mapped = self.mapped(case, &self.plan(case), 1);
            Some(models::laid_over(one, mapped.as_ref().map_err(|_| ())))
        });
        laid.collect()
    }

    /// Of a run that fails, `row` has what was known by then.
    fn simulate(
        &self,
        case: &Case,
        row: &mut Row,
        watch: &mut dyn Watch,
    ) -> Result<Option<Made>, String> {
        let plan = self.plan(case);
        let mapped = self.mapped(case, &plan, row.repeat);
        let mapped = mapped.map_err(|error| error.to_string())?;
        row.every_repeat = !mapped.spec.is_random();
        row.bottleneck_mbps = outcome::bottleneck_mbps(case, &plan, &mapped, NO_END);
        let outcome = fatpath_sim::run(&mapped.spec, |progress| {
            let share = progress.now_ns as f64 / progress.end_ns.max(1) as f64;
            watch.done(share);
            match watch.go_on() {
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

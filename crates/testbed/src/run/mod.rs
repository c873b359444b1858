// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the cases of a scenario on the real kernel: for each run a lab comes up, and goes down again.
//!
//! Which runs are made, and where their results go, is decided by `fatpath-experiment`. Start with [`Testbed`];
//! then `one.rs`, a single run.

mod collect;
pub(crate) mod detection;
mod flows;
mod launch;
mod one;

use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use fatpath_experiment::results::{Row, files};
use fatpath_experiment::run::{
    self, Made, Maker, Options, Outcome, Planned, Runner, ScenarioError, Shard, Watch,
};
use fatpath_host::JournalError;
use fatpath_scenario::command::CommandError;
use fatpath_scenario::{Case, Scenario};
use thiserror::Error;

use crate::iperf3::ParseError;
use crate::lab::UpError;
use crate::program;
use crate::undo::UndoError;
pub use flows::OnlySimulated;
use one::OneRun;

/// Why a scenario cannot be run at all.
#[derive(Debug, Error)]
pub enum CannotRun {
    /// Nothing to run, or nothing to take the result from.
    #[error(
        "the scenario has no program with a result; add result = \"iperf3\" to one [[program]], or a [[flow]]"
    )]
    NoResult,
    /// A flow that the lab cannot make.
    #[error(transparent)]
    OnlySimulated(#[from] OnlySimulated),
    /// The first lab did not come up; no other would.
    #[error(transparent)]
    Up(#[from] UpError),
}

impl From<CannotRun> for ScenarioError {
    fn from(error: CannotRun) -> ScenarioError {
        match error {
            CannotRun::OnlySimulated(OnlySimulated { line, why }) => ScenarioError::Line {
                line,
                why: format!("{why}; `fatpath sim` can do it"),
            },
            error => ScenarioError::Runner(Box::new(error)),
        }
    }
}

/// Why one run has no result.
#[derive(Debug, Error)]
enum CaseError {
    #[error(transparent)]
    Up(#[from] UpError),
    #[error("removing what an earlier attempt has written: {0}")]
    Clear(io::Error),
    #[error("{label}: {error}")]
    Command { label: String, error: CommandError },
    #[error(transparent)]
    Program(#[from] program::RunError),
    #[error("{label}: {error}")]
    Result { label: String, error: ResultError },
    #[error("the lab was taken down while the programs ran")]
    Gone,
    #[error("the lab's supervisor failed, or was killed; the end of its log:\n{0}")]
    SupervisorFailed(String),
    #[error(transparent)]
    Down(#[from] UndoError),
    #[error("reading what the lab's daemon has changed: {0}")]
    Daemon(#[from] JournalError),
}

impl CaseError {
    /// Whether a program with a result says itself why it has none.
    fn is_programs_own(&self) -> bool {
        let CaseError::Result { error, .. } = self else {
            return false;
        };
        matches!(error, ResultError::Parse(ParseError::Iperf3(_)))
    }
}

/// Why what a program wrote gives no result.
#[derive(Debug, Error)]
enum ResultError {
    #[error(transparent)]
    Read(#[from] io::Error),
    #[error(transparent)]
    Parse(#[from] ParseError),
    #[error("not the output of fatpath flow send --json: {0}")]
    NoReport(serde_json::Error),
}

/// Makes the runs that the folder of the results does not have yet.
///
/// # Errors
/// See [`ScenarioError`]; a run that fails is a row with an `error` instead.
pub fn run(scenario: &Scenario, options: &Options) -> Result<Outcome, ScenarioError> {
    let testbed = Testbed::of(scenario)?;
    if let Some(note) = detection::note(scenario).filter(|_| !options.quiet) {
        eprintln!("fatpath: {note}");
    }
    run::run(&testbed, options)
}

/// Runs cases on the real kernel.
#[derive(Debug)]
pub struct Testbed {
    scenario: Scenario,
    /// No run was made yet.
    is_first: AtomicBool,
}

impl Testbed {
    /// The testbed of a scenario.
    ///
    /// # Errors
    /// [`CannotRun`], where no run has a result.
    pub fn of(scenario: &Scenario) -> Result<Testbed, ScenarioError> {
        check_has_result(scenario)?;
        Ok(Testbed {
            scenario: scenario.clone(),
            is_first: AtomicBool::new(true),
        })
    }
}

fn check_has_result(scenario: &Scenario) -> Result<(), CannotRun> {
    let has_result = |case: &Case| {
        !case.flows.is_empty() || case.programs.iter().any(|program| program.result.is_some())
    };
    match scenario.cases.iter().any(has_result) {
        true => Ok(()),
        false => Err(CannotRun::NoResult),
    }
}

impl Runner for Testbed {
    fn name(&self) -> &'static str {
        "testbed"
    }

    fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    fn maker(&self, _: Option<Shard>) -> Maker {
        Maker::Lab
    }

    fn folder(&self) -> &'static str {
        files::RUNS
    }

    /// A lab's settings are the whole machine's, and labs at a time would slow one another.
    fn jobs(&self) -> Option<usize> {
        None
    }

    fn check<'c>(&self, cases: &[&'c Case]) -> Result<HashSet<&'c str>, ScenarioError> {
        let mut flows = cases.iter().flat_map(|case| &case.flows);
        flows.try_for_each(flows::check).map_err(CannotRun::from)?;
        Ok(HashSet::new())
    }

    fn make(
        &self,
        planned: &Planned,
        folder: &Path,
        watch: &mut dyn Watch,
    ) -> Result<Option<Made>, ScenarioError> {
        let is_first = self.is_first.swap(false, Ordering::Relaxed);
        let mut one = OneRun {
            scenario: &self.scenario,
            planned: *planned,
            raw: folder,
            watch,
            tells_settings: is_first,
        };
        match one.run() {
            Ok(run) => Ok(Some(run.into())),
            Err(CaseError::Program(program::RunError::Interrupted)) => Ok(None),
            Err(CaseError::Up(error)) if is_first => Err(CannotRun::Up(error).into()),
            Err(error) => Ok(Some(self.failed(planned, error.to_string()).into())),
        }
    }

    fn failed(&self, planned: &Planned, error: String) -> Row {
        Row {
            error: Some(error),
            ..one::row(&self.scenario, planned)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use fatpath_experiment::load;

    use super::*;

    fn experiments() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments")
    }

    fn fs_files(folder: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    fn is_scenario(file: &Path) -> bool {
        let name = file.to_string_lossy();
        name.ends_with(".toml") && !name.ends_with("-policy.toml")
    }

    fn scenarios() -> impl Iterator<Item = PathBuf> {
        let folders = fs_files(&experiments()).into_iter();
        let folders = folders.filter(|file| file.is_dir()).chain([experiments()]);
        let files = folders.flat_map(|folder| fs_files(&folder));
        files.filter(|file| is_scenario(file))
    }

    #[test]
    fn what_an_experiment_says_of_the_lab_the_lab_can_do() {
        let mut count = 0;
        for file in scenarios() {
            let text = std::fs::read_to_string(&file).unwrap();
            let is_itself = |word: &str| word.contains('/') && file.ends_with(word);
            let is_said =
                |line: &str| line.contains("fatpath lab run") && line.split(' ').any(is_itself);
            if text.lines().any(is_said) {
                let scenario = load(&file).unwrap();
                let testbed = Testbed::of(&scenario).unwrap();
                let cases: Vec<&Case> = scenario.cases.iter().collect();
                testbed.check(&cases).unwrap();
                let names = run::names(&testbed, &Options::default());
                assert!(!names.unwrap().is_empty(), "{file:?}");
                count += 1;
            }
        }
        assert!(count > 1, "{count}");
    }
}

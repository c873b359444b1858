// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a scenario: every case as often and in the order that its experiment says; then compares.
//!
//! What is done is noted after every run, so an experiment that was interrupted goes on where it
//! stopped. A run that fails is told and the others go on; a full disk ends it all. What runs a case is a
//! [`Runner`]. Start with [`run`].

mod choice;
mod figures;
mod fingerprint;
mod folder;
mod history;
mod merge;
mod one_by_one;
mod order;
mod runner;
mod shard;
mod together;

use std::collections::HashSet;
use std::error::Error as StdError;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fatpath_plot::PlotError;
use fatpath_scenario::{Case, Problem, Refused, Scenario};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use thiserror::Error;

use crate::results::files::WriteError;
use crate::results::{Row, Run};

pub use choice::{Choice, Repeats, setting};
pub(crate) use figures::{goodput, throughput};
use folder::Folder;
pub(crate) use folder::draw;
use history::History;
pub use history::{HistoryError, Maker};
pub use merge::MergeError;
pub(crate) use order::sequence;
pub use order::{Planned, Turn};
pub use runner::{Made, Runner, Watch};
pub use shard::Shard;

/// Which cases to run and where the results go.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The cases.
    pub choice: Choice,
    /// Of their runs only this part.
    pub shard: Option<Shard>,
    /// The folder of the results.
    pub out: PathBuf,
    /// What is in the folder is removed first.
    pub fresh: bool,
    /// No display while it runs.
    pub quiet: bool,
}

/// What all runs gave, those of earlier commands included.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Every run that was made of the chosen cases, by case and repeat.
    pub runs: Vec<Run>,
    /// How many of them an earlier command had made.
    pub kept: usize,
    /// `results.json`.
    pub results: PathBuf,
    /// The pictures.
    pub plots: Vec<PathBuf>,
    /// A signal ended it before all runs were made.
    pub interrupted: bool,
}

impl Outcome {
    /// The rows of all runs.
    pub fn rows(&self) -> Vec<Row> {
        self.runs.iter().map(|run| run.row.clone()).collect()
    }
}

/// Why there are no results at all.
#[derive(Debug, Error)]
pub enum ScenarioError {
    /// A path, a variant, or a value of `[vary]` that the scenario does not have.
    #[error("the scenario has no {what} {name}; it has: {known}")]
    NoCase {
        /// "path", "variant", "[vary] of", or a name of `[vary]`.
        what: String,
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// More than would ever end.
    #[error("{count} {what}; at most {most}")]
    TooMany {
        /// "repeats of a case" or "runs in all".
        what: &'static str,
        /// How many.
        count: u64,
        /// The limit.
        most: u64,
    },
    /// The folder of the results cannot be used.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// The parts of an experiment do not fit together.
    #[error(transparent)]
    Merge(#[from] MergeError),
    /// A file of the results cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// Signals cannot be caught.
    #[error("catching signals: {0}")]
    Signals(io::Error),
    /// A plot could not be made.
    #[error(transparent)]
    Plot(#[from] PlotError),
    /// The runner cannot do what a line of the scenario's file asks for.
    #[error("line {line}: {why}")]
    Line {
        /// From 1.
        line: usize,
        /// What, in words.
        why: String,
    },
    /// The runner cannot do what the scenario asks for, or can make no run at all.
    #[error(transparent)]
    Runner(Box<dyn StdError + Send + Sync>),
}

impl ScenarioError {
    /// With the name of the scenario's file: where a line of it is the cause, as what else is wrong with a file is told.
    pub fn in_file(self, file: &Path) -> anyhow::Error {
        let file = file.display().to_string();
        let ScenarioError::Line { line, why } = self else {
            return anyhow::Error::new(self).context(file);
        };
        let problem = Problem {
            line: line.try_into().unwrap_or(u32::MAX),
            column: 1,
            message: why,
            allowed: String::new(),
        };
        let problems = vec![problem];
        Refused { file, problems }.into()
    }
}

/// Makes the runs that the folder of the results does not have yet, of all cases or only those asked
/// for. After every run the history of them is on the disk; tables of it are written now and then, and
/// whenever this ends.
///
/// # Errors
/// See [`ScenarioError`]; a run that fails is a row with an `error` instead.
pub fn run(runner: &dyn Runner, options: &Options) -> Result<Outcome, ScenarioError> {
    let scenario = runner.scenario();
    let cases = choice::cases(scenario, options)?;
    let once = runner.check(&cases)?;
    let stop = stop_flag().map_err(ScenarioError::Signals)?;
    let mut folder = Folder::open(scenario, options, runner.maker(options.shard))?;
    let retries = scenario.experiment.retries;
    let all = all_runs(scenario, &cases, &once);
    let own = shard::runs_of(options.shard, &all);
    let done = |case: &Case, repeat| {
        let is_own = own.contains(&(case.label(), repeat));
        !is_own || folder.history.is_done(case, repeat, retries)
    };
    let sequence = sequence(&cases, &scenario.experiment, done);
    let kept = folder.history.runs_of(&cases);
    let kept = kept.iter().filter(|run| is_enough(&run.row, retries));
    let kept = kept.count();
    if kept > 0 && !options.quiet {
        eprintln!("{}", kept_line(kept, sequence.len(), &options.out));
    }
    let made = match runner.jobs() {
        None => one_by_one::make_all(runner, &mut folder, sequence, options.quiet, &stop),
        Some(jobs) => {
            together::make_all((runner, jobs), &mut folder, &sequence, options.quiet, &stop)
        }
    };
    if made.is_err() && folder.next_run() > 1 {
        // The first error is the one to tell; the history has what these tables would.
        let _ = folder.write_tables();
    }
    made?;
    let outcome = folder.finish(&cases, kept)?;
    let interrupted = stop.load(Ordering::Relaxed);
    Ok(Outcome {
        interrupted,
        ..outcome
    })
}

/// In their order; of the cases in `once`, the first repeat alone.
fn all_runs<'c>(scenario: &Scenario, cases: &[&'c Case], once: &HashSet<&str>) -> Vec<Planned<'c>> {
    let is_needless = |case: &Case, repeat| repeat > 1 && once.contains(case.label());
    sequence(cases, &scenario.experiment, is_needless)
}

/// All runs that a command would make, in order: the names of their files.
///
/// # Errors
/// If the scenario has no such case, or asks for what the runner cannot do.
pub fn names(runner: &dyn Runner, options: &Options) -> Result<Vec<String>, ScenarioError> {
    let scenario = runner.scenario();
    let cases = choice::cases(scenario, options)?;
    let all = all_runs(scenario, &cases, &runner.check(&cases)?);
    let own = shard::runs_of(options.shard, &all);
    let is_own = |run: &&Planned| {
        let is_counted = |repeat| own.contains(&(run.case.label(), repeat));
        run.repeat().is_none_or(is_counted)
    };
    Ok(all.iter().filter(is_own).map(Planned::name).collect())
}

/// Joins the parts that commands with a shard have made in these folders.
///
/// # Errors
/// See [`MergeError`].
pub fn merge(
    runner: &dyn Runner,
    options: &Options,
    folders: &[PathBuf],
) -> Result<Outcome, ScenarioError> {
    let scenario = runner.scenario();
    let cases = choice::cases(scenario, options)?;
    let all = all_runs(scenario, &cases, &runner.check(&cases)?);
    merge::merge(
        scenario,
        options,
        runner.maker(None),
        (&cases, &all),
        folders,
    )
}

/// The runs of these cases that an earlier command has made in a folder, on whatever build. `made` is the
/// scenario as a runner runs it.
///
/// # Errors
/// If there is no experiment in it, or one of another scenario.
pub fn earlier(
    folder: &Path,
    scenario: &Scenario,
    cases: &[&Case],
    made: impl FnOnce(Maker) -> Scenario,
) -> Result<Vec<Run>, ScenarioError> {
    let runs = History::read(folder, scenario, made)?;
    let of = |case: &&Case| {
        let label = case.label().to_owned();
        let runs = runs.iter().filter(move |(other, _)| *other == label);
        runs.map(|(_, run)| run.clone())
    };
    Ok(cases.iter().flat_map(of).collect())
}

/// Whether a run is not to be made again: it ended, and is to be trusted or was made again so often.
fn is_enough(row: &Row, retries: u32) -> bool {
    let is_trusted = row.trusted != Some(false);
    row.error.is_none() && (is_trusted || row.attempts.unwrap_or(1) > retries)
}

fn kept_line(kept: usize, left: usize, out: &Path) -> String {
    let out = out.display();
    match left {
        0 => format!("all {kept} runs are already in {out}; --fresh makes them again"),
        left => format!("{kept} runs are already in {out}, {left} are missing"),
    }
}

/// The result of a run in a line.
fn result_line(planned: &Planned, row: &Row) -> String {
    let result = match (&row.error, row.goodput_mbps) {
        (Some(error), _) => format!("failed: {error}"),
        (None, Some(mbps)) => format!("{mbps:.1} Mb/s"),
        (None, None) => "no result".to_owned(),
    };
    let late = row.emulator.as_ref().map(|emulator| {
        let late = &emulator.lateness;
        format!(
            "; packets late by {:.0}/{:.0}/{:.0}/{:.0} us (p50/p90/p99/max)",
            late.p50_us, late.p90_us, late.p99_us, late.max_us
        )
    });
    let doubt = row
        .distrust
        .as_ref()
        .map(|why| format!("; untrusted: {why}"));
    let attempt = row.attempts.filter(|attempts| *attempts > 1);
    let attempt = attempt.map(|attempt| format!(", attempt {attempt}"));
    let [late, doubt, attempt] = [late, doubt, attempt].map(Option::unwrap_or_default);
    format!("{}{attempt}: {result}{late}{doubt}", planned.description())
}

/// Set by Ctrl-C, SIGTERM and the end of the terminal.
fn stop_flag() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

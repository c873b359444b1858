// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a scenario: every case as often and in the order that its experiment says; then compares.
//!
//! What is done is noted after every run, so an experiment that was interrupted goes on where it
//! stopped. A run that fails is told and the others go on; a full disk ends it all. Start with
//! [`run`]; then `making.rs`, the lab's runs, and `one.rs`, a single one.

mod choice;
pub(crate) mod collect;
pub(crate) mod detection;
pub(crate) mod figures;
mod fingerprint;
pub(crate) mod flows;
pub(crate) mod folder;
mod history;
mod making;
pub(crate) mod merge;
mod one;
pub(crate) mod order;
pub(crate) mod shard;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use thiserror::Error;

use crate::lab::UpError;
use crate::plot::PlotError;
use crate::program;
use crate::progress::{Expected, Progress};
use crate::results::files::{self, WriteError};
use crate::results::{Row, Run};
use crate::scenario::command::CommandError;
use crate::scenario::{Case, Program, Scenario};

pub use choice::Choice;
pub(crate) use choice::{cases, setting};
pub use flows::OnlySimulated;
use folder::Folder;
use history::History;
pub use history::HistoryError;
pub(crate) use history::Maker;
use making::Making;
pub use merge::MergeError;
use order::{Planned, sequence};
pub use shard::Shard;

/// Where nothing says how long a program lasts.
const EXPECTED: Duration = Duration::from_secs(10);

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
    /// Nothing to run, or nothing to take the result from.
    #[error(
        "the scenario has no program with a result; add result = \"iperf3\" to one [[program]], or a [[flow]]"
    )]
    NoResult,
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
    /// A flow that the lab cannot make.
    #[error(transparent)]
    OnlySimulated(#[from] OnlySimulated),
    /// The simulator cannot do what the scenario asks for.
    #[error(transparent)]
    Map(#[from] crate::simulate::MapError),
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
    /// The first lab did not come up; no other would.
    #[error(transparent)]
    Up(#[from] UpError),
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
    #[error("{label}: {reason}")]
    Result { label: String, reason: String },
    #[error("the lab was taken down while the programs ran")]
    Gone,
    #[error("the lab's keeper failed, or was killed; its last words:\n{0}")]
    KeeperFailed(String),
    #[error(transparent)]
    Down(#[from] crate::undo::UndoError),
}

/// Makes the runs that the folder of the results does not have yet, of all cases or only those asked
/// for. After every run the history of them is on the disk; tables of it are written now and then, and
/// whenever this ends.
///
/// # Errors
/// See [`ScenarioError`]; a run that fails is a row with an `error` instead.
pub fn run(scenario: &Scenario, options: &Options) -> Result<Outcome, ScenarioError> {
    let scenario = &flows::with_programs(scenario)?;
    check_has_result(scenario)?;
    if let Some(note) = detection::note(scenario).filter(|_| !options.quiet) {
        eprintln!("{note}");
    }
    let never = |_: &Case| false;
    experiment(
        scenario,
        options,
        Maker::Lab,
        never,
        |folder, sequence, stop| {
            let expected = sequence.iter().map(expected).collect();
            let mut progress = Progress::new(expected, options.quiet);
            let mut making = Making {
                scenario,
                raw: folder.part(files::RUNS)?,
                folder,
                stop,
                is_first: true,
            };
            let made = making.make_all(sequence, &mut progress);
            progress.finish();
            made
        },
    )
}

/// Makes the runs of an experiment that are not in its folder yet, and then tables and plots of all. Of a case
/// that `is_made_once`, the first repeat is that of every repeat.
pub(crate) fn experiment(
    scenario: &Scenario,
    options: &Options,
    maker: Maker,
    is_made_once: impl Fn(&Case) -> bool,
    make_all: impl FnOnce(&mut Folder, Vec<Planned>, &AtomicBool) -> Result<(), ScenarioError>,
) -> Result<Outcome, ScenarioError> {
    let cases = cases(scenario, options)?;
    let stop = stop_flag().map_err(ScenarioError::Signals)?;
    let mut folder = Folder::open(scenario, options, maker)?;
    let retries = scenario.experiment.retries;
    let is_needless = |case: &Case, repeat| repeat > 1 && is_made_once(case);
    let all = sequence(&cases, &scenario.experiment, is_needless);
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
        eprintln!("{}", told_of_kept(kept, sequence.len(), &options.out));
    }
    let made = make_all(&mut folder, sequence, &stop);
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

/// The runs of these cases that an earlier command has made in a folder, on whatever build.
///
/// # Errors
/// If there is no experiment in it, or one of another scenario.
pub(crate) fn earlier(
    folder: &Path,
    scenario: &Scenario,
    cases: &[&Case],
) -> Result<Vec<Run>, ScenarioError> {
    let runs = History::read(folder, scenario, |maker| match maker {
        // Where iperf3 cannot make a flow, the lab has made no runs.
        Maker::Lab => flows::with_programs(scenario).unwrap_or_else(|_| scenario.clone()),
        Maker::Simulator { .. } => crate::simulate::without_warm_up(scenario),
    })?;
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

fn told_of_kept(kept: usize, left: usize, out: &Path) -> String {
    let out = out.display();
    match left {
        0 => format!("all {kept} runs are in {out} already; --fresh makes them anew"),
        left => format!("{kept} runs are in {out} already, {left} are left"),
    }
}

/// All runs that a command would make, in order: the names of their files.
///
/// # Errors
/// If the scenario has no such case, or nothing to take a result from.
pub fn names(scenario: &Scenario, options: &Options) -> Result<Vec<String>, ScenarioError> {
    let scenario = &flows::with_programs(scenario)?;
    check_has_result(scenario)?;
    let cases = cases(scenario, options)?;
    let sequence = sequence(&cases, &scenario.experiment, |_, _| false);
    Ok(sequence.iter().map(Planned::name).collect())
}

fn check_has_result(scenario: &Scenario) -> Result<(), ScenarioError> {
    let is_result = |program: &Program| program.result.is_some();
    let has_result = |case: &Case| case.programs.iter().any(is_result);
    match scenario.cases.iter().any(has_result) {
        true => Ok(()),
        false => Err(ScenarioError::NoResult),
    }
}

/// A run for the display; it lasts as long as its longest program says.
fn expected(planned: &Planned) -> Expected {
    let programs = planned.case.programs.iter();
    let longest = programs.filter_map(|program| program.lasts).max();
    Expected {
        kind: planned.case.label().to_owned(),
        name: planned.told(),
        lasts: longest.unwrap_or(EXPECTED),
    }
}

/// The result of a run in a line.
pub(crate) fn told(planned: &Planned, row: &Row) -> String {
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
        .map(|why| format!("; not to be trusted: {why}"));
    let attempt = row.attempts.filter(|attempts| *attempts > 1);
    let attempt = attempt.map(|attempt| format!(", attempt {attempt}"));
    let [late, doubt, attempt] = [late, doubt, attempt].map(Option::unwrap_or_default);
    format!("{}{attempt}: {result}{late}{doubt}", planned.told())
}

/// Set by Ctrl-C, SIGTERM and the end of the terminal.
fn stop_flag() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

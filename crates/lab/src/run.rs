// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a scenario: for every path and variant up, programs, collect, down; then compares.
//!
//! Each run has a lab of its own, so no run teaches the next one anything. A run that fails is told
//! and the others go on. Start with [`run`].

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use thiserror::Error;

use crate::iperf3;
use crate::keeper::Setting;
use crate::lab::{Lab, Lifetime, UpError};
use crate::plan::{MAINLINE_OF_A_HOST, Plan};
use crate::plot::{self, PlotError};
use crate::program::{self, Job};
use crate::progress::Progress;
use crate::results::{Row, Run};
use crate::scenario::command::CommandError;
use crate::scenario::{self, Program, ResultKind, Scenario};

/// What bringing a lab up and taking it down adds to a run, for the time left.
const AROUND_A_RUN: Duration = Duration::from_millis(1500);
/// Where nothing says how long a program lasts.
const EXPECTED: Duration = Duration::from_secs(10);

/// Which cases to run and where the results go.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Only this path.
    pub path: Option<String>,
    /// Only this variant.
    pub variant: Option<String>,
    /// The folder of the results.
    pub out: PathBuf,
    /// No display while it runs.
    pub quiet: bool,
}

/// What all runs gave.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// A row for every run that was made, in order.
    pub rows: Vec<Row>,
    /// `results.json`.
    pub results: PathBuf,
    /// `throughput.png`, if any run gave throughput over time.
    pub plot: Option<PathBuf>,
    /// A signal ended it before all runs were made.
    pub interrupted: bool,
}

/// Why there are no results at all.
#[derive(Debug, Error)]
pub enum ScenarioError {
    /// A path or variant that the scenario does not have.
    #[error("the scenario has no {what} {name}; it has: {known}")]
    NoCase {
        /// "path" or "variant".
        what: &'static str,
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// Nothing to run, or nothing to take the result from.
    #[error(
        "the scenario has no program with a result; add result = \"iperf3\" to one [[program]]"
    )]
    NoResult,
    /// A file of the results cannot be written.
    #[error("{file}: {error}")]
    Write {
        /// The file or folder.
        file: String,
        /// The system's reason.
        error: io::Error,
    },
    /// Signals cannot be caught.
    #[error("catching signals: {0}")]
    Signals(io::Error),
    /// The plot could not be made.
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
    #[error("{label}: {error}")]
    Command { label: String, error: CommandError },
    #[error(transparent)]
    Program(#[from] program::RunError),
    #[error("{label}: {reason}")]
    Result { label: String, reason: String },
    #[error("the lab was taken down, or its keeper killed, while the programs ran")]
    Gone,
    #[error(transparent)]
    Down(#[from] crate::undo::UndoError),
}

/// Runs every path with every variant (or only those asked for). After every run the results so far
/// are on the disk.
///
/// # Errors
/// See [`ScenarioError`]; a run that fails is a row with an `error` instead.
pub fn run(scenario: &Scenario, options: &Options) -> Result<Outcome, ScenarioError> {
    let cases = cases(scenario, options)?;
    let first = cases[0];
    let raw = options.out.join("runs");
    fs::create_dir_all(&raw).map_err(write_error(&raw))?;
    let stop = stop_flag().map_err(ScenarioError::Signals)?;
    let mut progress = Progress::new(cases.len(), expected(first), options.quiet);
    let mut runs: Vec<Run> = vec![];
    for case in &cases {
        progress.begin(&case.path, &case.variant);
        let mut case = Case {
            scenario,
            case,
            raw: &raw,
            stop: &stop,
            progress: &mut progress,
        };
        let run = match case.run(runs.is_empty()) {
            Err(CaseError::Program(program::RunError::Interrupted))
                if stop.load(Ordering::Relaxed) =>
            {
                break;
            }
            Err(CaseError::Up(error)) if runs.is_empty() => return Err(error.into()),
            outcome => case.outcome(outcome),
        };
        progress.end(&run.row);
        runs.push(run);
        write_results(&options.out, &runs)?;
    }
    progress.finish();
    finish(scenario, options, &runs, stop.load(Ordering::Relaxed))
}

/// One path with one variant.
struct Case<'c> {
    scenario: &'c Scenario,
    case: &'c scenario::Case,
    raw: &'c Path,
    stop: &'c AtomicBool,
    progress: &'c mut Progress,
}

impl Case<'_> {
    fn run(&mut self, is_first: bool) -> Result<iperf3::Measured, CaseError> {
        let plan = self.plan();
        let jobs = self.jobs(&plan)?;
        let mut lab = Lab::up(plan, Lifetime::OfThisProcess)?;
        if is_first {
            self.tell_settings(&lab);
        }
        let plan = lab.plan.clone();
        let (stop, progress) = (self.stop, &mut *self.progress);
        let mut go_on = || {
            progress.tick();
            !stop.load(Ordering::Relaxed) && lab.is_kept()
        };
        let ran = program::run_all(&plan, &jobs, &mut go_on);
        let measured = self.collect(ran, &jobs);
        lab.down()?;
        measured
    }

    fn plan(&self) -> Plan {
        let flow_log = self.raw.join(format!("{}.flows.jsonl", self.name()));
        let flow_log = std::path::absolute(&flow_log).unwrap_or(flow_log);
        Plan::of(self.scenario, self.case, flow_log)
    }

    fn name(&self) -> String {
        self.case.label().to_owned()
    }

    fn jobs(&self, plan: &Plan) -> Result<Vec<Job>, CaseError> {
        let programs = self.case.programs.iter().enumerate();
        programs
            .map(|(index, program)| self.job(plan, index, program))
            .collect()
    }

    fn job(&self, plan: &Plan, index: usize, program: &Program) -> Result<Job, CaseError> {
        let words = plan.words(program).map_err(|error| CaseError::Command {
            label: format!("program {} on {}", index + 1, program.host),
            error,
        })?;
        let file = Path::new(&words[0])
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let label = format!("{}-{}-{file}", index + 1, program.host);
        let (output, errors) = program::output_files(self.raw, &self.name(), &label);
        Ok(Job {
            label,
            host: program.host.clone(),
            words,
            ready_port: program.ready_port,
            time_limit: program.time_limit,
            output,
            errors,
        })
    }

    /// What the result's program wrote. If a program failed, iperf3's own reason is the better one.
    fn collect(
        &self,
        ran: Result<(), program::RunError>,
        jobs: &[Job],
    ) -> Result<iperf3::Measured, CaseError> {
        if let Err(program::RunError::Interrupted) = ran {
            let told = self.stop.load(Ordering::Relaxed);
            return Err(if told {
                CaseError::Program(program::RunError::Interrupted)
            } else {
                CaseError::Gone
            });
        }
        let (job, kind) = self.result_job(jobs);
        let text = fs::read_to_string(&job.output).map_err(|error| error.to_string());
        let parsed = match kind {
            ResultKind::Iperf3 => {
                text.and_then(|text| iperf3::parse(&text).map_err(|error| error.to_string()))
            }
        };
        match (ran, parsed) {
            (Err(_), Err(reason)) if reason.starts_with("iperf3: ") => Err(CaseError::Result {
                label: job.label.clone(),
                reason,
            }),
            (Err(error), _) => Err(error.into()),
            (Ok(()), parsed) => parsed.map_err(|reason| CaseError::Result {
                label: job.label.clone(),
                reason,
            }),
        }
    }

    fn result_job<'j>(&self, jobs: &'j [Job]) -> (&'j Job, ResultKind) {
        let programs = self.case.programs.iter().zip(jobs);
        let mut results = programs.filter_map(|(program, job)| Some((job, program.result?)));
        results
            .next()
            .expect("`cases` has refused a scenario without a result")
    }

    fn outcome(&self, outcome: Result<iperf3::Measured, CaseError>) -> Run {
        let reverse = outcome.as_ref().is_ok_and(|measured| measured.reverse);
        let bottleneck_bps = self.bottleneck_bps(reverse);
        match outcome {
            Ok(measured) => Run::finished(
                &self.case.path,
                &self.case.variant,
                bottleneck_bps,
                measured,
            ),
            Err(error) => Run::failed(
                &self.case.path,
                &self.case.variant,
                bottleneck_bps,
                error.to_string(),
            ),
        }
    }

    /// The bottleneck between the result's program and the first other host that its command names.
    fn bottleneck_bps(&self, reverse: bool) -> Option<u64> {
        let mut programs = self.case.programs.iter();
        let program = programs.find(|program| program.result.is_some())?;
        let plan = self.plan();
        let peer = &plan.peer(program)?.name;
        let (from, to) = if reverse {
            (peer, &program.host)
        } else {
            (&program.host, peer)
        };
        plan.bottleneck_bps(from, to)
    }

    fn tell_settings(&self, lab: &Lab) {
        lab.cleared.iter().for_each(|line| self.progress.say(line));
        self.progress.say(&settings_line(&lab.settings));
    }
}

/// What a lab changes of the machine and sets on its hosts, for people.
pub fn settings_line(settings: &[Setting]) -> String {
    let hosts = MAINLINE_OF_A_HOST.map(|(name, value)| format!("{} {value}", short(name)));
    let machine: Vec<String> = settings
        .iter()
        .map(|one| format!("{} {} (was {})", one.name, one.ours, one.old))
        .collect();
    let machine = if machine.is_empty() {
        "nothing".to_owned()
    } else {
        machine.join(", ")
    };
    format!(
        "mainline settings on the hosts: {}\nset on this machine while the lab is up: {machine}",
        hosts.join(", ")
    )
}

fn short(sysctl: &str) -> &str {
    sysctl.strip_prefix("net.ipv4.").unwrap_or(sysctl)
}

fn cases<'s>(
    scenario: &'s Scenario,
    options: &Options,
) -> Result<Vec<&'s scenario::Case>, ScenarioError> {
    let is_result = |program: &Program| program.result.is_some();
    if !scenario
        .cases
        .iter()
        .any(|case| case.programs.iter().any(is_result))
    {
        return Err(ScenarioError::NoResult);
    }
    chosen(
        scenario,
        options.path.as_deref(),
        options.variant.as_deref(),
    )
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

fn expected(case: &scenario::Case) -> Duration {
    let longest = case
        .programs
        .iter()
        .filter_map(|program| program.lasts)
        .max();
    longest.unwrap_or(EXPECTED) + AROUND_A_RUN
}

/// Set by Ctrl-C, SIGTERM and the end of the terminal.
fn stop_flag() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

fn finish(
    scenario: &Scenario,
    options: &Options,
    runs: &[Run],
    interrupted: bool,
) -> Result<Outcome, ScenarioError> {
    let results = write_results(&options.out, runs)?;
    let title = format!("{}: throughput over time", scenario.name);
    let plot = match plot::throughput_png(&title, runs) {
        Ok(png) => {
            let file = options.out.join("throughput.png");
            fs::write(&file, png).map_err(write_error(&file))?;
            Some(file)
        }
        Err(PlotError::Nothing) => None,
        Err(error) => return Err(error.into()),
    };
    Ok(Outcome {
        rows: runs.iter().map(|run| run.row.clone()).collect(),
        results,
        plot,
        interrupted,
    })
}

/// Writes beside the file and renames, so that a full disk leaves the earlier results whole.
fn write_results(out: &Path, runs: &[Run]) -> Result<PathBuf, ScenarioError> {
    let file = out.join("results.json");
    let rows: Vec<&Row> = runs.iter().map(|run| &run.row).collect();
    let text = serde_json::to_string_pretty(&rows).expect("rows are plain values");
    let beside = out.join(".results.json");
    fs::write(&beside, text + "\n")
        .and_then(|()| fs::rename(&beside, &file))
        .map_err(write_error(&file))?;
    Ok(file)
}

fn write_error(file: &Path) -> impl FnOnce(io::Error) -> ScenarioError {
    let file = file.display().to_string();
    move |error| ScenarioError::Write { file, error }
}

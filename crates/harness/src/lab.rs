// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath lab` for a figure: a scenario of `experiments/` on the real kernel, with nothing of fatpath's loaded
//! beside it. A run that is not to be trusted is made again.

use crate::alone::Alone;
use crate::run::Run;
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use tempfile::TempDir;

/// Of a run that is not to be trusted: a hypervisor that takes the processor for seconds spoils some.
pub const RETRIES: u32 = 5;

/// Of each case of [`runs`].
pub const REPEATS: usize = 3;

/// How often each case runs.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// For its results.
    pub repeats: usize,
    /// Again, at most, where a run is not to be trusted.
    pub retries: u32,
}

impl Times {
    /// So often, with the usual [`RETRIES`].
    pub fn of(repeats: usize) -> Times {
        Times {
            repeats,
            retries: RETRIES,
        }
    }
}

const EXPERIMENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments");

/// One case of a scenario.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Case {
    scenario: &'static str,
    choice: Vec<String>,
}

impl Case {
    /// A variant of a file below `experiments/`.
    pub fn of(scenario: &'static str, variant: &str) -> Case {
        let choice = ["--variant", variant].map(String::from).into();
        Case { scenario, choice }
    }

    /// Where a parameter has this value.
    pub fn vary(self, parameter: &str, value: &str) -> Case {
        self.choose(["--vary", &format!("{parameter}={value}")])
    }

    /// On one path of several.
    pub fn path(self, name: &str) -> Case {
        self.choose(["--path", name])
    }

    fn choose(mut self, option: [&str; 2]) -> Case {
        self.choice.extend(option.map(String::from));
        self
    }
}

/// A trusted run of a case.
#[derive(Clone, Debug)]
pub struct Reached {
    /// What the receivers got of data, all together.
    pub goodput_mbps: f64,
    /// The rate of the bottleneck, bits on the wire.
    pub bottleneck_mbps: f64,
    /// Segments retransmitted.
    pub retransmits: u64,
    /// What each program's receiver got, where there are several.
    pub programs_mbps: Vec<f64>,
    /// Of the deepest queue that was observed: 95 % of the time it was no deeper.
    pub p95_queue_bytes: Option<u64>,
}

/// A run of results.json.
#[derive(Deserialize)]
struct Row {
    repeat: usize,
    goodput_mbps: Option<f64>,
    bottleneck_mbps: Option<f64>,
    retransmits: Option<u64>,
    attempts: Option<u32>,
    #[serde(default)]
    programs: Vec<Program>,
    #[serde(default)]
    directions: Vec<Direction>,
    trusted: Option<bool>,
    distrust: Option<String>,
}

#[derive(Deserialize)]
struct Program {
    goodput_mbps: f64,
}

#[derive(Deserialize)]
struct Direction {
    p95_queue_bytes: u64,
}

/// The runs of a case, by repeat.
pub fn runs(run: &Run, case: Case) -> Result<Vec<Reached>> {
    repeated(run, case, REPEATS)
}

/// The one run of a case that figures need of many.
pub fn once(run: &Run, case: Case) -> Result<Reached> {
    let runs = repeated(run, case, 1)?;
    runs.into_iter().next().context("no run")
}

/// They are made once, also where several figures are of them.
fn repeated(run: &Run, case: Case, repeats: usize) -> Result<Vec<Reached>> {
    static MADE: Mutex<BTreeMap<Case, Vec<Reached>>> = Mutex::new(BTreeMap::new());
    let mut made = MADE.lock().expect("nothing panics while it is held");
    if let Some(runs) = made.get(&case) {
        return Ok(runs.clone());
    }
    let choice: Vec<&str> = case.choice.iter().map(String::as_str).collect();
    let mut rows: Vec<Row> = printed(run, "run", case.scenario, Times::of(repeats), &choice)?;
    rows.sort_by_key(|row| row.repeat);
    let runs: Result<Vec<Reached>> = rows.iter().map(|row| row.reached(run, &case)).collect();
    let runs = runs?;
    ensure!(runs.len() == repeats, "{} runs of {repeats}", runs.len());
    made.insert(case, runs.clone());
    Ok(runs)
}

fn named(case: &Case) -> String {
    format!("{} {}", case.scenario, case.choice.join(" "))
}

impl Row {
    /// Refused if it is not to be trusted after all attempts.
    fn check_trusted(&self, case: &Case) -> Result<()> {
        let why = self.distrust.as_deref().unwrap_or_default();
        ensure!(
            self.trusted == Some(true),
            "{}: a run is untrusted after {RETRIES} retries: {why}",
            named(case)
        );
        Ok(())
    }

    /// Of a path whose rate stays; refused as above.
    fn reached(&self, run: &Run, case: &Case) -> Result<Reached> {
        self.check_trusted(case)?;
        let name = named(case);
        let queues = self.directions.iter().map(|one| one.p95_queue_bytes);
        let programs = self.programs.iter().map(|one| one.goodput_mbps);
        let reached = Reached {
            goodput_mbps: self.goodput_mbps.context("no goodput")?,
            bottleneck_mbps: self.bottleneck_mbps.context("no bottleneck")?,
            retransmits: self.retransmits.unwrap_or_default(),
            programs_mbps: programs.collect(),
            p95_queue_bytes: queues.max(),
        };
        run.say(format!(
            "  {name}, run {}, attempt {}: {}",
            self.repeat,
            self.attempts.unwrap_or(1),
            reached.line()
        ));
        Ok(reached)
    }
}

impl Reached {
    fn line(&self) -> String {
        let mut line = format!(
            "{:.1} Mb/s, {} segments retransmitted",
            self.goodput_mbps, self.retransmits
        );
        if !self.programs_mbps.is_empty() {
            line += &format!(", {:.1?} Mb/s by program", self.programs_mbps);
        }
        if let Some(bytes) = self.p95_queue_bytes {
            line += &format!(", queue of {bytes} B");
        }
        line
    }
}

/// The folder of one trusted run of a case.
pub fn kept(run: &Run, case: &Case) -> Result<TempDir> {
    let out = tempfile::tempdir()?;
    let choice: Vec<&str> = case.choice.iter().map(String::as_str).collect();
    let once = Times::of(1);
    let rows: Vec<Row> = printed_into(run, "run", case.scenario, once, &choice, out.path())?;
    rows.first().context("no run")?.check_trusted(case)?;
    Ok(out)
}

/// What `fatpath lab COMMAND SCENARIO` prints as JSON.
pub fn printed<T: DeserializeOwned>(
    run: &Run,
    command: &str,
    scenario: &str,
    times: Times,
    choice: &[&str],
) -> Result<T> {
    let out = tempfile::tempdir()?;
    printed_into(run, command, scenario, times, choice, out.path())
}

fn printed_into<T: DeserializeOwned>(
    run: &Run,
    command: &str,
    scenario: &str,
    times: Times,
    choice: &[&str],
    out: &Path,
) -> Result<T> {
    let alone = Alone::wait(run)?;
    alone.wait_until_unloaded(run)?;
    run.check()?;
    run.say_load()?;
    let output = Command::new(&run.fatpath)
        .args(["lab", command])
        .arg(PathBuf::from(EXPERIMENTS).join(scenario))
        .args(["--json", "--quiet"])
        .args(["--repeats", &times.repeats.to_string()])
        .args(["--retries", &times.retries.to_string()])
        .args(choice)
        .arg("--out")
        .arg(out)
        .env("PATH", with_fatpath(run)?)
        .output()
        .with_context(|| format!("cannot run fatpath lab {command}"))?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "fatpath lab {command}: {error}");
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Programs of a scenario ask `fatpath`: the one that is measured.
fn with_fatpath(run: &Run) -> Result<OsString> {
    let folder = run.fatpath.parent().context("no folder")?.to_owned();
    let path = env::var_os("PATH").unwrap_or_default();
    Ok(env::join_paths(
        [folder].into_iter().chain(env::split_paths(&path)),
    )?)
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `make test`: every test on this host, in two lanes that run side by side.
//!
//! Tests of the whole program take the host for themselves, one after the other, and mostly wait: for round trips
//! of emulated paths, and for timers. In the second lane run first the tests that need emulated paths and nothing else;
//! then the rest, which needs the processor, and yields it to the first lane. Last in it, where asked for, is the kernel
//! matrix: what the first lane leaves of the processors is most of what the guests take.

mod report;

use crate::programs::{self, Kind, Program};
use crate::shell;
use crate::tally::Test;
use anyhow::{Context as _, Result, bail};
use report::Report;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Mutex;
use std::time::Instant;

/// Folders of the packages whose integration tests need the processor alone. Those of all others but `ONLY_NAMESPACES`
/// need the host: its laws or its sysctls.
const ONLY_COMPUTE: [&str; 12] = [
    "crates/cc",
    "crates/estats",
    "crates/link",
    "crates/observation",
    "crates/plot",
    "crates/policy",
    "crates/record",
    "crates/scenario",
    "crates/sim",
    "crates/toml",
    "crates/train",
    "crates/units",
];

/// Integration tests of other packages that do the same: time is simulated, and they load nothing into the kernel, whose
/// programs the tests of the other lane count.
const COMPUTE_TOO: [&str; 2] = ["shards", "simulate"];

/// Folders of the packages whose integration tests need network namespaces or a small disk of their own, and change
/// nothing that is the host's. They wait, too, and do not yield.
const ONLY_NAMESPACES: [&str; 2] = ["crates/archive", "crates/emulator"];

/// Integration tests of other packages that do the same. A test over a path of the lab is none of them: the lab sets
/// sysctls of the host, which tests of a daemon in the other lane change.
const NAMESPACES_TOO: [&str; 4] = ["listen", "listen_bounds", "mover_delete", "mover_keeps"];

/// One run of a test program.
struct Run {
    name: String,
    command: Command,
}

/// `[long | kernels]`: runs all tests, or those that are left out because they last, or all tests and the kernel matrix.
pub fn test(root: &Path, words: &[String]) -> Result<()> {
    let (log, which) = match words.first().map(String::as_str) {
        None | Some("kernels") => ("out/test.log", None),
        Some("long") => ("out/test-long.log", Some("--ignored")),
        Some(word) => bail!("{word} is not known: test [long | kernels]"),
    };
    let programs = programs::build(root)?;
    let run = |program| run_of(root, program, which);
    let lane_of = |place| {
        programs
            .iter()
            .filter(move |p| place_of(root, p) == Some(place))
    };
    let on_host: Vec<Run> = lane_of(Place::Host).map(run).collect();
    let in_namespaces = lane_of(Place::Namespaces).map(run);
    let compute = lane_of(Place::Processor).map(run).map(yielding);
    let second: Vec<Run> = in_namespaces.chain(compute).collect();
    let matrix = words.first().is_some_and(|word| word == "kernels");
    let matrix = matrix.then(matrix_run).transpose()?;
    let report = Mutex::new(Report::new(&root.join(log), std::io::stdout())?);
    let matrix = std::thread::scope(|scope| -> Result<Result<()>> {
        let second = scope.spawn(|| -> Result<Result<()>> {
            lane(second, &report)?;
            Ok(matrix.map_or(Ok(()), |mut run| shell::run(&mut run.command)))
        });
        let on_host = lane(on_host, &report);
        let matrix = second.join().unwrap_or_else(|_| bail!("a lane stopped"))?;
        on_host.map(|()| matrix)
    })?;
    let mut report = report
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    for mut run in late_runs(root, &programs, report.late()) {
        let output = run.command.output().with_context(|| run.name.clone())?;
        report.add_again(&run.name, &text(&output), output.status)?;
    }
    report.conclude().and(matrix)
}

/// A program of its own, so that QEMU yields as it does.
fn matrix_run() -> Result<Run> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("kernels");
    let name = "the kernel matrix".to_owned();
    Ok(yielding(Run { name, command }))
}

/// What failed, each program's tests once more, with the machine to itself: a test that looks at a flow in time cannot
/// where the machine stands still for a moment, and what it says the first time is printed all the same.
fn late_runs(root: &Path, programs: &[Program], late: &[Test]) -> Vec<Run> {
    let tests = programs.iter().filter(|p| p.kind != Kind::Binary);
    let runs = tests.filter_map(|program| {
        let mut run = run_of(root, program, Some("--include-ignored"));
        let own = late.iter().filter(|test| test.program == run.name);
        let names: Vec<&str> = own.map(|test| &*test.name).collect();
        run.command
            .args(&names)
            .args(["--exact", "--test-threads=1"]);
        (!names.is_empty()).then_some(run)
    });
    runs.collect()
}

/// What a test program needs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Host,
    Namespaces,
    Processor,
}

/// `None`: it is no test program.
fn place_of(root: &Path, program: &Program) -> Option<Place> {
    let is_of = |folders: &[&str]| folders.iter().any(|f| root.join(f) == program.folder);
    match program.kind {
        Kind::Binary => None,
        Kind::UnitTests => Some(Place::Processor),
        Kind::IntegrationTest if is_of(&ONLY_NAMESPACES) => Some(Place::Namespaces),
        Kind::IntegrationTest if NAMESPACES_TOO.contains(&&*program.name) => {
            Some(Place::Namespaces)
        }
        Kind::IntegrationTest if is_of(&ONLY_COMPUTE) => Some(Place::Processor),
        Kind::IntegrationTest if COMPUTE_TOO.contains(&&*program.name) => Some(Place::Processor),
        Kind::IntegrationTest => Some(Place::Host),
    }
}

/// Tests of the whole program that share a daemon mostly wait, so more of them run at once than there are
/// processors; not all, since one that looks at its flow must not look too late.
const THREADS: (&str, &str) = ("crates/cli", "3");

/// As cargo runs it.
fn run_of(root: &Path, program: &Program, which: Option<&str>) -> Run {
    let package = program.folder.strip_prefix(root).unwrap_or(&program.folder);
    let mut command = Command::new(&program.path);
    command
        .current_dir(&program.folder)
        .env("CARGO_MANIFEST_DIR", &program.folder);
    command.arg("--show-output").args(which);
    if program.folder == root.join(THREADS.0) {
        command.env("RUST_TEST_THREADS", THREADS.1);
    }
    let name = format!("{} {}", package.display(), program.name);
    Run { name, command }
}

/// With what the other lane leaves of the processors: whatever wakes up there runs at once.
fn yielding(run: Run) -> Run {
    let mut command = Command::new("chrt");
    command
        .args(["--idle", "0"])
        .arg(run.command.get_program())
        .args(run.command.get_args());
    let changes = run
        .command
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)));
    command.envs(changes);
    if let Some(folder) = run.command.get_current_dir() {
        command.current_dir(folder);
    }
    Run { command, ..run }
}

/// One run after the other.
fn lane(runs: impl IntoIterator<Item = Run>, report: &Mutex<Report>) -> Result<()> {
    for mut run in runs {
        let start = Instant::now();
        let output = run.command.output().with_context(|| run.name.clone())?;
        let Ok(mut report) = report.lock() else {
            bail!("a lane stopped")
        };
        report.add(&run.name, &text(&output), output.status, start.elapsed())?;
    }
    Ok(())
}

fn text(output: &Output) -> String {
    [&output.stdout, &output.stderr]
        .map(|bytes| String::from_utf8_lossy(bytes))
        .concat()
}

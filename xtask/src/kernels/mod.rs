// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel matrix: Debian's kernels in QEMU, and the tests of the kernel in them.
//!
//! It refuses to pass when a test fails, when nothing ran, when the kernel complains, and when
//! the guest does not come to its end. Start at `kernels`.

mod compare;
mod debian;
mod machine;
mod programs;
mod root;
mod systemd;

use crate::programs::Program;
use crate::tally::Tally;
use anyhow::{Context as _, Result, ensure};
use compare::{Comparison, Table};
use debian::Kernel;
use machine::{Machine, Medium};
use root::Root;
use rustix::fs::FlockOperation;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The supported floor, and the newest that the same Debian has.
const VERSIONS: [&str; 2] = ["6.1", "6.12"];

/// Programs that the tests call; the tutorial's commands are for bash.
const TOOLS: [&str; 8] = [
    "bash", "bpftool", "ip", "ss", "tc", "ethtool", "iperf3", "nsenter",
];

/// Several times what both together take on two processors: beside other work it is longer.
const LIMIT: Duration = Duration::from_secs(3300);

/// More tests that fail are no accident of an emulated machine.
const MAY_BE_LATE: usize = 3;

const INIT: &str = include_str!("init.sh");

/// `cargo xtask kernels …`: `run`, `compare`, `systemd`, or else the tests.
pub fn kernels(root: &Path, words: &[String]) -> Result<()> {
    match words.first().map(String::as_str) {
        Some("run") => run(root, &words[1..]),
        Some("compare") => compare(root, &words[1..]),
        Some("systemd") => systemd::systemd(root, &words[1..]),
        _ => test(root, words),
    }
}

/// `[VERSION…] [-- TEST ARGUMENTS]`: runs the tests of the kernel under each version, all at once.
fn test(root: &Path, words: &[String]) -> Result<()> {
    let (versions, arguments) = divided(words);
    let kernels = fetched(root, versions)?;
    let programs = programs::build(root)?;
    let programs = programs.as_slice();
    let failed = std::thread::scope(|scope| {
        let start = |kernel| scope.spawn(move || is_good_under(kernel, programs, arguments));
        let runs: Vec<_> = kernels.iter().map(start).collect();
        let verdicts = runs.into_iter().map(|run| run.join().unwrap_or(false));
        verdicts.filter(|is_good| !is_good).count()
    });
    ensure!(failed == 0, "failed under {failed} of the kernels");
    Ok(())
}

/// `run [VERSION…] -- COMMAND…`: runs a command in the guest; fatpath is in its path.
fn run(root: &Path, words: &[String]) -> Result<()> {
    let (versions, command) = divided(words);
    ensure!(!command.is_empty(), "run [VERSION…] -- COMMAND…");
    let kernels = fetched(root, versions)?;
    let programs = programs::build(root)?;
    let job = programs::command(&programs, command)?;
    for kernel in &kernels {
        boot(kernel, &programs, &job, LIMIT, |line| println!("{line}"))?;
    }
    Ok(())
}

/// `compare [-- FLOWS SECONDS DELAY_MS OURS=THEIRS…]`: our laws beside those of the kernel.
fn compare(root: &Path, words: &[String]) -> Result<()> {
    let (versions, words) = divided(words);
    let comparison = Comparison::new(words)?;
    let newest = VERSIONS[VERSIONS.len() - 1].to_owned();
    let versions = if versions.is_empty() {
        &[newest]
    } else {
        versions
    };
    let programs = programs::build(root)?;
    let job = programs::command(&programs, &comparison.command())?;
    for kernel in &fetched(root, versions)? {
        let mut table = Table::default();
        let mut rows = Ok(());
        boot(
            kernel,
            &programs,
            &job,
            comparison.limit(),
            |line| match table.row(line) {
                Ok(row) => row.iter().for_each(|row| println!("{row}")),
                Err(error) => rows = Err(error),
            },
        )?;
        rows?;
        table.verdict()?;
    }
    Ok(())
}

/// What stands before `--`, and what after it.
fn divided(words: &[String]) -> (&[String], &[String]) {
    let end = words.iter().position(|word| word == "--");
    let (before, after) = words.split_at(end.unwrap_or(words.len()));
    (before, after.get(1..).unwrap_or_default())
}

fn fetched(root: &Path, versions: &[String]) -> Result<Vec<Kernel>> {
    let cache = root.join("target/kernels");
    let fetch = |version: &str| debian::kernel(&cache, version);
    match versions {
        [] => VERSIONS.into_iter().map(fetch).collect(),
        _ => versions.iter().map(|version| fetch(version)).collect(),
    }
}

fn is_good_under(kernel: &Kernel, programs: &[Program], arguments: &[String]) -> bool {
    verdict(kernel, programs, arguments).unwrap_or_else(|error| {
        println!("{}: {error:#}", kernel.release);
        false
    })
}

/// A few that failed have a second time, in a new guest with nothing else to do, and what is printed shows it: an
/// emulated processor is late by any time. On the host, in `make test`, there is none.
fn verdict(kernel: &Kernel, programs: &[Program], arguments: &[String]) -> Result<bool> {
    let job = programs::job(programs, arguments)?;
    let first = tests_under(kernel, programs, "tests.log", &job)?;
    let failed = first.failed();
    if !first.is_good_but_for_failed() || failed.is_empty() || failed.len() > MAY_BE_LATE {
        return Ok(first.is_good());
    }
    println!("{}: what failed runs again", kernel.release);
    let job = programs::job_again(programs, failed)?;
    let second = tests_under(kernel, programs, "again.log", &job)?;
    Ok(second.is_good() && second.passed() >= failed.len())
}

/// Prints what failed and the counts; all that is said goes into a file in the kernel's folder, each line with the
/// seconds since the start.
fn tests_under(kernel: &Kernel, programs: &[Program], log: &str, job: &str) -> Result<Tally> {
    let start = Instant::now();
    let mut tally = Tally::default();
    let release = &kernel.release;
    let mut log = File::create(kernel.folder.join(log))?;
    let mut kept = Ok(());
    boot(kernel, programs, job, LIMIT, |line| {
        tally.add(line);
        if kept.is_ok() {
            kept = writeln!(log, "{:7.1} {line}", start.elapsed().as_secs_f64());
        }
        if tally.is_news(line) {
            println!("{release}: {line}");
        }
    })?;
    kept.context("what the tests said")?;
    println!("{release}: {tally}, {} s", start.elapsed().as_secs());
    Ok(tally)
}

/// Runs a job under a kernel, to its end.
fn boot(
    kernel: &Kernel,
    programs: &[Program],
    job: &str,
    limit: Duration,
    on_line: impl FnMut(&str),
) -> Result<()> {
    let _alone = lock(kernel)?;
    Machine {
        image: &kernel.image,
        medium: Medium::Initramfs(&pack(kernel, programs, job)?),
        console: &kernel.folder.join("console.log"),
        limit,
    }
    .run(on_line)
}

/// One guest of a kernel at a time: its root is made anew for each.
fn lock(kernel: &Kernel) -> Result<File> {
    let file = File::create(kernel.folder.join("lock"))?;
    rustix::fs::flock(&file, FlockOperation::LockExclusive)?;
    Ok(file)
}

fn pack(kernel: &Kernel, programs: &[Program], job: &str) -> Result<PathBuf> {
    let root = Root::new(&kernel.folder.join("guest"))?;
    for tool in TOOLS {
        root.add_tool(tool)?;
    }
    for program in programs {
        root.add_built(&program.path)?;
    }
    root.add_modules(kernel)?;
    root.add_script("init", INIT)?;
    root.add_script("job", job)?;
    let archive = kernel.folder.join("initramfs.cpio");
    root.pack(&archive)?;
    Ok(archive)
}

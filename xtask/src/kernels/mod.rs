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
mod shell;
mod tally;

use anyhow::{Result, ensure};
use compare::{Comparison, Table};
use debian::Kernel;
use machine::Machine;
use programs::Program;
use root::Root;
use rustix::fs::FlockOperation;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tally::Tally;

/// The supported floor, and the newest that the same Debian has.
const VERSIONS: [&str; 2] = ["6.1", "6.12"];

/// Programs that the tests call.
const TOOLS: [&str; 7] = ["bpftool", "ip", "ss", "tc", "ethtool", "iperf3", "nsenter"];

/// On two processors both together take some 35 minutes, beside other work longer.
const LIMIT: Duration = Duration::from_secs(3300);

const INIT: &str = include_str!("init.sh");

/// `cargo xtask kernels …`: `run`, `compare`, or else the tests.
pub fn kernels(root: &Path, words: &[String]) -> Result<()> {
    match words.first().map(String::as_str) {
        Some("run") => run(root, &words[1..]),
        Some("compare") => compare(root, &words[1..]),
        _ => test(root, words),
    }
}

/// `[VERSION…] [-- TEST ARGUMENTS]`: runs the tests of the kernel under each version, all at once.
fn test(root: &Path, words: &[String]) -> Result<()> {
    let (versions, arguments) = divided(words);
    let kernels = fetched(root, versions)?;
    let programs = programs::build(root)?;
    let job = programs::job(&programs, arguments)?;
    let (programs, job) = (programs.as_slice(), job.as_str());
    let failed = std::thread::scope(|scope| {
        let start = |kernel| scope.spawn(move || is_good_under(kernel, programs, job));
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

/// Prints the verdict, and after a failure everything that was said.
fn is_good_under(kernel: &Kernel, programs: &[Program], job: &str) -> bool {
    let start = Instant::now();
    let mut tally = Tally::default();
    let mut transcript = String::new();
    let release = &kernel.release;
    let run = boot(kernel, programs, job, LIMIT, |line| {
        tally.add(line);
        transcript += &format!("{line}\n");
        if is_news(line) {
            println!("{release}: {line}");
        }
    });
    let is_good = run.is_ok() && tally.is_good();
    if !is_good {
        println!("{transcript}");
    }
    if let Err(error) = run {
        println!("{release}: {error:#}");
    }
    println!("{release}: {tally}, {} s", start.elapsed().as_secs());
    is_good
}

fn is_news(line: &str) -> bool {
    line.starts_with("test ") || line.starts_with("skipped:")
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
        initramfs: &pack(kernel, programs, job)?,
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

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel matrix: Debian's kernels in QEMU, and the tests of the kernel in them.
//!
//! It refuses to pass when a test fails, when nothing ran, when the kernel complains, and when
//! the guest does not come to its end. Start at `test`.

mod debian;
mod machine;
mod programs;
mod root;
mod shell;
mod tally;

use anyhow::{Context as _, Result, ensure};
use programs::Program;
use root::Root;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tally::Tally;

/// The supported floor, and the newest that the same Debian has.
const VERSIONS: [&str; 2] = ["6.1", "6.12"];

/// Programs that the tests call.
const TOOLS: [&str; 7] = ["bpftool", "ip", "ss", "tc", "ethtool", "iperf3", "nsenter"];

/// In software on two shared processors a run takes one to two minutes.
const LIMIT: Duration = Duration::from_secs(600);

const INIT: &str = include_str!("init.sh");

/// `[VERSION…] [-- TEST ARGUMENTS]`: runs the tests of the kernel under each version.
pub fn test(root: &Path, words: &[String]) -> Result<()> {
    let (versions, arguments) = divided(words);
    let programs = programs::build(root)?;
    let job = programs::job(&programs, arguments)?;
    let mut failures = Vec::new();
    for version in versions_or_all(versions) {
        if let Err(error) = test_under(root, &version, &programs, &job) {
            println!("{version}: {error:#}");
            failures.push(version);
        }
    }
    ensure!(failures.is_empty(), "failed under {}", failures.join(", "));
    Ok(())
}

/// `run VERSION… -- COMMAND…`: runs a command in the guest; fatpath is in its path.
pub fn run(root: &Path, words: &[String]) -> Result<()> {
    let (versions, command) = divided(words);
    ensure!(!command.is_empty(), "run VERSION… -- COMMAND…");
    let programs = programs::build(root)?;
    let job = programs::command(&programs, command)?;
    for version in versions_or_all(versions) {
        boot(root, &version, &programs, &job, |line| println!("{line}"))?;
    }
    Ok(())
}

/// What stands before `--`, and what after it.
fn divided(words: &[String]) -> (&[String], &[String]) {
    let end = words.iter().position(|word| word == "--");
    let (before, after) = words.split_at(end.unwrap_or(words.len()));
    (before, after.get(1..).unwrap_or_default())
}

fn versions_or_all(given: &[String]) -> Vec<String> {
    match given {
        [] => VERSIONS.map(str::to_owned).to_vec(),
        _ => given.to_vec(),
    }
}

fn test_under(root: &Path, version: &str, programs: &[Program], job: &str) -> Result<()> {
    let start = Instant::now();
    let mut tally = Tally::default();
    let mut transcript = String::new();
    let release = boot(root, version, programs, job, |line| {
        tally.add(line);
        transcript += line;
        transcript += "\n";
        if is_news(line) {
            println!("{version}: {line}");
        }
    })
    .with_context(|| transcript.clone())?;
    println!("{release}: {tally}, {} s", start.elapsed().as_secs());
    ensure!(tally.is_good(), "{transcript}");
    Ok(())
}

fn is_news(line: &str) -> bool {
    line.starts_with("test ") || line.starts_with("skipped:")
}

/// Runs a job under a kernel, to its end; gives the kernel's release.
fn boot(
    root: &Path,
    version: &str,
    programs: &[Program],
    job: &str,
    on_line: impl FnMut(&str),
) -> Result<String> {
    let cache = root.join("target/kernels");
    let kernel = debian::kernel(&cache, version)?;
    let initramfs = pack(&cache.join(version), &kernel, programs, job)?;
    machine::Machine {
        image: &kernel.image,
        initramfs: &initramfs,
        console: &machine::console_path(&cache, version),
        limit: LIMIT,
    }
    .run(on_line)
    .with_context(|| kernel.release.clone())?;
    Ok(kernel.release)
}

fn pack(
    folder: &Path,
    kernel: &debian::Kernel,
    programs: &[Program],
    job: &str,
) -> Result<PathBuf> {
    let root = Root::new(&folder.join("guest"))?;
    for tool in TOOLS {
        root.add_tool(tool)?;
    }
    for program in programs {
        root.add_built(&program.path)?;
    }
    root.add_modules(kernel)?;
    root.add_script("init", INIT)?;
    root.add_script("job", job)?;
    let archive = folder.join("initramfs.cpio");
    root.pack(&archive)?;
    Ok(archive)
}

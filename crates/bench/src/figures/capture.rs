// SPDX-License-Identifier: MIT OR Apache-2.0
//! How fast `fatpath analyse` reads a capture, and what it holds: files of 1 GB as `tcpdump -s 128` writes them, on one
//! processor. Its time is that of the processor, since others use the machine.

use crate::captured;
use crate::cpu_time::of_children;
use crate::figure::{Better, Figure, Summary};
use crate::memory::peak_kib;
use crate::one_processor::OneProcessor;
use crate::run::Run;
use anyhow::{Context, Result, ensure};
use std::fs::File;
use std::io::{BufWriter, Read, Write, copy, sink};
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::NamedTempFile;

const GB: u64 = 1_000_000_000;
/// tshark needs ten seconds for it; on less, our own start and the clock of 1/100 s would be measured.
const TSHARK_BYTES: u64 = 200_000_000;
const RUNS: usize = 5;

const FEW: u32 = 20;
const MANY: u32 = 20_000;

/// Median of five.
pub const MPPS: Figure = Figure {
    name: "capture.mpps",
    what: "analyse: packets in a second of one core, 1 GB of 20 connections, headers only",
    unit: "million packets/s",
    better: Better::Higher,
    goal: Some(3.0),
    summary: Summary::Median,
    measure: |run| speeds(run, FEW),
};

/// Median of five.
pub const MPPS_20K: Figure = Figure {
    name: "capture.mpps_20k",
    what: "analyse: packets in a second of one core, 1 GB of 20,000 connections, headers only",
    unit: "million packets/s",
    better: Better::Higher,
    goal: Some(2.0),
    summary: Summary::Median,
    measure: |run| speeds(run, MANY),
};

/// Median of five pairs.
pub const OVER_TSHARK: Figure = Figure {
    name: "capture.over_tshark",
    what: "analyse: processor time of tshark's expert analysis over ours, same capture",
    unit: "ratio",
    better: Better::Higher,
    goal: Some(30.0),
    summary: Summary::Median,
    measure: over_tshark,
};

/// The most that it held.
pub const MEMORY: Figure = Figure {
    name: "capture.memory_mb",
    what: "analyse: most memory, 1 GB of 20,000 connections",
    unit: "MB",
    better: Better::Lower,
    goal: Some(200.0),
    summary: Summary::Worst,
    measure: memory,
};

fn speeds(run: &Run, connections: u32) -> Result<Vec<f64>> {
    let (file, packets) = written(connections, GB)?;
    let _one = OneProcessor::keep()?;
    let mut samples = Vec::new();
    for _ in 0..RUNS {
        run.check()?;
        let seconds = seconds_of(&mut analyse(run, file.path()))?;
        samples.push(packets as f64 / seconds / 1e6);
    }
    Ok(samples)
}

/// In a temporary file, removed when it is dropped.
fn written(connections: u32, bytes: u64) -> Result<(NamedTempFile, u64)> {
    let file = NamedTempFile::new()?;
    let mut out = BufWriter::new(File::create(file.path())?);
    let packets = captured::write(&mut out, connections, bytes)?;
    out.flush()?;
    Ok((file, packets))
}

fn analyse(run: &Run, file: &Path) -> Command {
    let mut command = Command::new(&run.fatpath);
    command.arg("analyse").arg(file).arg("--json");
    command
}

/// Of the processor.
fn seconds_of(command: &mut Command) -> Result<f64> {
    let before = of_children()?;
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    let status = status.with_context(|| format!("{command:?}"))?;
    ensure!(status.success(), "{command:?}: {status}");
    Ok((of_children()? - before).as_secs_f64())
}

fn over_tshark(run: &Run) -> Result<Vec<f64>> {
    let (file, _) = written(FEW, TSHARK_BYTES)?;
    let _one = OneProcessor::keep()?;
    let mut samples = Vec::new();
    for _ in 0..RUNS {
        run.check()?;
        let mut tshark = Command::new("tshark");
        tshark.args(["-q", "-z", "expert", "-r"]).arg(file.path());
        let theirs = seconds_of(&mut tshark).context("apt-get install tshark")?;
        let ours = seconds_of(&mut analyse(run, file.path()))?;
        run.say(format!("  tshark {theirs:.2} s, analyse {ours:.2} s"));
        samples.push(theirs / ours);
    }
    Ok(samples)
}

/// It has analysed everything when it begins to print, and prints no more than a pipe holds while nobody reads.
fn memory(run: &Run) -> Result<Vec<f64>> {
    let (file, _) = written(MANY, GB)?;
    let mut child = analyse(run, file.path()).stdout(Stdio::piped()).spawn()?;
    let mut out = child.stdout.take().context("no pipe")?;
    out.read_exact(&mut [0])?;
    let peak = peak_kib(child.id());
    copy(&mut out, &mut sink())?;
    ensure!(child.wait()?.success(), "fatpath analyse failed");
    Ok(vec![peak? as f64 * 1024.0 / 1e6])
}

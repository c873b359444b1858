// SPDX-License-Identifier: MIT OR Apache-2.0
//! What somebody at a terminal waits for: the program's start, and an explanation by a large policy.
//!
//! Each sample is a new process, from its start to its end, with its output read; the first starts warm the page cache
//! and do not count.

use crate::figure::{Better, Figure, Summary};
use crate::run::Run;
use anyhow::{Context, Result, ensure};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

const WARM_UP: usize = 3;
const STARTS: usize = 31;
const RULES: usize = 1_000;

pub const HELP: Figure = Figure {
    name: "cli.help_ms",
    what: "fatpath --help, from the start of the process to its end",
    unit: "ms",
    better: Better::Lower,
    goal: Some(20.0),
    summary: Summary::Median,
    measure: |run| starts(run, &["--help"]),
};

pub const EXPLAIN: Figure = Figure {
    name: "cli.explain_ms",
    what: "fatpath policy explain by a policy of 1,000 rules, of which the last one matches",
    unit: "ms",
    better: Better::Lower,
    goal: Some(50.0),
    summary: Summary::Median,
    measure: explain,
};

fn explain(run: &Run) -> Result<Vec<f64>> {
    let file = std::env::temp_dir().join(format!("fatpath-bench-{}.toml", std::process::id()));
    std::fs::write(&file, policy()?).context("writing the policy")?;
    let address = address(RULES - 1);
    let name = file.display().to_string();
    let words = ["policy", "explain", &address, "--policy", &name];
    let samples = starts(run, &words);
    let _ = std::fs::remove_file(&file);
    samples
}

fn policy() -> Result<String> {
    let mut text = String::new();
    for index in 0..RULES {
        let address = address(index);
        write!(
            text,
            "[[rule]]\nname = \"rule-{index}\"\ndestination = [\"{address}\"]\nrtt = \"100ms\"\nrate = \"1gbit\"\n\
             send_buffer = \"2bdp\"\ncongestion_control = {{ law = \"fp_aimd\", a = 8, b = 0.125 }}\n"
        )?;
    }
    Ok(text)
}

fn address(index: usize) -> String {
    format!("10.{}.{}.1", index / 256, index % 256)
}

fn starts(run: &Run, words: &[&str]) -> Result<Vec<f64>> {
    let all: Result<Vec<f64>> = (0..WARM_UP + STARTS)
        .map(|_| start_ms(&run.fatpath, words))
        .collect();
    Ok(all?.split_off(WARM_UP))
}

fn start_ms(program: &Path, words: &[&str]) -> Result<f64> {
    let begun = Instant::now();
    let output = Command::new(program).args(words).output()?;
    let took_ms = begun.elapsed().as_secs_f64() * 1e3;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "fatpath {words:?}: {said}");
    Ok(took_ms)
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath lab` for a figure: a scenario of `experiments/` on the real kernel, with nothing of fatpath's loaded
//! beside it. A run that is not to be trusted is made again.

use crate::alone::Alone;
use crate::run::Run;
use anyhow::{Context, Result, ensure};
use serde::de::DeserializeOwned;
use std::path::PathBuf;
use std::process::Command;

/// Of a run that is not to be trusted: a hypervisor that takes the processor for seconds spoils some.
pub const RETRIES: u32 = 5;

const EXPERIMENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments");

/// What `fatpath lab COMMAND SCENARIO` prints as JSON, each case `repeats` times.
pub fn printed<T: DeserializeOwned>(
    run: &Run,
    command: &str,
    scenario: &str,
    repeats: usize,
    choice: &[&str],
) -> Result<T> {
    let alone = Alone::wait(run)?;
    alone.wait_until_unloaded(run)?;
    run.check()?;
    run.say_load()?;
    let out = std::env::temp_dir().join(format!("fatpath-bench-lab-{}", std::process::id()));
    let output = Command::new(&run.fatpath)
        .args(["lab", command])
        .arg(PathBuf::from(EXPERIMENTS).join(scenario))
        .args(["--json", "--quiet"])
        .args(["--repeats", &repeats.to_string()])
        .args(["--retries", &RETRIES.to_string()])
        .args(choice)
        .arg("--out")
        .arg(&out)
        .output()
        .with_context(|| format!("cannot run fatpath lab {command}"))?;
    let removed = std::fs::remove_dir_all(&out);
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "fatpath lab {command}: {error}");
    removed.with_context(|| out.display().to_string())?;
    Ok(serde_json::from_slice(&output.stdout)?)
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs of the host, which must succeed.

use anyhow::{Context, Result, ensure};
use std::process::{Command, Stdio};

/// Runs a program; its failure is an error that names it.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| name(command))?;
    ensure!(status.success(), "{} failed: {status}", name(command));
    Ok(())
}

/// Runs a program for what it prints.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| name(command))?;
    ensure!(
        output.status.success(),
        "{} failed: {}",
        name(command),
        output.status
    );
    String::from_utf8(output.stdout).with_context(|| name(command))
}

fn name(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}

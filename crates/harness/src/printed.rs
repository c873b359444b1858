// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the program that print what a figure counts.

use anyhow::{Context, Result};
use std::process::Command;

/// What a test of `tests/<program>.rs` prints; one fails where a verdict is wrong, and that is for the figure to count.
pub fn printed(program: &str, test: &str) -> Result<String> {
    let arguments = [
        "test",
        "--quiet",
        "-p",
        "fatpath-cli",
        "--test",
        program,
        "--",
        "--nocapture",
        "--include-ignored",
        test,
    ];
    let output = Command::new("cargo").args(arguments).output();
    let output = output.context("cannot run cargo test")?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

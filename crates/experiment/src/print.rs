// SPDX-License-Identifier: MIT OR Apache-2.0
//! Standard output, for commands whose reader may want no more. Writes, and decides nothing.

use std::io::{self, ErrorKind, Write};

use anyhow::Result;
use serde::Serialize;

/// Lines on standard output. Who has closed it (`| head`) wants no more, which is no failure.
///
/// # Errors
/// If it cannot be written.
pub fn print_lines(lines: &[String]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match lines.iter().try_for_each(|line| writeln!(out, "{line}")) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome,
    }
}

/// A value as JSON, likewise.
///
/// # Errors
/// If it cannot be written.
pub fn print_json(value: &impl Serialize) -> Result<()> {
    Ok(print_lines(&[serde_json::to_string_pretty(value)?])?)
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a daemon's tests gave.

use crate::instance::place;
use crate::run::Run;
use anyhow::{Result, bail};
use fatpath_api::TestOutcome;
use serde::Deserialize;
use std::process::Command;

#[derive(Deserialize)]
struct Archived {
    body: TestOutcome,
}

/// All that are archived by now.
///
/// # Errors
/// One failed, or was left out.
pub fn outcomes(run: &Run) -> Result<Vec<TestOutcome>> {
    let mut query = Command::new(&run.fatpath);
    query.args(["archive", "query", "--json", "--kind", "test"]);
    query.args(["--since", "1h", "--limit", "100000", "--archive"]);
    let output = query.arg(place("archive")).output()?;
    let lines = String::from_utf8(output.stdout)?;
    let outcome = |line| {
        let Archived { body } = serde_json::from_str(line)?;
        match body.note {
            Some(note) => bail!("{}: {}", body.test, note.message),
            None => Ok(body),
        }
    };
    lines.lines().map(outcome).collect()
}

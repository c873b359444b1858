// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a command says of the runs that it has made, and its exit status.
//!
//! Start with [`outcome_lines`].

use std::process::ExitCode;

use anyhow::Result;

use crate::print::{print_json, print_lines};
use crate::results::{name, table};
use crate::run::Outcome;

/// The exit status of a command that Ctrl-C has ended (128 + SIGINT).
pub const INTERRUPTED: u8 = 130;

/// The names of the runs that a command would make.
///
/// # Errors
/// If standard output cannot be written.
pub fn list_runs(names: &[String], json: bool) -> Result<ExitCode> {
    match json {
        true => print_json(&names)?,
        false => print_lines(names)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// All runs in a table, and where the results are; no table where Ctrl-C came before the first result.
pub fn outcome_lines(outcome: &Outcome) -> Vec<String> {
    let rows = outcome.rows();
    let mut lines = Vec::new();
    if rows.is_empty() && outcome.interrupted {
        lines.push("interrupted before a run ended; everything is down".to_owned());
        return lines;
    }
    lines.extend(table(&rows).lines().map(str::to_owned));
    for row in &rows {
        if let Some(error) = &row.error {
            lines.push(format!("{}: {error}", name(row)));
        }
    }
    if outcome.kept > 0 {
        let kept = outcome.kept;
        lines.push(format!(
            "{kept} of these runs were made by an earlier command"
        ));
    }
    lines.push(format!("results: {}", outcome.results.display()));
    let plots = outcome.plots.iter();
    lines.extend(plots.map(|plot| format!("plot:    {}", plot.display())));
    if outcome.interrupted {
        let how = "everything is down; the same command continues where it stopped";
        lines.push(format!("interrupted; {how}"));
    }
    lines
}

/// 0, 1 if a run failed, 130 after Ctrl-C.
pub fn exit_code(outcome: &Outcome) -> ExitCode {
    let failed = outcome.runs.iter().any(|run| run.row.error.is_some());
    match outcome.interrupted {
        true => ExitCode::from(INTERRUPTED),
        false => ExitCode::from(u8::from(failed)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_table_stands_for_runs_that_were_never_made() {
        let lines = outcome_lines(&Outcome {
            runs: vec![],
            kept: 0,
            results: "out/x/results.json".into(),
            plots: vec![],
            interrupted: true,
        });
        assert_eq!(
            lines,
            ["interrupted before a run ended; everything is down"]
        );
    }
}

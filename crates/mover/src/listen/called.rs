// SPDX-License-Identifier: MIT OR Apache-2.0
//! The process that a listener starts for a caller that it knows: as ssh would start it, and held to bounds.

use super::below::Bounds;
use crate::control::Control;
use crate::protocol::Part;
use crate::report::{Progress, Report};
use crate::send::Given;
use crate::session::Session;
use crate::{receive, send};
use anyhow::Result;
use fatpath_tree::Tree;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

/// Failures that the listener is told; the caller has all of them.
const MOST_TOLD: usize = 5;

/// Serves the caller, and writes what became of it to standard error: one line of JSON, for the listener.
///
/// # Errors
/// Standard input or output cannot be used, or the line not be written.
pub fn run(bounds: &Bounds) -> Result<ExitCode> {
    let mut report = Report::new(false).listing(MOST_TOLD);
    let served = serve(Control::of_stdio()?, bounds, &mut report);
    report.end();
    report.set_error(served.err());
    eprintln!("{}", serde_json::to_string(&report)?);
    Ok(match report.is_success() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

fn serve(control: Control, bounds: &Bounds, report: &mut Report) -> Result<()> {
    let (session, part) = Session::be_called(control, bounds.address, |hello| bounds.hold(hello))?;
    let mut progress = Progress::new(false, true);
    match part {
        Part::Receive(receives) => {
            report.is_dry = receives.is_dry;
            receive::run(session, receives, report, &mut progress)
        }
        Part::Send(sends) => {
            let tree = Tree::below(Path::new("."))?; // the listener's folder, which was entered
            send::run(
                session,
                &Given::Paths(&sends, Arc::new(tree)),
                report,
                &mut progress,
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listen::serve::MOST_SAID_BYTES;
    use crate::protocol::Problem;

    /// Whatever the caller says, the listener can read the line.
    #[test]
    fn what_the_listener_is_told_has_a_bound() {
        let mut report = Report::new(false).listing(MOST_TOLD);
        for text in ["\u{1f980}", "\"", "\u{1}"] {
            let why = text.repeat(30_000 / text.len());
            let path = text.repeat(4095 / text.len()).into_bytes();
            report.note_problem(&Problem { path, why });
        }
        let long = "\u{1f980}".repeat(8000);
        for _ in 0..10_000 {
            let (path, why) = (long.clone().into_bytes(), long.clone());
            report.note_problem(&Problem { path, why });
        }
        report.set_error(Some(anyhow::anyhow!("\"".repeat(4 << 20))));
        let line = serde_json::to_string(&report).unwrap_or_default();
        assert!(
            (1..MOST_SAID_BYTES).contains(&(line.len() as u64)),
            "{}",
            line.len()
        );
    }
}

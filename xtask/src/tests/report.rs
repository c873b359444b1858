// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the tests said: whole in a file; on the terminal what was run, skipped and failed.

use crate::tally::{Tally, Test};
use anyhow::{Context as _, Result, ensure};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

/// More tests that fail are no accident of a machine that stood still for a moment.
const MAY_BE_LATE: usize = 2;

/// Of all programs so far.
pub struct Report {
    log: File,
    terminal: Box<dyn Write + Send>,
    tally: Tally,
    /// Tests that are ignored because they last.
    long: usize,
    /// Programs that failed.
    failed: Vec<String>,
    /// Of what ran a second time.
    again: Tally,
}

impl Report {
    /// Keeps all that is said in this file.
    pub fn new(log: &Path, terminal: impl Write + Send + 'static) -> Result<Report> {
        let folder = log.parent().context("a file in a folder")?;
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        Ok(Report {
            log: File::create(log).with_context(|| log.display().to_string())?,
            terminal: Box::new(terminal),
            tally: Tally::default(),
            long: 0,
            failed: Vec::new(),
            again: Tally::default(),
        })
    }

    /// Takes what one program said.
    pub fn add(
        &mut self,
        name: &str,
        said: &str,
        status: ExitStatus,
        took: Duration,
    ) -> Result<()> {
        self.title(&format!("{name}, {:.1} s", took.as_secs_f64()), said)?;
        count(&mut self.tally, &mut self.terminal, name, said, status)?;
        self.long += said
            .lines()
            .filter(|line| line.ends_with(" ... ignored, long"))
            .count();
        if !status.success() {
            self.failed.push(format!("{name}: {status}"));
            // What does not say itself which test failed: a program that was killed, or a compiler.
            if !said.contains("\ntest result: FAILED") {
                writeln!(self.terminal, "{said}")?;
            }
        }
        Ok(())
    }

    /// Takes what a program said of its tests that ran a second time.
    pub fn add_again(&mut self, name: &str, said: &str, status: ExitStatus) -> Result<()> {
        self.title(&format!("{name}, again"), said)?;
        count(&mut self.again, &mut self.terminal, name, said, status)
    }

    fn title(&mut self, title: &str, said: &str) -> Result<()> {
        writeln!(self.terminal, "== {title}")?;
        writeln!(self.log, "== {title}\n{said}")?;
        Ok(())
    }

    /// The tests that a second time may set right: few, and nothing else is wrong.
    pub fn late(&self) -> &[Test] {
        let failed = self.tally.failed();
        let are_all = self.tally.every_failure_is_named() && failed.len() <= MAY_BE_LATE;
        if are_all { failed } else { &[] }
    }

    /// Prints the counts.
    ///
    /// # Errors
    /// Of the programs that failed.
    pub fn conclude(mut self) -> Result<()> {
        let long = self.long;
        if long > 0 {
            writeln!(
                self.terminal,
                "{long} long tests are left to make test-long"
            )?;
        }
        writeln!(self.terminal, "{}", self.tally)?;
        let late = self.late().len();
        if late > 0 && self.again.is_good() && self.again.passed() >= late {
            writeln!(self.terminal, "{late} that failed passed when run again")?;
            return Ok(());
        }
        ensure!(self.failed.is_empty(), "failed: {}", self.failed.join(", "));
        ensure!(self.tally.passed() > 0, "no test ran");
        Ok(())
    }
}

/// Counts what a program said, and prints what is news of it.
fn count(
    tally: &mut Tally,
    terminal: &mut impl Write,
    name: &str,
    said: &str,
    status: ExitStatus,
) -> Result<()> {
    tally.add(&format!("== test {name}"));
    for line in said.lines() {
        tally.add(line);
        if tally.is_news(line) {
            writeln!(terminal, "{line}")?;
        }
    }
    tally.add(&format!("== status {}", status.code().unwrap_or(-1)));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt as _;

    const TIME: Duration = Duration::from_secs(1);
    const PASSED: &str = "test result: ok. 1 passed; 0 failed; 0 ignored";

    fn status(code: i32) -> ExitStatus {
        ExitStatus::from_raw(code << 8)
    }

    /// One that passed, and one of which these tests failed.
    fn report(failed: &[&str]) -> Report {
        let name = format!("fatpath-report-{}-{}", std::process::id(), failed.len());
        let log = std::env::temp_dir().join(name);
        // What these print would be counted as what tests of this workspace say.
        let mut report = Report::new(&log, std::io::sink()).unwrap();
        std::fs::remove_file(log).unwrap();
        report.add("good", PASSED, status(0), TIME).unwrap();
        let names: String = failed.iter().map(|name| format!("    {name}\n")).collect();
        let result = format!("test result: FAILED. 0 passed; {} failed;", failed.len());
        let said = format!("failures:\n{names}\n{result}");
        report.add("bad", &said, status(101), TIME).unwrap();
        report
    }

    #[test]
    fn what_fails_and_then_passes_is_good() {
        let mut report = report(&["a"]);
        assert_eq!(report.late().len(), 1);
        report.add_again("bad", PASSED, status(0)).unwrap();
        report.conclude().unwrap();
    }

    #[test]
    fn what_fails_twice_or_does_not_run_again_has_failed() {
        report(&["a"]).conclude().unwrap_err();
        let mut none_ran = report(&["a"]);
        let said = "test result: ok. 0 passed; 0 failed; 1 ignored";
        none_ran.add_again("bad", said, status(0)).unwrap();
        none_ran.conclude().unwrap_err();
        let mut twice = report(&["a"]);
        let said = "failures:\n    a\ntest result: FAILED. 0 passed; 1 failed;";
        twice.add_again("bad", said, status(101)).unwrap();
        twice.conclude().unwrap_err();
    }

    #[test]
    fn only_few_that_are_known_by_name_run_again() {
        assert!(report(&["a", "b", "c"]).late().is_empty());
        let mut killed = report(&["a"]);
        killed.add("killed", "", status(137), TIME).unwrap();
        assert!(killed.late().is_empty());
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the tests said: whole in a file; on the terminal what was run, skipped and failed.

use crate::tally::Tally;
use anyhow::{Context as _, Result, ensure};
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

/// Of all programs so far.
pub struct Report {
    log: File,
    tally: Tally,
    /// Tests that are ignored because they last.
    long: usize,
    /// Programs that failed.
    failed: Vec<String>,
}

impl Report {
    /// Keeps all that is said in this file.
    pub fn new(log: &Path) -> Result<Report> {
        let folder = log.parent().context("a file in a folder")?;
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        Ok(Report {
            log: File::create(log).with_context(|| log.display().to_string())?,
            tally: Tally::default(),
            long: 0,
            failed: Vec::new(),
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
        let title = format!("== {name}, {:.1} s", took.as_secs_f64());
        println!("{title}");
        writeln!(self.log, "{title}\n{said}")?;
        self.tally.add(&format!("== test {name}"));
        for line in said.lines() {
            self.tally.add(line);
            if self.tally.is_news(line) {
                println!("{line}");
            }
        }
        self.long += said
            .lines()
            .filter(|line| line.ends_with(" ... ignored, long"))
            .count();
        if !status.success() {
            self.failed.push(format!("{name}: {status}"));
            // What does not say itself which test failed: a program that was killed, or a compiler.
            if !said.contains("\ntest result: FAILED") {
                println!("{said}");
            }
        }
        Ok(())
    }

    /// Prints the counts.
    ///
    /// # Errors
    /// Of the programs that failed.
    pub fn conclude(self) -> Result<()> {
        if self.long > 0 {
            println!("{} long tests are left to make test-long", self.long);
        }
        println!("{}", self.tally);
        ensure!(self.failed.is_empty(), "failed: {}", self.failed.join(", "));
        ensure!(self.tally.passed() > 0, "no test ran");
        Ok(())
    }
}

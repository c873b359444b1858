// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs one after the other, each made again while it is not to be trusted, as often as the experiment allows.
//!
//! It plans nothing. Start with [`make_all`].

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::folder::Folder;
use super::order::Planned;
use super::runner::{Runner, Watch};
use super::{ScenarioError, is_enough, result_line};
use crate::progress::{Expected, Progress};
use crate::results::Row;

/// Where nothing says how long a program lasts.
const EXPECTED: Duration = Duration::from_secs(10);

/// Makes all runs.
pub(super) fn make_all(
    runner: &dyn Runner,
    folder: &mut Folder,
    sequence: Vec<Planned>,
    quiet: bool,
    stop: &AtomicBool,
) -> Result<(), ScenarioError> {
    let expected = sequence.iter().map(expected).collect();
    let mut progress = Progress::new(expected, quiet);
    let mut making = Making {
        runner,
        part: folder.part(runner.folder())?,
        folder,
        stop,
    };
    let made = making.make_all(sequence, &mut progress);
    progress.finish();
    made
}

/// A run for the display; it lasts as long as its longest program or flow says.
fn expected(planned: &Planned) -> Expected {
    let case = planned.case;
    let programs = case.programs.iter().filter_map(|program| program.lasts);
    let flows = case
        .flows
        .iter()
        .filter_map(|flow| Some(flow.start + flow.lasts?));
    let longest = programs.chain(flows).max();
    Expected {
        kind: planned.case.label().to_owned(),
        name: planned.description(),
        lasts: longest.unwrap_or(EXPECTED),
    }
}

/// Runs that are being made.
struct Making<'r, 'f, 's> {
    runner: &'r dyn Runner,
    /// The folder of what runs write.
    part: PathBuf,
    folder: &'r mut Folder<'f>,
    stop: &'s AtomicBool,
}

enum Next {
    GoOn,
    /// The same run.
    Again,
    Stop,
}

impl Making<'_, '_, '_> {
    fn make_all(
        &mut self,
        sequence: Vec<Planned>,
        progress: &mut Progress,
    ) -> Result<(), ScenarioError> {
        let mut sequence = sequence.into_iter();
        let mut current = sequence.next();
        let mut is_new = true;
        while let Some(planned) = current {
            match self.make(planned, is_new, progress)? {
                Next::GoOn => (current, is_new) = (sequence.next(), true),
                Next::Again => is_new = false,
                Next::Stop => break,
            }
        }
        Ok(())
    }

    fn make(
        &mut self,
        planned: Planned,
        is_new: bool,
        progress: &mut Progress,
    ) -> Result<Next, ScenarioError> {
        if self.stop.load(Ordering::Relaxed) {
            return Ok(Next::Stop);
        }
        self.folder.check_space()?;
        match is_new {
            true => progress.begin(),
            false => progress.begin_again(),
        }
        let stop = self.stop;
        let mut watch = Watching { progress, stop };
        let Some(mut made) = self.runner.make(&planned, &self.part, &mut watch)? else {
            return Ok(Next::Stop);
        };
        let row = &mut made.run.row;
        if row.error.is_some() {
            // A full disk makes runs fail that would not; this one is made again.
            self.folder.check_space()?;
        }
        row.run = self.folder.next_run();
        row.attempts = planned
            .repeat()
            .map(|_| 1 + self.earlier_attempts(&planned));
        let is_again = self.is_made_again(row);
        let line = result_line(&planned, row);
        match is_again {
            true => progress.say(&format!("{line}; it will be repeated")),
            false => progress.end(&line),
        }
        self.folder.keep(&planned, made, &self.part)?;
        Ok(if is_again { Next::Again } else { Next::GoOn })
    }

    /// How often it was made, by earlier commands too, and not to be trusted. After a failure the count
    /// begins anew.
    fn earlier_attempts(&self, planned: &Planned) -> u32 {
        let repeat = planned.repeat().unwrap_or(0);
        let row = self.folder.history.row(planned.case, repeat);
        let row = row.filter(|row| row.error.is_none());
        row.map_or(0, |row| row.attempts.unwrap_or(1))
    }

    /// One that failed is left to the next command, and a warm-up run does not count.
    fn is_made_again(&self, row: &Row) -> bool {
        let is_counted = row.attempts.is_some() && row.error.is_none();
        is_counted && !is_enough(row, self.runner.scenario().experiment.retries)
    }
}

/// A display that may say that no more is wanted.
struct Watching<'w> {
    progress: &'w mut Progress,
    stop: &'w AtomicBool,
}

impl Watch for Watching<'_> {
    fn go_on(&mut self) -> bool {
        self.progress.tick();
        !self.stop.load(Ordering::Relaxed)
    }

    fn say(&mut self, line: &str) {
        self.progress.say(line);
    }
}

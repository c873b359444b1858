// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lab's runs, one after the other, each made again while it is not to be trusted, as often as the
//! experiment allows.
//!
//! It plans nothing. Start with [`Making::make_all`].

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use super::folder::Folder;
use super::one::OneRun;
use super::order::Planned;
use super::{CaseError, ScenarioError, is_enough, told};
use crate::program;
use crate::progress::Progress;
use crate::results::{Row, Run};
use crate::scenario::Scenario;

/// Runs that are being made.
pub(super) struct Making<'r, 'f> {
    pub(super) scenario: &'r Scenario,
    pub(super) raw: PathBuf,
    pub(super) folder: &'r mut Folder<'f>,
    pub(super) stop: &'r AtomicBool,
    /// No run was made yet by this command.
    pub(super) is_first: bool,
}

enum Next {
    GoOn,
    /// The same run.
    Again,
    Stop,
}

impl Making<'_, '_> {
    pub(super) fn make_all(
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
        self.folder.check_room()?;
        match is_new {
            true => progress.begin(),
            false => progress.begin_again(),
        }
        let Some(mut run) = self.made(planned, progress)? else {
            return Ok(Next::Stop);
        };
        run.row.run = self.folder.next_run();
        run.row.attempts = planned
            .repeat()
            .map(|_| 1 + self.earlier_attempts(&planned));
        let is_again = self.is_made_again(&run.row);
        let told = told(&planned, &run.row);
        match is_again {
            true => progress.say(&format!("{told}; it is made again")),
            false => progress.end(&told),
        }
        self.folder.add(&planned, run)?;
        Ok(if is_again { Next::Again } else { Next::GoOn })
    }

    /// A run, failed or not; `None`: the user has stopped it.
    fn made(
        &mut self,
        planned: Planned,
        progress: &mut Progress,
    ) -> Result<Option<Run>, ScenarioError> {
        let is_first = std::mem::replace(&mut self.is_first, false);
        let mut one = OneRun {
            scenario: self.scenario,
            planned,
            raw: &self.raw,
            stop: self.stop,
            progress,
            tells_settings: is_first,
        };
        match one.run() {
            Ok(run) => Ok(Some(run)),
            Err(CaseError::Program(program::RunError::Interrupted)) => Ok(None),
            Err(CaseError::Up(error)) if is_first => Err(error.into()),
            Err(error) => {
                let failed = one.failed(&error);
                // A full disk makes runs fail that would not; this one is made again.
                self.folder.check_room()?;
                Ok(Some(failed))
            }
        }
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
        is_counted && !is_enough(row, self.scenario.experiment.retries)
    }
}

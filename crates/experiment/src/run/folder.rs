// SPDX-License-Identifier: MIT OR Apache-2.0
//! The folder of an experiment's results while runs are made: its history, tables and plots, the same for
//! every runner.
//!
//! It makes no runs. Start with [`Folder::open`].

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fatpath_plot::{self as plot, Figure, Format, Throughput, Windows};
use fatpath_scenario::{Case, Scenario};

use super::figures;
use super::history::{History, Maker};
use super::order::Planned;
use super::runner::Made;
use super::{Options, Outcome, ScenarioError};
use crate::results::files::{self, WriteError};
use crate::results::summary::{Summary, summaries};
use crate::results::{Row, Run};

/// With less, a run's files would soon be cut short.
const LEAST_FREE_BYTES: u64 = 1 << 20;
/// So long after the tables were written, they are written again.
const TABLES_INTERVAL: Duration = Duration::from_secs(10);
/// And at least so many times as long as writing them took: they grow with every run.
const TABLES_SHARE: u32 = 20;

/// An experiment's folder.
pub(crate) struct Folder<'r> {
    scenario: &'r Scenario,
    pub(super) out: &'r Path,
    pub(super) history: History,
    /// Plots are of all parts together.
    has_plots: bool,
    /// When tables are to be written again.
    tables_due: Instant,
}

impl<'r> Folder<'r> {
    /// Makes it, or finds the runs that are in it.
    pub(super) fn open(
        scenario: &'r Scenario,
        options: &'r Options,
        maker: Maker,
    ) -> Result<Folder<'r>, ScenarioError> {
        let out = options.out.as_path();
        fs::create_dir_all(out).map_err(WriteError::at(out))?;
        let history = History::open(out, scenario, maker, options.fresh)?;
        Ok(Folder {
            scenario,
            out,
            history,
            has_plots: options.shard.is_none(),
            tables_due: Instant::now(),
        })
    }

    /// A folder in it, made if it is not there.
    pub(crate) fn part(&self, name: &str) -> Result<PathBuf, WriteError> {
        let part = self.out.join(name);
        fs::create_dir_all(&part).map_err(WriteError::at(&part))?;
        Ok(part)
    }

    /// The number of the next run.
    pub(super) fn next_run(&self) -> u32 {
        self.history.next_run()
    }

    /// Keeps a run with its series, which goes into the folder `part`.
    pub(super) fn keep(
        &mut self,
        planned: &Planned,
        made: Made,
        part: &Path,
    ) -> Result<(), WriteError> {
        let Made { mut run, series } = made;
        if let Some(bytes) = series {
            let name = format!("{}.csv", planned.name());
            files::write(&part.join(&name), bytes)?;
            run.series = Some(name);
        }
        self.add(planned, run)
    }

    /// Keeps a run that counts: it is on the disk when this returns.
    fn add(&mut self, planned: &Planned, run: Run) -> Result<(), WriteError> {
        if let Some(repeat) = planned.repeat() {
            self.history.add(planned.case, repeat, run)?;
            self.write_tables_if_due()?;
        }
        Ok(())
    }

    /// Fails when the disk is as good as full.
    pub(crate) fn check_space(&self) -> Result<(), WriteError> {
        // A file system that does not report its free space is assumed to have some.
        let is_full = rustix::fs::statvfs(self.out).is_ok_and(|fs| {
            fs.f_blocks > 0 && fs.f_bavail.saturating_mul(fs.f_frsize) < LEAST_FREE_BYTES
        });
        match is_full {
            true => Err(WriteError::at(self.out)(io::ErrorKind::StorageFull.into())),
            false => Ok(()),
        }
    }

    /// Of all cases, also those that this command does not run.
    fn runs(&self) -> Vec<Run> {
        let cases: Vec<&Case> = self.scenario.cases.iter().collect();
        self.history.runs_of(&cases)
    }

    /// Not after every run: of thousands of runs that would be most of the work.
    fn write_tables_if_due(&mut self) -> Result<(), WriteError> {
        let begun = Instant::now();
        if begun >= self.tables_due {
            self.write_tables()?;
            let pause = (begun.elapsed() * TABLES_SHARE).max(TABLES_INTERVAL);
            self.tables_due = Instant::now() + pause;
        }
        Ok(())
    }

    pub(super) fn write_tables(&self) -> Result<(PathBuf, Vec<Summary>), WriteError> {
        let rows: Vec<Row> = self.runs().into_iter().map(|run| run.row).collect();
        let summaries = summaries(&rows);
        let results = files::write_tables(self.out, &rows, &summaries)?;
        Ok((results, summaries))
    }

    pub(super) fn finish(&self, cases: &[&Case], kept: usize) -> Result<Outcome, ScenarioError> {
        let (results, summaries) = self.write_tables()?;
        let runs = self.history.runs_of(cases);
        let plots = match self.has_plots {
            true => self.draw(&summaries)?,
            false => vec![],
        };
        Ok(Outcome {
            runs,
            kept,
            results,
            plots,
            interrupted: false,
        })
    }

    fn draw(&self, summaries: &[Summary]) -> Result<Vec<PathBuf>, ScenarioError> {
        let (name, runs) = (&self.scenario.name, self.runs());
        let windows = figures::windows(&runs, &self.out.join(files::SERIES));
        let mut plots = vec![];
        if let Some(figure) = Throughput::of(name, &figures::throughput(&runs)) {
            plots.extend(draw(self.out, files::THROUGHPUT, &figure)?);
        }
        if let Some(figure) = Windows::of(name, &windows) {
            plots.extend(draw(self.out, files::WINDOWS, &figure)?);
        }
        for sweep in plot::sweeps(name, &figures::goodput(summaries)) {
            let name = format!("{}{}", files::SWEEP, sweep.name);
            plots.extend(draw(self.out, &name, &sweep)?);
        }
        Ok(plots)
    }
}

/// Writes a figure in all formats.
///
/// # Errors
/// If it cannot be drawn or written.
pub(crate) fn draw(
    out: &Path,
    name: &str,
    figure: &impl Figure,
) -> Result<Vec<PathBuf>, ScenarioError> {
    let draw = |format: Format| {
        let file = out.join(format!("{name}.{}", format.ending()));
        files::write(&file, plot::picture(figure, format)?)?;
        Ok(file)
    };
    Format::ALL.into_iter().map(draw).collect()
}

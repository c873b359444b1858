// SPDX-License-Identifier: MIT OR Apache-2.0
//! What runs a case: the testbed, on the real kernel, or the simulator.
//!
//! It plans and keeps nothing: which runs are made, in which order, and where their results go is decided in
//! this crate, for every runner alike. Start with [`Runner`].

use std::collections::HashSet;
use std::path::Path;

use fatpath_scenario::{Case, Scenario};

use super::ScenarioError;
use super::history::Maker;
use super::order::Planned;
use super::shard::Shard;
use crate::results::{Row, Run};

/// What runs a case.
pub trait Runner: Sync {
    /// For messages, such as "simulator".
    fn name(&self) -> &'static str;

    /// The scenario as it runs it.
    fn scenario(&self) -> &Scenario;

    /// As the history in a folder of results names it.
    fn maker(&self, shard: Option<Shard>) -> Maker;

    /// The folder, within that of the results, of what its runs write.
    fn folder(&self) -> &'static str;

    /// How many runs it makes at a time; `None`: one after the other, each made again while it is not to be
    /// trusted, as often as the experiment allows.
    fn jobs(&self) -> Option<usize>;

    /// Finds what it cannot do before anything runs. Gives the labels of the cases of which every repeat is the
    /// same run.
    ///
    /// # Errors
    /// What it cannot do.
    fn check<'c>(&self, cases: &[&'c Case]) -> Result<HashSet<&'c str>, ScenarioError>;

    /// Makes a run, which may write into `folder`; a failure is a row with an `error`. `None`: `watch` has
    /// stopped it.
    ///
    /// # Errors
    /// If no other run could be made either.
    fn make(
        &self,
        planned: &Planned,
        folder: &Path,
        watch: &mut dyn Watch,
    ) -> Result<Option<Made>, ScenarioError>;

    /// The row of a run that gave nothing.
    fn failed(&self, planned: &Planned, error: String) -> Row;
}

/// Whoever watches a run while it is made.
pub trait Watch {
    /// Whether the run is to go on; to be asked often.
    fn go_on(&mut self) -> bool;

    /// So much of the run is done, 0 to 1.
    fn done(&mut self, _share: f64) {}

    /// A line for people.
    fn say(&mut self, line: &str);
}

/// A run that was made.
#[derive(Debug)]
pub struct Made {
    /// The run.
    pub run: Run,
    /// Its series as a file; `None` if it has none.
    pub series: Option<Vec<u8>>,
}

impl From<Run> for Made {
    fn from(run: Run) -> Made {
        Made { run, series: None }
    }
}

impl From<Row> for Made {
    fn from(row: Row) -> Made {
        Made::from(Run {
            row,
            ..Run::default()
        })
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A scenario: hosts, links, the paths and variants to try, and the programs to run in each.
//!
//! Pure but for [`Scenario::load`], which reads the file. Every path's links are resolved when the
//! file is parsed, so a scenario that parses has no case that is wrong. It starts nothing: a case
//! becomes a network in [`crate::plan`]. Start with [`Scenario`]; the file's keys are read in
//! `parse.rs`.

pub mod command;
mod parse;
mod section;
mod units;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use section::Problem;

/// What a scenario file says.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The lab's name: 1 to 20 of `a-z 0-9 -`.
    pub name: String,
    /// Host names in file order.
    pub hosts: Vec<String>,
    /// The cases of the network, at least one.
    pub paths: Vec<PathCase>,
    /// The cases of the tuning, at least one; the first is the one to compare with.
    pub variants: Vec<Variant>,
    /// What runs in every case, in order of starting.
    pub programs: Vec<Program>,
    set: BTreeMap<String, String>,
}

/// One case of the network.
#[derive(Clone, Debug, PartialEq)]
pub struct PathCase {
    /// Unique among the paths.
    pub name: String,
    /// All links, with this path's changes.
    pub links: Vec<Link>,
    set: BTreeMap<String, String>,
}

/// A link between two hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// Its name, also of its device in both hosts: 1 to 15 of `a-z 0-9 -`.
    pub name: String,
    /// The two hosts.
    pub between: [String; 2],
    /// 1280 to 65535.
    pub mtu_bytes: u16,
    /// From `between[0]` to `between[1]`, and back.
    pub directions: [Direction; 2],
}

/// What happens to a packet on its way through one direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Direction {
    /// Propagation delay.
    pub delay_ns: u64,
    /// Rate of the bottleneck; `None`: unlimited.
    pub rate_bps: Option<u64>,
    /// Limit of the drop-tail queue before the bottleneck; `None`: unlimited.
    pub queue_bytes: Option<u64>,
    /// Probability, 0 to 1, that a segment is lost.
    pub loss: f64,
    /// Bytes that the wire adds to each segment.
    pub overhead_bytes: u32,
    /// Seed of the losses.
    pub seed: u64,
}

/// One case of the tuning.
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    /// Unique among the variants.
    pub name: String,
    /// The daemon runs with this policy; `None`: no daemon.
    pub policy: Option<PathBuf>,
    set: BTreeMap<String, String>,
}

/// A program on a host.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// The host it runs on.
    pub host: String,
    /// The command, with placeholders; see [`command::words`].
    pub run: String,
    /// It serves the others, who wait until it listens on this TCP port. It is stopped when they
    /// have ended.
    pub ready_port: Option<u16>,
    /// Its output gives the case's result.
    pub result: Option<ResultKind>,
    /// How long it is expected to take; for the progress display only.
    pub lasts: Option<Duration>,
    /// When it is killed, and the run has failed.
    pub time_limit: Duration,
}

/// How a program's output becomes a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultKind {
    /// The JSON of `iperf3 --json` as a client.
    Iperf3,
}

/// Why a scenario file cannot be used.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("{file}: {error}")]
    Read {
        /// The scenario or policy file.
        file: String,
        /// The system's reason.
        error: std::io::Error,
    },
    /// What it says is wrong.
    #[error(transparent)]
    Wrong(#[from] Problem),
}

impl Scenario {
    /// Reads and checks a file. Policy paths become relative to the file's folder, and must exist.
    ///
    /// # Errors
    /// See [`LoadError`].
    pub fn load(file: &Path) -> Result<Scenario, LoadError> {
        let read_error = |file: &Path, error| LoadError::Read {
            file: file.display().to_string(),
            error,
        };
        let text = std::fs::read_to_string(file).map_err(|error| read_error(file, error))?;
        let mut scenario = Scenario::parse(&file.display().to_string(), &text)?;
        let folder = file.parent().unwrap_or(Path::new("."));
        for policy in scenario
            .variants
            .iter_mut()
            .filter_map(|variant| variant.policy.as_mut())
        {
            let found = folder.join(&*policy);
            *policy = found
                .canonicalize()
                .map_err(|error| read_error(&found, error))?;
        }
        Ok(scenario)
    }

    /// Checks a file's text; `file` is its name for messages. Touches nothing.
    ///
    /// # Errors
    /// The first [`Problem`] in the file.
    pub fn parse(file: &str, text: &str) -> Result<Scenario, Problem> {
        parse::scenario(file, text)
    }

    /// The values of `[set]` in one case: the variant's, else the path's, else the default.
    pub fn values(&self, path: &PathCase, variant: &Variant) -> BTreeMap<String, String> {
        let mut values = self.set.clone();
        values.extend(path.set.clone());
        values.extend(variant.set.clone());
        values
    }
}

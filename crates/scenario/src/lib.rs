// SPDX-License-Identifier: MIT OR Apache-2.0
//! A scenario: hosts, links, the paths and variants to try, and the programs to run in each.
//!
//! Pure: a file's text becomes cases, and a case a plan with addresses and routes. Every path's links
//! are resolved when the file is parsed, so a scenario that parses has no case that is wrong. It reads
//! no files and starts nothing. Start with [`Scenario`]; the file's keys are read in `parse.rs`; a case
//! becomes a network in [`plan`].

mod cells;
mod check;
pub mod command;
pub mod describe;
mod effects;
mod experiment;
mod files;
mod flow;
mod flows;
mod given;
mod groups;
mod knobs;
pub mod law;
pub mod limit;
mod link;
mod losses;
mod names;
mod overlay;
mod parse;
pub mod plan;
mod programs;
mod requests;
mod round_trip;
pub mod routes;
mod rude;
mod seed;
mod size;
#[cfg(test)]
mod tests;
pub mod transport;
mod units;
mod values;

use std::path::PathBuf;
use std::time::Duration;

use fatpath_link::{ChainSpec, Service};
use serde::{Deserialize, Serialize};

pub use fatpath_toml::{Problem, Refused, nearest};
use files::NamedFiles;
pub use files::{Files, NamedText, NoFiles};
pub use flow::{
    DelayedAcks, Detection, EndSettings, Flow, Growth, LawRequest, Requests, RudeOff, RudeRequest,
    Source, Transport, WindowReduction,
};
pub use round_trip::RoundTrip;
pub use seed::{hash_of_name, mixed};

/// The most repeats of a case.
pub const MOST_REPEATS: u32 = 10_000;
/// How often a run that is not to be trusted is made again at most.
pub const MOST_RETRIES: u32 = 100;

/// What a scenario file says.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The lab's name: 1 to 20 of `a-z 0-9 -`.
    pub name: String,
    /// Host names as the file has them, in its order; a host with a `count` stands once.
    pub hosts: Vec<String>,
    /// Every path with every variant with every combination of `vary`, in file order (the last
    /// `vary` changes fastest); at least one.
    pub cases: Vec<Case>,
    /// How often and in which order the cases are run, and what is watched.
    pub experiment: Experiment,
}

/// One combination of what varies, with everything resolved. What serialises is what decides the
/// result of a run, here and in all that it holds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Case {
    /// The case of the network.
    pub path: String,
    /// The case of the tuning; the first one of the file is the one to compare with.
    pub variant: String,
    /// The names of `vary` with this case's values, in file order.
    pub vary: Vec<(String, String)>,
    /// All links, a link of a host with a `count` once for each.
    pub links: Vec<Link>,
    /// All hosts, likewise.
    pub hosts: Vec<Host>,
    /// The daemon runs with this policy; `None`: no daemon.
    pub policy: Option<PathBuf>,
    /// It runs the tests of this file; `None`: no tests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measure: Option<PathBuf>,
    /// What runs, in order of starting; a program on a host with a `count` once for each.
    pub programs: Vec<Program>,
    /// Flows without a program, a flow from a host with a `count` once for each.
    pub flows: Vec<Flow>,
    /// What changes while the programs run, by rising time.
    pub changes: Vec<TimedChange>,
    label: String,
}

/// A host or a router.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// 1 to 15 of `a-z 0-9 -`.
    pub name: String,
    /// It forwards packets of others.
    pub router: bool,
    /// Names and values, in addition to the mainline ones, in file order. All begin with `net.`.
    pub sysctls: Vec<(String, String)>,
}

/// A link between two hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// Its name, also of its device in both hosts: 1 to 15 of `a-z 0-9 -`.
    pub name: String,
    /// The two hosts.
    pub between: [String; 2],
    /// Of both devices, 1280 to 65535.
    pub mtu_bytes: u16,
    /// Super-packets are split always.
    pub exact: bool,
    /// The emulator carries it; else the kernel does, at once, and no effect is asked of it.
    #[serde(default = "emulated_by_default")]
    pub emulated: bool,
    /// From `between[0]` to `between[1]`, and back.
    pub directions: [ChainSpec; 2],
}

/// Labs that an older fatpath brought up have emulated links only.
fn emulated_by_default() -> bool {
    true
}

/// A link that becomes another while the programs run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimedChange {
    /// Since the programs started.
    pub at: Duration,
    /// The link's name.
    pub link: String,
    /// What it does from then on, all earlier changes included.
    pub directions: [ChainSpec; 2],
}

/// How the cases are run. What serialises is what decides the result of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Experiment {
    /// Runs of each case that count; 1 to [`MOST_REPEATS`].
    #[serde(skip)]
    pub repeats: u32,
    /// How often a run that is not to be trusted is made again; 0 to [`MOST_RETRIES`]. The simulator has
    /// no such runs.
    #[serde(skip)]
    pub retries: u32,
    /// In which order.
    #[serde(skip)]
    pub order: Order,
    /// Runs of each case before those, which do not count.
    pub warm_up_runs: u32,
    /// What passes the links is recorded.
    pub observe: Option<Observe>,
    /// Time between two samples of a flow in the simulator; `None`: it chooses.
    pub sample_every: Option<Duration>,
    /// The line of the file that says so, from 1.
    #[serde(skip)]
    pub sample_every_line: Option<usize>,
    /// When the emulator was too late.
    pub lateness_limit: LatenessLimit,
    /// In the lab the emulator has a processor, and what the hosts run has the others, where there are any.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub emulator_apart: bool,
}

/// A run is not to be trusted when the emulator's 99th percentile of lateness is above this.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum LatenessLimit {
    /// A tenth of the least round trip of the case's emulated links, at least 1 ms.
    #[default]
    OfLinks,
    /// Microseconds.
    Us(u64),
    /// It never is.
    None,
}

impl LatenessLimit {
    /// Microseconds, for a case with these links.
    pub fn us(self, links: &[Link]) -> Option<u64> {
        const LEAST_US: u64 = 1_000;
        match self {
            LatenessLimit::OfLinks => {
                let emulated = links.iter().filter(|link| link.emulated);
                let least_ns = emulated.map(Link::round_trip_ns).min();
                Some((least_ns.unwrap_or(0) / 10 / 1_000).max(LEAST_US))
            }
            LatenessLimit::Us(us) => Some(us),
            LatenessLimit::None => None,
        }
    }
}

/// In which order runs are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The cases as the file has them, then all of them again: what drifts meets all alike.
    File,
    /// All runs shuffled.
    Random {
        /// Equal seeds shuffle alike.
        seed: u64,
    },
}

/// What is recorded of each link in each millisecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Observe {
    /// Each flow by itself too.
    pub per_flow: bool,
}

/// A program on a host.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Program {
    /// The host it runs on, one of the case's.
    pub host: String,
    /// The command. Values are filled in; only `{HOST}`, `{HOST.ipv4}` and `{HOST.ipv6}` of hosts of
    /// the case are left, for [`plan::Plan::words`].
    pub run: String,
    /// It serves the others, who wait until it listens on this TCP port. It is stopped when they
    /// have ended.
    pub ready_port: Option<u16>,
    /// Its output gives the case's result; several programs may, and their sums are the result.
    pub result: Option<ResultKind>,
    /// How long it is expected to take; for the progress display only.
    #[serde(skip)]
    pub lasts: Option<Duration>,
    /// When it is killed, and the run has failed.
    pub time_limit: Duration,
    /// The line of the file where it stands, from 1.
    #[serde(skip)]
    pub line: usize,
}

/// How a program's output becomes a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum ResultKind {
    /// The JSON of `iperf3 --json` as a client.
    Iperf3,
    /// The JSON of `fatpath flow send --json`.
    Flow,
}

impl Scenario {
    /// Checks a file's text; `file` is its name for messages, and `files` are those that it names.
    ///
    /// # Errors
    /// A [`Refused`] with what is wrong in each table.
    pub fn of_text(file: &str, text: &str, files: &dyn Files) -> Result<Scenario, Refused> {
        parse::scenario(file, text, &NamedFiles::of(files))
    }

    /// The same without files: policies keep the names they have, and traces are refused.
    ///
    /// # Errors
    /// A [`Refused`] with what is wrong in each table.
    pub fn parse(file: &str, text: &str) -> Result<Scenario, Refused> {
        Scenario::of_text(file, text, &NoFiles)
    }
}

impl Case {
    /// Its name: path, variant and `vary`, such as `lossy.tuned.loss=1%`. Unique in the scenario, and
    /// safe as a file name: at most 128 of `A-Z a-z 0-9 . _ - + = % ~`.
    pub fn label(&self) -> &str {
        &self.label
    }
}

impl Default for Experiment {
    /// Every case once, in file order, nothing recorded.
    fn default() -> Experiment {
        Experiment {
            repeats: 1,
            retries: 0,
            order: Order::File,
            warm_up_runs: 0,
            observe: None,
            sample_every: None,
            sample_every_line: None,
            lateness_limit: LatenessLimit::default(),
            emulator_apart: false,
        }
    }
}

impl Link {
    /// The link with some of its effects changed, as `lab set LINK loss=1% forward.rate=500mbit` means
    /// it: names are the keys of the link in a scenario file, values are written as there but
    /// without quotes. What is not named stays. Sizes in bdp are those of the new rate and delay.
    ///
    /// # Errors
    /// The key, and what is allowed.
    pub fn changed(&self, settings: &[(String, String)]) -> Result<Link, String> {
        link::changed(self, settings)
    }

    /// The constant delays there and back.
    pub fn round_trip_ns(&self) -> u64 {
        let directions = self.directions.iter();
        directions.map(|one| cells::delay_ns(&one.cells)).sum()
    }
}

/// The rate by which a service is known: its constant one, the highest of its steps, the mean of its
/// opportunities (1500 bytes of IP each). `None`: unlimited.
pub fn nominal_rate_bps(service: &Service) -> Option<u64> {
    const OPPORTUNITY_BITS: u128 = 1500 * 8;
    match service {
        Service::Unlimited => None,
        Service::Constant { rate_bps } => Some(*rate_bps),
        Service::Steps { steps, .. } => steps.iter().map(|step| step.rate_bps).max(),
        Service::Opportunities { at_ms } => {
            let period_ms = u128::from(at_ms.last().copied()?.max(1));
            let rate_bps = at_ms.len() as u128 * OPPORTUNITY_BITS * 1000 / period_ms;
            u64::try_from(rate_bps).ok()
        }
    }
}

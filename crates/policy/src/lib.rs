// SPDX-License-Identifier: MIT OR Apache-2.0
//! The administrator's policy: which flows, and what they get.
//!
//! Text in, values out. This crate opens no file, reads no clock and asks no kernel, so whatever it
//! says about a policy it says the same way everywhere: in the daemon, in `fatpath policy check`, and
//! in a test.
//!
//! Start at [`parse`], which turns a policy file into a [`Policy`] or into every [`Problem`] that it
//! has. From there: [`Policy::first_match`] is the meaning of a policy in one line,
//! says it to people, and [`routes`] lists the settings that only routes can carry.

mod classifier;
mod flow;
mod host;
mod laws;
mod policy;
mod ports;
mod prefix;
mod problem;
mod quantity;
mod read;
mod review;
mod routes;
mod toml_reader;

pub use classifier::{Class, Classifier, MAX_PORT_CUTS, RuleSet};
pub use flow::{Dimension, Flow, FlowParseError, Verdict};
pub use host::{HostSettings, Sysctl, SysctlName};
pub use laws::{LAWS, Law, LawSpec, Parameter, ParameterSpec};
pub use policy::{
    Chosen, MAX_FILE_BYTES, MAX_PREFIXES_PER_SIDE, MAX_RULES, Match, Path, Policy, Rule, Settings,
};
pub use ports::PortRange;
pub use prefix::{Prefix, PrefixError};
pub use problem::Problem;
pub use read::{parse, parse_bytes};
pub use routes::{RouteMetrics, routes};

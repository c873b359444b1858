// SPDX-License-Identifier: MIT OR Apache-2.0
//! The administrator's policy: which flows, and what they get.
//!
//! Text in, values out. This crate opens no file, reads no clock and asks no kernel, so whatever it
//! says about a policy it says the same way everywhere: in the daemon, in `fatpath policy check`, and
//! in a test.
//!
//! Start at [`parse`], which turns a policy file into a [`Policy`] or into every [`Problem`] that it
//! has. From there: [`Policy::first_match`] is the meaning of a policy in one line,
//! [`Classifier::build`] gives the same meaning as the tables that the kernel searches, [`apply`] says
//! what a flow of a rule gets, [`explain`] says it to people, and [`routes`] lists the settings that only routes can carry.
//! [`import_wad`] writes a policy file from a configuration file of the Work Around Daemon.

mod apply;
mod archive;
mod auto;
mod classifier;
mod explain;
mod flow;
mod host;
mod host_bounds;
mod instruments;
mod laws;
mod memory;
mod phases;
mod policy;
mod ports;
mod prefix;
mod rate_law;
mod read;
mod review;
mod routes;
mod rude_share;
mod rule;
mod setting;
mod settings;
mod trace;
mod wad;

pub use apply::{Applied, Given, PathFacts, Segment, apply};
pub use archive::{Archive, ArchiveServer};
pub use auto::{Auto, AutoMode};
pub use classifier::{Class, Classifier, RuleSet};
pub use explain::{Bound, Explanation, PassedOver, RuleName, SettingLine, explain};
pub use fatpath_toml::{Problem, Refused};
pub use flow::{Dimension, Flow, FlowParseError, Verdict};
pub use host::{HostSettings, Sysctl, SysctlName};
pub use instruments::{DerivedText, Instruments, MAX_SAMPLED_FLOWS, SampledFlows};
pub use laws::{Law, OUR_PREFIX, Parameter, RUDE_LAW, our_laws, our_window_laws};
pub use memory::memory_warnings;
pub use phases::{MAX_PHASE_TABLES, Pattern, PhaseTable};
pub use policy::{MAX_FILE_BYTES, MAX_PORT_CUTS, MAX_PREFIXES_PER_SIDE, MAX_RULES, Policy};
pub use ports::PortRange;
pub use prefix::{Prefix, PrefixError};
pub use read::{parse, parse_bytes};
pub use routes::{RouteMetrics, routes};
pub use rude_share::{NotRude, RudeShare};
pub use rule::{Follows, Match, MeasuredPath, MeasuredPaths, Path, Rule};
pub use setting::{Setting, Spec, Stage, Unit, Way};
pub use settings::{AfterIdle, Chosen, Rude, SettingValue, Settings, Ssthresh, User};
pub use trace::{MAX_TRACED_FLOWS, MAX_TRACES, Trace};
pub use wad::{Imported, Note, import_wad};

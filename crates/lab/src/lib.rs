// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scenarios: bring hosts up, run programs, collect, compare, plot.
//!
//! One TOML file names hosts, links, paths (cases of the network), variants (cases of the tuning)
//! and programs. `lab run` brings the network up for every path and variant, runs the programs
//! unchanged, collects what they measured, takes everything down and compares.
//!
//! It refuses to leave anything behind: what is changed on the machine is noted before the change,
//! and a keeper process puts it back even when everything else has been killed. It does not emulate
//! (that is `fatpath-emulator`), tune (that is the daemon) or judge results.
//!
//! Start reading with [`scenario::Scenario`] (what a file says), then [`run::run`] (what happens),
//! then [`keeper::keep`] (who makes and removes it all).

pub mod carry;
mod child;
pub mod cli;
pub mod compare;
pub mod control;
mod hosts;
pub mod iperf3;
pub mod journal;
pub mod keeper;
pub mod lab;
mod load;
mod machine;
pub mod observe;
mod print;
mod program;
mod progress;
pub mod results;
pub mod room;
pub mod run;
mod settings;
pub mod simulate;
mod tail;
pub mod undo;

use fatpath_plot as plot;
use fatpath_scenario as scenario;
use scenario::{describe, limit, plan, routes};

pub use load::{LoadError, load};

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scheduled active tests (NTAF): the file that lists them, when each is due, who may load a resource, and what the
//! tools print.
//!
//! Pure: time comes in as a value, and no program is started here (`crates/launch` does that). Start at [`parse`] for
//! `measure.toml`, at [`Schedule`] for what is due, at [`Leases`] for exclusion, at [`Tool`] for a new tool.

mod lease;
pub mod outcome;
mod plan;
mod read;
mod schedule;
mod tool;

pub use lease::{Answer, Leases, Message};
pub use plan::{Plan, Test};
pub use read::parse;
pub use schedule::Schedule;
pub use tool::{
    Format, Iperf3, Mapping, Ping, Program, Protocol, ReadError, Tool, Traceroute, Unit, Values,
};

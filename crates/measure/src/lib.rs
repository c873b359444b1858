// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scheduled active tests (NTAF): the file that lists them, when each is due, who may load a resource, and what the
//! tools print.
//!
//! Pure: time comes in as a value, and no program is started here (`crates/launch` does that). Start at [`parse`] for
//! `measure.toml`, at [`Schedule`] for what is due, at [`Leases`] for exclusion, at [`Tool`] for a new tool, at [`Ledger`] for
//! what other hosts may ask of this one.

mod ask;
pub mod echo;
mod grid;
mod lease;
mod ledger;
mod lossless;
mod one_way;
pub mod outcome;
mod peers;
mod plan;
mod read;
mod schedule;
pub mod server;
mod tool;
pub mod trains;

pub use ask::{Ask, BadLine, Cost, Datagrams, MOST_LINE_BYTES, Reply, Run, Trains, shown};
pub use grid::Grid;
pub use lease::{Answer, Leases, Message};
pub use ledger::{Ledger, Refusal, Used};
pub use lossless::Lossless;
pub use one_way::{Clock, Trip, one_way};
pub use peers::{Kind, Peer, Responder};
pub use plan::{Mesh, Plan, Test};
pub use read::{MOST_RESOURCE_LETTERS, parse};
pub use schedule::Schedule;
pub use server::{Served, Server, pem};
pub use tool::{
    AskedServer, Echo, Format, Iperf3, Mapping, Measured, Ping, Program, Protocol, Rate, ReadError,
    SERVED_WITHIN_US, SingleEnded, Tool, Traceroute, Unit, Values, bytes_served,
};

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cases of a scenario in the simulator.

mod command;
mod ends;
mod host;
pub(crate) mod law;
mod spec;

pub use spec::MapError;

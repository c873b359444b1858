// SPDX-License-Identifier: MIT OR Apache-2.0
//! Experiments: the cases of a scenario, each run as often and in the order that its file says, kept, and
//! compared.
//!
//! What runs a case is a [`run::Runner`]: the testbed (`fatpath-testbed`), or the simulator, in [`simulate`].
//! Which runs are made, where their results go, and what is made of them is the same for both. It judges no
//! result.
//!
//! Start reading with [`run::run`] (what happens), then [`results::Row`] (what comes of it).

pub mod compare;
mod load;
pub mod measured;
pub mod print;
mod progress;
pub mod report;
pub mod results;
pub mod run;
pub mod simulate;

pub use load::{LoadError, load};

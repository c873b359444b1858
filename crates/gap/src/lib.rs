// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much of the gap between the defaults and what an expert reaches is closed by learned paths.
//!
//! The runs are those of an experiment (`experiments/gap/`): on each path the variants `default`, `auto`, and those of
//! somebody who knows the path. Closure is (auto - default) / (oracle - default); the oracle is the best of the
//! experts. [`report`] computes it, [`table`] shows it, [`draw`] makes a set of random paths, and
//! [`settle`] tells how soon flows have the rate of a path that changes; all four are pure.
//! Start with [`report::Report::of`].

pub mod cli;
pub mod draw;
pub mod report;
pub mod settle;
mod table;

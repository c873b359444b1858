// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scenarios: bring hosts up, run programs, collect, compare, plot.
pub mod iperf3;
pub mod journal;
pub mod plan;
pub mod scenario;

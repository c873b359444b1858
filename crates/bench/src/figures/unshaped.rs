// SPDX-License-Identifier: MIT OR Apache-2.0
//! How fast the emulator itself is: one TCP flow over a link that does nothing.

use crate::emulated::tcp_gbps;
use crate::figure::{Better, Figure, Summary};

/// Median of five runs of iperf3.
pub const FIGURE: Figure = Figure {
    name: "emulator.unshaped_gbps",
    what: "one TCP flow through an emulated link without rate, delay or loss",
    unit: "Gb/s",
    better: Better::Higher,
    goal: Some(12.0),
    summary: Summary::Median,
    measure: |run| tcp_gbps(run, false),
};

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What splitting every super-packet costs: one TCP flow over an `exact` link that does nothing else.

use crate::emulated::tcp_gbps;
use crate::figure::{Better, Figure, Summary};

/// Median of five runs of iperf3.
pub const FIGURE: Figure = Figure {
    name: "emulator.exact_gbps",
    what: "one TCP flow through an emulated link that does nothing but split packets, to 1,500 bytes",
    unit: "Gb/s",
    better: Better::Higher,
    goal: Some(1.5),
    summary: Summary::Median,
    measure: |run| tcp_gbps(run, true),
};

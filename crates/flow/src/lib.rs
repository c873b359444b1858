// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath flow send` and `fatpath flow receive`: one flow of the transport, or several alike, from memory to memory,
//! with every knob of its TCP, and what became of it.
//!
//! The sender tells the receiver all over a control connection (TCP, or a socket of a file where both are on one host, as in a
//! lab, so that nothing but the flow is on the path). Keys are agreed on there too, in the clear: what is sent are zeros.
//! [`rude`] is a host's permission to send without congestion control, for whoever drives flows. It moves no files and knows no scenario. Start with [`cli`]; then `send.rs`.

pub mod cli;
mod control;
mod ends;
mod log;
mod receive;
mod report;
pub mod rude;
mod send;

pub use log::{Connection, Log};
pub use report::{Interval, Report};

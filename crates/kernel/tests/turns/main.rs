// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that need a kernel half and ask nothing of its load or its end: they use one in turn. To load it costs an
//! emulated machine ten seconds. One that counts from zero, or takes the kernel half apart, loads its own.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

#[path = "../support/mod.rs"]
mod support;

mod bursts;
mod learned_paths;
mod mark;
mod new_flows;
mod police_live;
mod rate_state;
mod recent_addresses;
mod shared_rate;
mod sockets;

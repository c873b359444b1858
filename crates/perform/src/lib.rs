// SPDX-License-Identifier: MIT OR Apache-2.0
//! Performs what `fatpath-measure` describes: runs the program of a test and reads what it printed ([`perform`]), and
//! asks a path by the kernel's route, handshakes and a short transfer ([`handshakes`], [`route`], [`transfer`]).

mod path;
mod run;

pub use path::{Handshakes, PORTS, Route, Transfer, handshakes, resolve, route, transfer};
pub use run::{UNKNOWN_RTT_US, peer_address, perform};

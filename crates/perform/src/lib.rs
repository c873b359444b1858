// SPDX-License-Identifier: MIT OR Apache-2.0
//! Performs what `fatpath-measure` describes: runs the program of a test and reads what it printed ([`perform`]), and
//! asks a path by the kernel's route, handshakes and a short transfer ([`handshakes`], [`route`], [`transfer`]). What a test loads is its
//! own while it holds a [`HostLease`].

mod host_lease;
mod path;
mod run;

pub use host_lease::HostLease;
pub use path::{Handshakes, PORTS, Route, Transfer, handshakes, resolve, route, transfer};
pub use run::{UNKNOWN_RTT_US, peer_address, perform, perform_served};

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Performs what `fatpath-measure` describes: runs the program of a test and reads what it printed ([`perform`]), and
//! asks a path by the kernel's route, handshakes, a short transfer and trains that any host answers ([`handshakes`], [`route`],
//! [`transfer`], [`single_ended`]). What a test loads is its
//! own while it holds a [`HostLease`].

mod host_lease;
mod path;
mod run;
mod single_ended;

pub use host_lease::HostLease;
pub use path::{Handshakes, PORTS, Route, Transfer, handshakes, resolve, route, transfer};
pub use run::{UNKNOWN_RTT_US, peer_address, perform, perform_served};
pub use single_ended::{SingleEndedError, WantedSingleEnded, single_ended};

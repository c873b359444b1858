// SPDX-License-Identifier: MIT OR Apache-2.0
//! Links as chains of pure cells: what a path does to packets, written once.
//!
//! The emulator pushes real packets through these cells and the simulator pushes simulated ones.
//! Nothing here reads a clock, draws randomness of its own or does I/O: `now_ns` and seeds are
//! arguments, so the same calls always give the same packets at the same nanoseconds.
//!
//! A packet may stand for many equal segments (a *super-packet*, as TSO and GSO make them). It stays
//! whole as long as its segments fare alike and is split only when they do not.
//!
//! Start reading at [`Cell`], the one interface of every effect; then [`ChainSpec`], which says what a
//! direction of a link does, and [`Chain`], which is built from it. One effect a file in `cells/`,
//! with the part of the spec that describes it: delay, bottleneck (with service, queue and its disciplines), loss,
//! reorder, duplicate, corrupt, mtu, policer.

mod alignment;
mod cells;
mod chain;
mod counters;
mod departures;
pub mod headers;
mod packet;
mod random;

pub use cells::*;
pub use chain::Chain;
pub use counters::{Count, Counters, DropCause};
pub use departures::Departure;
pub use packet::{Ecn, Flow, Packet, Wire};
pub use random::Random;

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
//! direction of a link does, and [`Chain`], which is built from it. One effect a file, beside the part
//! of the spec that describes it: delay, bottleneck (with service, queue and its disciplines), loss,
//! reorder, duplicate, corrupt, mtu.

mod alignment;
mod at_once;
mod bottleneck;
mod cell;
mod chain;
mod codel;
mod corrupt;
mod delay;
mod departures;
mod duplicate;
pub mod headers;
mod jitter;
mod line;
mod loss;
mod mtu;
mod packet;
mod queue;
mod random;
mod red;
mod reorder;
mod service;
mod spec;

pub use bottleneck::RateSpec;
pub use cell::{Cell, Count, Counters, Departure, DropCause};
pub use chain::Chain;
pub use corrupt::CorruptSpec;
pub use delay::DelaySpec;
pub use duplicate::DuplicateSpec;
pub use jitter::{Distribution, JitterSpec};
pub use loss::{LossSpec, LossWindow};
pub use mtu::MtuSpec;
pub use packet::{Ecn, Flow, Packet, Wire};
pub use queue::{Discipline, QueueSpec};
pub use random::Random;
pub use reorder::ReorderSpec;
pub use service::{RateStep, Service};
pub use spec::{CellSpec, ChainSpec, SpecError};

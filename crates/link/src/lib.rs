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
//! Start reading at [`Cell`], the one interface of every effect; then [`Chain`], which joins cells
//! to one direction of a link, and [`ChainSpec`], from which a chain is built. One effect a file:
//! [`Bottleneck`] (rate), [`DropTail`] (queue), [`Loss`], [`Delay`].

mod bottleneck;
mod cell;
mod chain;
mod corrupt;
mod delay;
mod departures;
mod drop_tail;
mod duplicate;
mod jitter;
mod loss;
mod mtu;
mod packet;
mod queue;
mod rate;
mod reorder;
mod service;
mod spec;

pub use bottleneck::{Bottleneck, Queue, RateSpec};
pub use cell::{Cell, Count, Counters, Departure, DropCause};
pub use chain::Chain;
pub use corrupt::CorruptSpec;
pub use delay::{Delay, DelaySpec};
pub use drop_tail::DropTail;
pub use duplicate::DuplicateSpec;
pub use jitter::{Distribution, JitterSpec};
pub use loss::{Loss, LossSpec, LossWindow};
pub use mtu::MtuSpec;
pub use packet::{Ecn, Flow, Packet, Wire};
pub use queue::{Discipline, QueueSpec};
pub use rate::RateClock;
pub use reorder::ReorderSpec;
pub use service::{RateStep, Service};
pub use spec::{CellSpec, ChainSpec, SpecError};

// SPDX-License-Identifier: MIT OR Apache-2.0
//! TCP over the cells of `fatpath-link`, packet by packet, with the laws of `fatpath-cc`.
//!
//! Discrete events, one thread, pure: no clock, no randomness of its own, no I/O; equal specs give equal
//! results. Segments and windows are counted in segments, as the laws and Linux do.
//!
//! It does not model processors, interrupts, or devices: a host sends what its window allows at once,
//! and only links take time. Nor the expiry of the least round-trip time (Linux forgets it after 300 s), nor a
//! SYN's consequences: it is repeated without end, at intervals of a minute at most, and the window is the
//! initial one however many were lost (Linux: two minutes, seven in all, and a window of 1 after a SYN was lost).
//!
//! Start reading at [`Spec`], what is simulated, then [`run`]; [`Outcome`] is what it gives. A host's part
//! of a connection is in `fatpath-tcp`.

mod check;
mod connection;
mod connections;
mod datagrams;
mod network;
mod outcome;
mod packet;
mod program;
mod session;
mod shared_rate;
mod simulation;
mod spec;
mod wakes;

pub use check::{FlowProblem, SpecError};
pub use outcome::{
    Completion, Completions, DatagramOutcome, FlowOutcome, LinkOutcome, LinkSample, Outcome, Sample,
};
pub use simulation::{Progress, run};
pub use spec::*;

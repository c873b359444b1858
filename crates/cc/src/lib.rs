// SPDX-License-Identifier: MIT OR Apache-2.0
//! The congestion-control laws of bpf/cc, compiled for the host: the very files that the
//! kernel runs, behind a safe face. Pure: no clock, no randomness, no I/O.
//!
//! Start at [`Control`]; [`laws`] lists what there is. [`Rude`] is a flow without congestion control.
#![allow(unsafe_code)] // calls into the laws' C, which touches only what it is given

mod control;
mod equivalents;
mod law;
mod raw;
pub mod rfc3649;
mod rude;
mod spec;
mod start;
mod window;

pub use control::{Control, PathNow};
pub use law::{Law, ParameterError};
pub use raw::{Memory, RttSample, RudeNow, RudeState, Window};
pub use rude::Rude;
pub use spec::{LawSpec, ParameterSpec, Unit, laws};
pub use start::{Idle, Start};

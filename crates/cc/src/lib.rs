// SPDX-License-Identifier: MIT OR Apache-2.0
//! The congestion-control laws of bpf/cc, compiled for the host: the very files that the
//! kernel runs, behind a safe face. Pure: no clock, no randomness, no I/O.
//!
//! Start at [`Control`], or at [`RateControl`] for laws of [`Kind::Rate`]; [`laws`] lists what there is. [`Rude`] is
//! a flow without congestion control.
#![allow(unsafe_code)] // calls into the laws' C, which touches only what it is given

mod bbr;
mod control;
mod equivalents;
mod law;
mod pace;
mod rate;
mod raw;
pub mod rfc3649;
mod rude;
mod senders;
mod spec;
mod start;
mod window;

pub use bbr::{Bbr, BbrPhase};
pub use control::{Control, PathNow};
pub use law::{Law, ParameterError};
pub use pace::Pace;
pub use rate::RateControl;
pub use raw::{
    Kept, KnownPath, Memory, RateFlow, RateSample, RttSample, RudeNow, RudeState, Window,
};
pub use rude::Rude;
pub use senders::Senders;
pub use spec::{Kind, LawSpec, ParameterSpec, Unit, laws, window_laws};
pub use start::{Idle, Start};

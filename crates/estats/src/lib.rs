// SPDX-License-Identifier: MIT OR Apache-2.0
//! What TCP knows of a flow, by the names of RFC 4898, and what follows from it.
//!
//! A [`Sample`] is everything that the kernel half says of one flow at one moment. From samples come
//! variables, differences and rates, the administrator's own derived events, and the diagnosis. The crate is
//! pure: samples and the time are arguments. Start reading at [`sample`].

pub mod sample;

pub use sample::{CaState, Flow, LimitedBy, Sample, SampleKind};

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What holds for every cell and every traffic. A packet here is a run of numbered segments, so that
//! a test sees which of them came out, in which order, when and in what state.
#![allow(clippy::unwrap_used)]

mod adopt;
mod chain;
mod delay;
mod loss;
mod queue;
mod rate;
mod segments;
mod spec;
mod support;

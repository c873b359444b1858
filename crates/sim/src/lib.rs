// SPDX-License-Identifier: MIT OR Apache-2.0
//! TCP over the cells of `fatpath-link`, packet by packet, with the laws of `fatpath-cc`.
//!
//! Discrete events, one thread, pure: no clock, no randomness of its own, no I/O; equal specs give equal
//! results. Segments and windows are counted in segments, as the laws and Linux do.
//!
//! It does not model processors, interrupts, or devices: a host sends what its window allows at once,
//! and only links take time.

mod spec;
pub mod tcp;

pub use spec::*;

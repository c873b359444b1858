// SPDX-License-Identifier: MIT OR Apache-2.0
//! The types that the BPF programs and user space share, generated from bpf/include/abi.h; their values as the plain
//! bytes of maps and ring buffers.
//!
//! It knows no map and no program: `fatpath-kernel` reads and writes these, and says what they mean.

#[allow(clippy::all)] // generated
mod abi;
pub mod pod;

pub use abi::*;

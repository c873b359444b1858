// SPDX-License-Identifier: MIT OR Apache-2.0
//! One TCP connection's two ends as state machines without I/O: what arrives goes in by `handle_*`,
//! what leaves comes out by `poll_*`, `now_ns` is an argument.

mod segment;

pub use segment::{Ack, Block, MAX_BLOCKS, Segment};

// SPDX-License-Identifier: MIT OR Apache-2.0
//! One TCP connection's two ends as state machines without I/O: what arrives goes in by `handle_*`,
//! what leaves comes out by `poll_*`, `now_ns` is an argument.
//!
//! After every `handle_*` and `write`, ask `poll_*` until it gives `None`, then `next_timeout_ns`.

mod figures;
mod receiver;
mod segment;
mod sender;

pub use figures::{ReceiverFigures, SenderFigures};
pub use receiver::Receiver;
pub use segment::{Ack, Block, MAX_BLOCKS, Segment};
pub use sender::Sender;

// SPDX-License-Identifier: MIT OR Apache-2.0
//! One TCP connection's two ends as state machines without I/O: what arrives goes in by `handle_*`,
//! what leaves comes out by `poll_*`, `now_ns` is an argument.
//!
//! After every `handle_*` and `write`, ask `poll_*` until it gives `None`, then `next_timeout_ns`.

mod acknowledging;
mod arrivals;
mod delivery_rate;
mod figures;
mod pacer;
mod rack;
mod ranges;
mod receive_window;
mod receiver;
mod reduction;
mod rtt;
mod scoreboard;
mod segment;
mod send_buffer;
mod sender;
mod usage;

pub use figures::{ReceiverFigures, SenderFigures};
pub use receiver::Receiver;
pub use segment::{Ack, Block, MAX_BLOCKS, Segment};
pub use sender::Sender;

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test ends where it cannot go on
mod tests;

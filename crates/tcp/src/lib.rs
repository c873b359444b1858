// SPDX-License-Identifier: MIT OR Apache-2.0
//! One end of a TCP connection as a state machine without I/O: what arrives goes in by `handle_*`, what leaves
//! comes out by `poll_*`, and `now_ns` is an argument.
//!
//! | | [`Sender`] | [`Receiver`] |
//! |---|---|---|
//! | begins when the handshake has ended | `new`, `set_peer_window` | `new` |
//! | takes what arrives | `handle_ack` | `handle_segment` |
//! | takes the clock | `handle_timeout` | `handle_timeout` |
//! | takes from its program | `write` | nothing: the program reads at once |
//! | gives what leaves now | `poll_transmit` | `poll_ack` |
//! | gives its next deadline | `next_timeout_ns` | `next_timeout_ns` |
//! | gives to its program | `unacked_bytes`, `is_done` | `delivered_bytes` |
//! | tells how it stands | `figures` | `figures` |
//!
//! After every `handle_*` and `write`, ask `poll_*` until it gives `None`, then for the next deadline; at that time, and
//! not before, call `handle_timeout`. Times are ns since any moment that both ends of a connection share: they
//! echo them (RFC 7323), and no call's `now_ns` is less than the one before.
//!
//! Sequence numbers count segments, not bytes, as the laws and Linux count windows; a segment is never cut anew. The
//! order of what is done with an acknowledgement is that of Linux 6.18.
//!
//! It does not do the handshake or the end of a connection, carry data (it counts their bytes), or check
//! a segment's bytes: whoever drives it does. A receiver never forgets what it SACKed.
//!
//! Start reading at [`TcpSpec`], what the two ends are set to, then [`Sender`].

mod acknowledging;
mod arrivals;
mod delivery_rate;
mod drops;
mod figures;
mod growth;
mod kernel_cubic;
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
mod spec;
mod usage;

pub use drops::DropList;
pub use figures::{ReceiverFigures, SenderFigures};
pub use receiver::Receiver;
pub use segment::{Ack, Block, MAX_BLOCKS, Segment, TIMESTAMPED_BLOCKS};
pub use sender::{SendLimit, Sender};
pub use spec::{
    Buffer, DelayedAcks, Detection, Growth, OutOfRange, RudeOff, RudeRate, RudeSpec, TcpSpec,
    WindowReduction,
};

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test ends where it cannot go on
mod tests;

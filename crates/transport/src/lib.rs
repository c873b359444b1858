// SPDX-License-Identifier: MIT OR Apache-2.0
//! TCP's machinery over UDP datagrams, without I/O: one direction of data, sealed, from pieces of objects at the
//! sender to writes at the receiver. The state machines are those of `fatpath-tcp`, so laws, SACK, duplicate
//! thresholds and undo are the simulator's.
//!
//! | | [`Sender`] | [`Receiver`] |
//! |---|---|---|
//! | takes from its program | `send`, `close` | `close` |
//! | takes a datagram | `handle_datagram` | `handle_datagram`, which gives what to write where |
//! | takes the clock | `handle_timeout` | `handle_timeout` |
//! | gives a datagram to send now | `poll_transmit`, which asks for the bytes of its runs | `poll_transmit` |
//! | gives its next deadline | `poll_timeout` | `poll_timeout` |
//!
//! After every `send`, `close` and `handle_*`, ask `poll_transmit` until it gives nothing, then `poll_timeout`. Neither end
//! keeps data: the sender reads a lost run again from where it read it first, and the receiver writes at once.
//!
//! Datagrams leave with the ECN field that [`Sender::ecn`] gives, and the receiver is told how each arrived.
//!
//! A datagram is appended to what is there already, so that many leave by one call of the kernel.
//!
//! It does not exchange keys, open sockets or files, or know names or sizes of objects. It searches the path's MTU where it is
//! told to (`path_mtu.rs`), and renews keys before the AEAD's limit. It refuses to open a datagram of another connection, one
//! that was opened before, and one that does not verify; these change nothing.
//!
//! The same frames under the same keys are also records of a stream ([`RecordSealer`], [`RecordOpener`]), for a carrier that
//! loses nothing by itself.
//!
//! Start reading at [`Spec`], then [`Sender`]. The bytes of a datagram are in `packet.rs` and `frame.rs`, and in
//! docs/transport.md.

mod close;
mod departures;
mod ecn;
pub mod frame;
mod keys;
mod lowest;
mod packet;
mod path_mtu;
mod queue;
mod receiver;
mod record;
mod replay;
mod seal;
mod sender;
mod silence;
mod spec;

pub use close::CloseCode;
pub use fatpath_link::Ecn;
pub use keys::{Cipher, FlowSecret, Secret};
pub use packet::{HEADER_BYTES, Header, Kind, TAG_BYTES};
pub use queue::{Extent, Queue, Run};
pub use receiver::{Received, Receiver};
pub use record::{HELLO_BYTES, MOST_RECORD_BYTES, Record, RecordOpener, RecordSealer};
pub use seal::{KeyExhausted, Opened, Opener, Refused, Sealer};
pub use sender::{Limit, PollError, Sender};
pub use spec::{Spec, SpecError};

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test ends where it cannot go on
mod tests;

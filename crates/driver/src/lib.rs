// SPDX-License-Identifier: MIT OR Apache-2.0
//! Drives the transport over UDP sockets, and over TCP connections where UDP is blocked ([`tcp`]): a thread of the
//! program's own calls [`SendEnd::step`] or [`RecvEnd::step`] in a loop, and each step takes what has arrived, does what
//! is due, sends what may leave, and waits.
//!
//! Datagrams leave and arrive many at a call (UDP segmentation offload and its counterpart, by `quinn-udp`); the pace of
//! the transport sizes the batches. IP fragments what leaves only where
//! that is asked for ([`Socket::let_fragment`]).
//!
//! It has no threads, no async runtime, no keys of its own, and knows no files: bytes come from a [`Source`] and go to a
//! [`Sink`]. Errors of the network are losses: only silence of the peer ends a connection, so that nobody off the path
//! can. Start reading at [`Socket`], then [`SendEnd`].

mod beside;
mod dispersion;
mod flows;
mod ping;
mod plain;
mod receive;
mod send;
mod socket;
mod system;
pub mod tcp;
mod thread_time;
mod waits;

use fatpath_transport::{CloseCode, Refused, Run, frame::Write};
use std::net::SocketAddr;
use std::time::Duration;

pub use flows::{RecvFlows, SendFlows};
pub use ping::{Answered, Ping, Pong};
pub use plain::{PlainRecvEnd, PlainSendEnd, SocketRequests};
pub use receive::RecvEnd;
pub use send::SendEnd;
pub use socket::{BindError, Bound, Socket};
pub use system::BUFFER_REMEDY;
pub use thread_time::{Reading, Spent, ThreadClock};
pub use waits::Waits;

/// An end whose source or sink took so long did not listen meanwhile: silence of the other one does not count.
const LATE: Duration = Duration::from_millis(100);

/// Where the sender reads the bytes of runs.
pub trait Source {
    /// Fills `into`, which has the run's length. Runs come in the order in which they were given, and again when they were
    /// lost. What cannot be read is the source's to report: the segment leaves with whatever `into` holds.
    fn read(&mut self, run: &Run, into: &mut [u8]);
}

/// Where the receiver writes.
pub trait Sink {
    /// What arrived together by this flow, each byte once in a connection. It is acknowledged after this returns.
    fn write(&mut self, flow: usize, writes: &[Write<'_>]);

    /// What came by this flow and waits in memory, bytes: so much less may the sender send. All connections of TCP count as
    /// flow 0.
    fn held_bytes(&self, _flow: usize) -> u64 {
        0
    }
}

/// Why a connection cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// Nothing that verifies came for as long as the specification allows.
    #[error(
        "nothing has arrived from {} for {silence_s} s: is UDP between the two ports open?",
        peer.map_or("the other end".to_owned(), |peer| peer.to_string())
    )]
    Silent {
        /// The other end, as far as it is known.
        peer: Option<SocketAddr>,
        /// How long.
        silence_s: u64,
    },
    /// The same over TCP, by all connections.
    #[error("nothing has arrived over TCP from {peer} for {silence_s} s")]
    SilentConnection {
        /// The other end.
        peer: SocketAddr,
        /// How long.
        silence_s: u64,
    },
    /// The other end, or the network, has ended a connection.
    #[error("the TCP connection with {0} has ended: the same command goes on where this ended")]
    Ended(SocketAddr),
    /// The kernel cannot go on with a connection.
    #[error("TCP connection with {0}")]
    Connection(SocketAddr, #[source] std::io::Error),
    /// What came over a connection was not sealed by the other end, or something was left out.
    #[error(
        "what comes over TCP from {0} is not what the other end sent: something between changes it"
    )]
    Refused(SocketAddr, #[source] Refused),
    /// The other end closed for a reason of its own.
    #[error("the other end closed the connection (code {})", .0.0)]
    Closed(CloseCode),
    /// The cipher's limit.
    #[error(
        "the key has sealed as many datagrams as it may, and the other end has not answered by a newer one: give the \
         command again"
    )]
    KeyExhausted,
    /// The datagrams do not fit the interface.
    #[error(
        "datagrams of {0} bytes do not fit the interface to the other end: give a smaller size"
    )]
    TooLong(usize),
    /// The socket's.
    #[error("UDP socket")]
    Io(#[from] std::io::Error),
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test ends where it cannot go on
mod tests;

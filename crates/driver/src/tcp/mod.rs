// SPDX-License-Identifier: MIT OR Apache-2.0
//! The other carrier, for paths that do not carry UDP: sealed records over the kernel's TCP connections, one or several.
//!
//! What is to be sent is one queue, from which each connection takes as it has room. Loss, order and congestion are the
//! kernel's. A connection that ends, or falls silent, leaves the others what it had; when the last one does, or a record does
//! not verify, the carrier ends. Start reading at [`Listener`] and [`connect`], then [`SendEnd`].

mod connection;
mod listen;
mod receive;
mod send;

use fatpath_transport::{Cipher, FlowSecret, RecordOpener, RecordSealer};
use std::time::Duration;

pub use connection::Connection;
pub use listen::{Listener, connect};
pub use receive::RecvEnd;
pub use send::SendEnd;

/// How often the receiving end says that it lives and what has arrived, and after how many records at the latest: the
/// sending end keeps account of what it was not told of.
const HELLO_EVERY: Duration = Duration::from_millis(200);
const HELLO_RECORDS: u64 = 8;

/// What this end does with the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It has them.
    Sends,
    /// It writes them.
    Receives,
}

impl Role {
    fn keys(self, flow: FlowSecret, cipher: Cipher) -> (RecordSealer, RecordOpener) {
        match self {
            Role::Sends => flow.records_of_sender(cipher),
            Role::Receives => flow.records_of_receiver(cipher),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test ends where it cannot go on
mod tests;

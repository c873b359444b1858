// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests between two hosts of fatpath. A responder ([`respond`]) answers those of the peers that its file names, within their
//! limits; [`echo`] makes one.
//!
//! A test begins with a connection (TLS, the keys of both ends) over which it is asked for and granted (`serve.rs`). Only then
//! is there a UDP socket, connected to the one who asked, for as long as the test lasts (`answer.rs`). Each datagram carries a
//! proof by a secret of that connection, and what is sent back is no longer than what came: nobody else makes this host send.

mod answer;
mod call;
mod events;
mod listen;
mod proof;
mod serve;
mod socket;
mod used;

pub use call::{EchoError, Made, Wanted, echo};
pub use listen::{Options, RespondError, respond};
pub use used::{UsedError, UsedFile};

/// What both ends name as what they speak (ALPN).
const PROTOCOL: &str = "fatpath-measure";
/// What the secret of a test's datagrams is called (RFC 8446, 7.5).
const SECRET: &[u8] = b"EXPERIMENTAL fatpath echo";
/// Whoever connects says so many bytes first: more than a responder says to an end that has not proved its key, about 600.
const PREAMBLE_BYTES: usize = 2048;

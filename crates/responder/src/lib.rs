// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests between two hosts of fatpath. A responder ([`respond`]) answers those of the peers that its file names, within their
//! limits; [`echo`], [`rate`] and [`throughput`] make one.
//!
//! A test begins with a connection (TLS, the keys of both ends) over which it is asked for and granted (`serve.rs`). Only then
//! is there a UDP socket, connected to the one who asked, for as long as the test lasts. Each datagram carries a
//! proof by a secret of that connection. Of an echo it is sent back, no longer than it came (`answer.rs`); of a packet train
//! its arrival is recorded, and the record said over the connection (`record.rs`): nobody else makes this host send. For a test
//! of throughput a server of iperf3 is started, which knows its one client by a password of that connection (`iperf3.rs`).

mod answer;
mod call;
mod credentials;
mod echo;
mod events;
mod iperf3;
mod listen;
mod proof;
mod rate;
mod record;
mod serve;
mod socket;
mod throughput;
mod used;

pub use call::{TestError, Whom};
pub use echo::{Made, Wanted, echo};
pub use listen::{Options, RespondError, respond};
pub use rate::{Step, WantedRate, rate};
pub use throughput::{Lent, WantedThroughput, lend, lossless_rate, throughput};
pub use used::{UsedError, UsedFile};

/// What both ends name as what they speak (ALPN).
const PROTOCOL: &str = "fatpath-measure";
/// What the secret of a test's datagrams is called (RFC 8446, 7.5).
const SECRET: &[u8] = b"EXPERIMENTAL fatpath echo";
/// The same of its trains.
const TRAIN_SECRET: &[u8] = b"EXPERIMENTAL fatpath trains";
/// Whoever connects says so many bytes first: more than a responder says to an end that has not proved its key, about 600.
const PREAMBLE_BYTES: usize = 2048;

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who is at the other end of a connection: keys of hosts, files of trusted keys, and TLS 1.3 with raw public keys
//! (RFC 7250) in both directions. There are no certificates and no authorities: an end trusts the keys that a file names.
//!
//! What travels over a connection is not this crate's: [`Peer::relay`] carries bytes between it and two pipes, [`Peer::say_line`]
//! and [`Peer::hear_line`] lines of text. `fatpath keys` is in `cli.rs`. Start reading at `connection.rs`.

mod account;
mod call;
pub mod cli;
mod connection;
mod files;
mod key;
mod listener;
mod log;
mod refusals;
mod relay;
mod strangers;
mod talk;
mod tls;
mod trust;
mod waiting;

pub use account::{Account, AccountError};
pub use call::{CallError, Called, call, open};
pub use connection::{Peer, accept, connect};
pub use files::{CALLERS, FileError, HOSTS, KEY, in_configuration, or_configured, read_trusted};
pub use key::{Key, PublicKey};
pub use listener::{Came, Listener};
pub use log::{Event, Log};
pub use strangers::first_of_most;
pub use tls::AuthError;
pub use trust::{BadLine, Trusted, add};
pub use waiting::{MOST_WAITING, Waiting};

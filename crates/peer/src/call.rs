// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls another host: connects, and holds it to the key that this host trusts for its name.

use crate::{AuthError, BadLine, Key, Peer, PublicKey, Trusted, connect};
use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long an address has to answer, and then the end there to say who it is.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
const KNOWN_WITHIN: Duration = Duration::from_secs(20);

/// Whom to call.
pub struct Called<'a> {
    /// By which the file of trusted keys knows it.
    pub host: &'a str,
    /// Its port.
    pub port: u16,
    /// What both ends name as what they speak (ALPN).
    pub protocol: &'a str,
    /// The file of trusted keys.
    pub trust: &'a Path,
    /// What comes after a command that is to use the same file.
    pub trust_option: &'a str,
    /// The command that listens there.
    pub listener: &'a str,
    /// What is to be done there so that it trusts this key, as the end of a sentence.
    pub to_be_trusted: &'a dyn Fn(&PublicKey) -> String,
}

/// Why a call came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The file of trusted keys.
    #[error(transparent)]
    Trust(#[from] BadLine),
    /// The name is unknown.
    #[error("{0} has no address here")]
    NoAddress(String, #[source] Option<io::Error>),
    /// No address of it answers.
    #[error(
        "cannot connect to {host}, port {port}: is `{listener}` running there, and the port open in its firewall?"
    )]
    #[allow(missing_docs)] // the text says it
    Closed {
        host: String,
        port: u16,
        listener: String,
        #[source]
        error: io::Error,
    },
    /// No key is trusted for it.
    #[error(
        "{host} is not known here. It has the key {key}: if `fatpath keys show` prints that there, run: fatpath keys trust host \
         {key} {host}{option}"
    )]
    #[allow(missing_docs)]
    Unknown {
        host: String,
        key: PublicKey,
        option: String,
    },
    /// It has another key.
    #[error(
        "{host} has the key {key}, and not one that {trust} has for it: somebody may be in its place. If it has a new key, which \
         `fatpath keys show` prints there, remove the line of the old one, and run: fatpath keys trust host {key} {host}{option}",
        trust = .trust.display()
    )]
    #[allow(missing_docs)]
    OtherKey {
        host: String,
        key: PublicKey,
        trust: PathBuf,
        option: String,
    },
    /// It does not trust this end.
    #[error("{0} does not trust the key of this end; {1}")]
    Distrusts(String, String),
    /// It is something else.
    #[error("{host}:{port}: {error}; is it `{listener}` that listens there?")]
    #[allow(missing_docs)]
    Other {
        host: String,
        port: u16,
        listener: String,
        error: AuthError,
    },
}

/// A connection, on which nothing is said yet, and to where.
///
/// # Errors
/// The host has no address, or none of them answers.
pub fn open(called: &Called<'_>) -> Result<(TcpStream, SocketAddr), CallError> {
    let (host, port) = (called.host, called.port);
    let none = |error| CallError::NoAddress(host.to_owned(), error);
    let addresses = (host, port).to_socket_addrs();
    let mut last = None;
    for address in addresses.map_err(|error| none(Some(error)))? {
        match TcpStream::connect_timeout(&address, CONNECT_WITHIN) {
            Ok(socket) => return Ok((socket, address)),
            Err(error) => last = Some(error),
        }
    }
    let error = last.ok_or_else(|| none(None))?;
    Err(CallError::Closed {
        host: host.to_owned(),
        port,
        listener: called.listener.to_owned(),
        error,
    })
}

/// Both ends prove their keys on `socket`, which [`open`] gave.
///
/// # Errors
/// One does not trust the other.
pub fn call(socket: TcpStream, key: &Key, called: &Called<'_>) -> Result<Peer, CallError> {
    let trusted = Trusted::read(called.trust)?.keys_of(called.host);
    let is_known = !trusted.is_empty();
    let trusts = move |key: &PublicKey| trusted.contains(key);
    let peer = connect(socket, key, called.protocol, trusts, KNOWN_WITHIN);
    let (host, option) = (called.host.to_owned(), called.trust_option.to_owned());
    peer.map_err(|error| match error {
        AuthError::Untrusted(key) if is_known => CallError::OtherKey {
            host,
            key,
            trust: called.trust.to_owned(),
            option,
        },
        AuthError::Untrusted(key) => CallError::Unknown { host, key, option },
        AuthError::Distrusts => CallError::Distrusts(host, (called.to_be_trusted)(&key.public())),
        error => CallError::Other {
            host,
            port: called.port,
            listener: called.listener.to_owned(),
            error,
        },
    })
}

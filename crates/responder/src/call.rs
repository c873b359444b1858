// SPDX-License-Identifier: MIT OR Apache-2.0
//! The end that makes a test: connects to a responder, asks it for the test, and hears what it answers.

use crate::{PREAMBLE_BYTES, PROTOCOL};
use fatpath_measure::trains::Untrue;
use fatpath_measure::{MOST_LINE_BYTES, Reply, shown};
use fatpath_peer::{CallError, Called, Key, Peer, PublicKey};
use fatpath_train::Unusable;
use serde::Serialize;
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::time::Duration;

/// How long the responder has to answer what is asked for.
pub const SAID_WITHIN: Duration = Duration::from_secs(10);

/// What is said of a responder that closes its connection.
pub const ENDED_EARLY: &str = "it ended the test before its time";

/// Whom to ask, and as whom.
pub struct Whom<'a> {
    /// Its name, as the file of trusted keys has it.
    pub host: &'a str,
    /// Its port.
    pub port: u16,
    /// This end's key.
    pub key: &'a Key,
    /// The file of trusted keys.
    pub trust: &'a Path,
    /// What comes after a command that is to use the same file.
    pub trust_option: &'a str,
}

/// Why a test was not made.
#[derive(Debug, thiserror::Error)]
pub enum TestError {
    /// The responder was not reached, or one end does not trust the other.
    #[error(transparent)]
    Call(#[from] CallError),
    /// It does not answer such a test.
    #[error("{0} refuses the test: {1}")]
    Refused(String, String),
    /// What it says is wrong.
    #[error("{0} says what no responder says")]
    Nonsense(String),
    /// What it says of a train cannot be.
    #[error("{0}: {1}")]
    Untrue(String, Untrue),
    /// There are no random bytes.
    #[error("the kernel gives no random bytes")]
    NoRandom,
    /// Whatever runs iperf3 says why.
    #[error("iperf3: {0}")]
    Iperf3(String),
    /// The kernel does not send packets of this length.
    #[error("cannot send packets of {0} bytes: give another --size")]
    Send(u32, #[source] io::Error),
    /// Too many trains were unusable.
    #[error("too few trains to {0} gave a rate{because}", because = .1.map_or(String::new(), |why| format!("; of the last, {why}")))]
    NoRate(String, Option<Unusable>),
    /// The kernel's, or the connection's.
    #[error("{0}: {1}")]
    Io(String, #[source] io::Error),
}

impl Whom<'_> {
    /// Something failed.
    pub fn broken(&self, error: io::Error) -> TestError {
        let error = match error.kind() {
            ErrorKind::UnexpectedEof => io::Error::new(ErrorKind::ConnectionAborted, ENDED_EARLY),
            _ => error,
        };
        TestError::Io(self.host.to_owned(), error)
    }

    /// It says what no responder says.
    pub fn nonsense(&self) -> TestError {
        TestError::Nonsense(self.host.to_owned())
    }
}

/// A connection to it.
pub fn connected(whom: &Whom<'_>) -> Result<Peer, TestError> {
    let to_be_trusted = |key: &PublicKey| {
        format!(
            "a [[peer]] of measure.toml there lets it in, with prefix = this host's address, key = \"{key}\""
        )
    };
    let called = Called {
        host: whom.host,
        port: whom.port,
        protocol: PROTOCOL,
        trust: whom.trust,
        trust_option: whom.trust_option,
        listener: "fatpath measure respond",
        to_be_trusted: &to_be_trusted,
    };
    let (mut socket, _) = fatpath_peer::open(&called)?;
    let said = socket.write_all(&[0; PREAMBLE_BYTES]);
    said.map_err(|error| whom.broken(error))?;
    Ok(fatpath_peer::call(socket, whom.key, &called)?)
}

/// Says what has to be granted.
pub fn granted(peer: &mut Peer, asked: &impl Serialize, whom: &Whom<'_>) -> Result<(), TestError> {
    match asked_for(peer, asked, Duration::ZERO, whom)? {
        Reply::Granted {} => Ok(()),
        _ => Err(whom.nonsense()),
    }
}

/// What is answered to something that the responder may refuse, and for which it may wait.
pub fn asked_for(
    peer: &mut Peer,
    asked: &impl Serialize,
    patience: Duration,
    whom: &Whom<'_>,
) -> Result<Reply, TestError> {
    let line = serde_json::to_string(asked).map_err(|error| whom.broken(error.into()))?;
    match said(peer, &line, patience + SAID_WITHIN, whom)? {
        Reply::Refused { why } => Err(TestError::Refused(whom.host.to_owned(), shown(&why))),
        reply => Ok(reply),
    }
}

/// What is answered to a line.
pub fn said(
    peer: &mut Peer,
    line: &str,
    within: Duration,
    whom: &Whom<'_>,
) -> Result<Reply, TestError> {
    peer.say_line(line, SAID_WITHIN)
        .map_err(|error| whom.broken(error))?;
    heard(peer, within, whom)
}

/// What it says next.
pub fn heard(peer: &mut Peer, within: Duration, whom: &Whom<'_>) -> Result<Reply, TestError> {
    let line = peer.hear_line(MOST_LINE_BYTES, within);
    let line = line.map_err(|error| whom.broken(error))?;
    Reply::read(&line).map_err(|_| whom.nonsense())
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The end that makes a test: asks a responder for it, sends datagrams, and times what comes back by its own clock. What the
//! other end says can make a round trip longer, and never shorter: an answer has the nonce of its question.

use crate::proof::Proof;
use crate::socket::Pair;
use crate::{PREAMBLE_BYTES, PROTOCOL, SECRET};
use fatpath_measure::echo::{Datagram, Way};
use fatpath_measure::{Ask, Kind, MOST_LINE_BYTES, Reply, shown};
use fatpath_peer::{CallError, Called, Key, Peer, PublicKey};
use aws_lc_rs::rand::{SecureRandom, SystemRandom};
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long the responder has to answer what is asked for.
const SAID_WITHIN: Duration = Duration::from_secs(10);
/// How long after the last datagram answers are waited for.
const LAST_WITHIN: Duration = Duration::from_secs(3);

/// The test to make.
pub struct Wanted<'a> {
    /// Whom to ask, by the name that the file of trusted keys has.
    pub host: &'a str,
    /// Its port.
    pub port: u16,
    /// This end's key.
    pub key: &'a Key,
    /// The file of trusted keys.
    pub trust: &'a Path,
    /// What comes after a command that is to use the same file.
    pub trust_option: &'a str,
    /// How many datagrams.
    pub packets: u32,
    /// UDP payload of each.
    pub packet_bytes: u16,
    /// From one to the next.
    pub interval: Duration,
}

/// Why a test was not made.
#[derive(Debug, thiserror::Error)]
pub enum EchoError {
    /// The responder was not reached, or one end does not trust the other.
    #[error(transparent)]
    Call(#[from] CallError),
    /// It does not answer such a test.
    #[error("{0} refuses the test: {1}")]
    Refused(String, String),
    /// What it says is wrong.
    #[error("{0} says what no responder says")]
    Nonsense(String),
    /// There are no random bytes.
    #[error("the kernel gives no random bytes")]
    NoRandom,
    /// The kernel's, or the connection's.
    #[error("{0}: {1}")]
    Io(String, #[source] io::Error),
}

/// Makes a test. Gives the round trips of the datagrams that came back, in ns.
///
/// # Errors
/// See [`EchoError`].
pub fn echo(wanted: &Wanted<'_>) -> Result<Vec<u64>, EchoError> {
    let broken = |error| EchoError::Io(wanted.host.to_owned(), error);
    let mut peer = connected(wanted)?;
    let connection = peer.socket().try_clone().map_err(broken)?;
    let pair = Pair::bind(&connection, 0).map_err(broken)?;
    let ask = Ask {
        kind: Kind::Echo,
        port: pair.port().map_err(broken)?,
        packets: wanted.packets,
        packet_bytes: wanted.packet_bytes,
        interval_us: u32::try_from(wanted.interval.as_micros()).unwrap_or(u32::MAX),
    };
    ask_for(&mut peer, &ask, wanted)?;
    pair.connect(wanted.port).map_err(broken)?;
    let proof = Proof::new(&peer.secret(SECRET).map_err(broken)?);
    let mut round = Round::new(pair, proof, &ask)?;
    round.run().map_err(broken)?;
    Ok(round.trips_ns)
}

fn connected(wanted: &Wanted<'_>) -> Result<Peer, EchoError> {
    let to_be_trusted = |key: &PublicKey| {
        format!(
            "a [[peer]] of measure.toml there lets it in, with prefix = this host's address, key = \"{key}\""
        )
    };
    let called = Called {
        host: wanted.host,
        port: wanted.port,
        protocol: PROTOCOL,
        trust: wanted.trust,
        trust_option: wanted.trust_option,
        listener: "fatpath measure respond",
        to_be_trusted: &to_be_trusted,
    };
    let (mut socket, _) = fatpath_peer::open(&called)?;
    let said = socket.write_all(&[0; PREAMBLE_BYTES]);
    said.map_err(|error| EchoError::Io(wanted.host.to_owned(), error))?;
    Ok(fatpath_peer::call(socket, wanted.key, &called)?)
}

fn ask_for(peer: &mut Peer, ask: &Ask, wanted: &Wanted<'_>) -> Result<(), EchoError> {
    let host = || wanted.host.to_owned();
    let mut said = || -> io::Result<String> {
        peer.say_line(&serde_json::to_string(ask)?, SAID_WITHIN)?;
        peer.hear_line(MOST_LINE_BYTES, SAID_WITHIN)
    };
    let line = said().map_err(|error| EchoError::Io(host(), error))?;
    match Reply::read(&line) {
        Ok(Reply::Granted {}) => Ok(()),
        Ok(Reply::Refused { why }) => Err(EchoError::Refused(host(), shown(&why))),
        Err(_) => Err(EchoError::Nonsense(host())),
    }
}

/// Datagrams there and back.
struct Round<'c, 'a> {
    pair: Pair<'c>,
    proof: Proof,
    ask: &'a Ask,
    /// Of each datagram: its nonce, and when it was sent, until it is answered.
    open: Vec<Option<(u64, Instant)>>,
    sent: u32,
    random: SystemRandom,
    trips_ns: Vec<u64>,
}

impl<'c, 'a> Round<'c, 'a> {
    fn new(pair: Pair<'c>, proof: Proof, ask: &'a Ask) -> Result<Round<'c, 'a>, EchoError> {
        let random = SystemRandom::new();
        random.fill(&mut [0]).map_err(|_| EchoError::NoRandom)?;
        Ok(Round {
            pair,
            proof,
            ask,
            open: vec![None; ask.packets as usize],
            sent: 0,
            random,
            trips_ns: vec![],
        })
    }

    fn run(&mut self) -> io::Result<()> {
        let begun = Instant::now();
        let interval = Duration::from_micros(self.ask.interval_us.into());
        let mut bytes = vec![0; usize::from(self.ask.packet_bytes) + 1];
        let last = interval * self.ask.packets.saturating_sub(1) + LAST_WITHIN;
        loop {
            let now = begun.elapsed();
            let is_sending = self.sent < self.ask.packets;
            if is_sending && now >= interval * self.sent {
                self.send(&mut bytes)?;
                continue;
            }
            let next = if is_sending {
                interval * self.sent
            } else {
                last
            };
            let is_over = !is_sending && (now >= last || self.trips_ns.len() == self.open.len());
            if is_over || self.pair.wait(next.saturating_sub(now))? {
                return Ok(());
            }
            self.receive(&mut bytes);
        }
    }

    fn send(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        let mut nonce = [0; 8];
        let filled = self.random.fill(&mut nonce);
        filled.map_err(|_| io::Error::other(EchoError::NoRandom))?;
        let nonce = u64::from_ne_bytes(nonce);
        let datagram = Datagram {
            way: Way::There,
            sequence: self.sent,
            nonce,
            received_ns: 0,
            answered_ns: 0,
        };
        let bytes = &mut bytes[..usize::from(self.ask.packet_bytes)];
        self.proof.seal(&datagram, bytes);
        self.open[self.sent as usize] = Some((nonce, Instant::now()));
        self.sent += 1;
        self.pair.send(bytes);
        Ok(())
    }

    fn receive(&mut self, bytes: &mut [u8]) {
        let Some(came) = self.pair.receive(bytes) else {
            return;
        };
        let read = Instant::now();
        let datagram = self.proof.open(&bytes[..came.bytes]);
        let Some(datagram) = datagram.filter(|it| it.way == Way::Back) else {
            return;
        };
        let open = self.open.get_mut(datagram.sequence as usize);
        let Some(open) = open else { return };
        if let Some((_, sent)) = open.take_if(|(nonce, _)| *nonce == datagram.nonce) {
            let trip = read.duration_since(sent).saturating_sub(came.waited);
            self.trips_ns.push(trip.as_nanos() as u64);
        }
    }
}

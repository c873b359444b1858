// SPDX-License-Identifier: MIT OR Apache-2.0
//! The end that makes a test: asks a responder for it, sends datagrams, and times what comes back by its own clock. What the
//! other end says can make a round trip longer, and never shorter: an answer has the nonce of its question.

use crate::proof::Proof;
use crate::socket::{Pair, now_ns};
use crate::{PREAMBLE_BYTES, PROTOCOL, SECRET};
use aws_lc_rs::rand::{SecureRandom, SystemRandom};
use fatpath_measure::echo::{Datagram, Way};
use fatpath_measure::{Ask, Clock, Kind, MOST_LINE_BYTES, Reply, Trip, shown};
use fatpath_peer::{CallError, Called, Key, Peer, PublicKey};
use std::io::{self, ErrorKind, Write};
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
    /// Which test.
    pub kind: Kind,
    /// How many datagrams.
    pub packets: u32,
    /// UDP payload of each.
    pub packet_bytes: u16,
    /// From one to the next.
    pub interval: Duration,
}

/// What came of a test.
pub struct Made {
    /// Of the datagrams that came back.
    pub trips: Vec<Trip>,
    /// What the responder says of its clock, in a test of one-way delay.
    pub clock: Option<Clock>,
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

/// Makes a test.
///
/// # Errors
/// See [`EchoError`].
pub fn echo(wanted: &Wanted<'_>) -> Result<Made, EchoError> {
    let broken = |error| EchoError::Io(wanted.host.to_owned(), error);
    let mut peer = connected(wanted)?;
    let connection = peer.socket().try_clone().map_err(broken)?;
    let pair = Pair::bind(&connection, 0).map_err(broken)?;
    let ask = Ask {
        kind: wanted.kind,
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
    let trips = round.trips;
    let clock = match wanted.kind {
        Kind::Echo => None,
        Kind::OneWay => clock_of(&mut peer, wanted)?,
    };
    Ok(Made { trips, clock })
}

/// What the responder knows of its clock once the test has ended: whatever is said to it ends a test.
fn clock_of(peer: &mut Peer, wanted: &Wanted<'_>) -> Result<Option<Clock>, EchoError> {
    let host = || wanted.host.to_owned();
    let mut said = || -> io::Result<String> {
        peer.say_line("", SAID_WITHIN)?;
        peer.hear_line(MOST_LINE_BYTES, SAID_WITHIN)
    };
    let line = said().map_err(|error| EchoError::Io(host(), error))?;
    match Reply::read(&line) {
        Ok(Reply::Ended { clock }) => Ok(clock),
        _ => Err(EchoError::Nonsense(host())),
    }
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
        Ok(Reply::Ended { .. }) | Err(_) => Err(EchoError::Nonsense(host())),
    }
}

/// Datagrams there and back.
struct Round<'c, 'a> {
    pair: Pair<'c>,
    proof: Proof,
    ask: &'a Ask,
    /// Of each datagram, until it is answered.
    open: Vec<Option<Open>>,
    sent: u32,
    random: SystemRandom,
    trips: Vec<Trip>,
}

/// A datagram that is on its way.
#[derive(Clone, Copy)]
struct Open {
    nonce: u64,
    sent: Instant,
    sent_ns: u64,
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
            trips: vec![],
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
            if !is_sending && (now >= last || self.trips.len() == self.open.len()) {
                return Ok(());
            }
            if self.pair.wait(next.saturating_sub(now))? {
                // What did not come back by then is no loss of the path.
                let ended = "it ended the test before its time";
                return Err(io::Error::new(ErrorKind::ConnectionAborted, ended));
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
        self.open[self.sent as usize] = Some(Open {
            nonce,
            sent: Instant::now(),
            sent_ns: now_ns(),
        });
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
        if let Some(open) = open.take_if(|open| open.nonce == datagram.nonce) {
            let trip = read.duration_since(open.sent).saturating_sub(came.waited);
            self.trips.push(Trip {
                trip_ns: trip.as_nanos() as u64,
                sent_ns: open.sent_ns,
                received_ns: datagram.received_ns,
                answered_ns: datagram.answered_ns,
                came_ns: came.at_ns,
            });
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Datagrams there and back, timed by this end's own clock. What the other end says can make a round trip longer, and never
//! shorter: an answer has the nonce of its question.

use crate::SECRET;
use crate::call::{ENDED_EARLY, SAID_WITHIN, TestError, Whom, connected, granted, said};
use crate::proof::Proof;
use crate::socket::{Pair, now_ns};
use aws_lc_rs::rand::{SecureRandom, SystemRandom};
use fatpath_measure::echo::{Datagram, Way};
use fatpath_measure::{Ask, Clock, Datagrams, Reply, Trip};
use fatpath_peer::Peer;
use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

/// How long after the last datagram answers are waited for.
const LAST_WITHIN: Duration = Duration::from_secs(3);

/// The test to make.
pub struct Wanted<'a> {
    /// Whom to ask.
    pub whom: &'a Whom<'a>,
    /// One-way delay is wanted too: the responder says its times.
    pub with_times: bool,
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

/// Makes a test.
///
/// # Errors
/// See [`TestError`].
pub fn echo(wanted: &Wanted<'_>) -> Result<Made, TestError> {
    let whom = wanted.whom;
    let broken = |error| whom.broken(error);
    let mut peer = connected(whom)?;
    let connection = peer.socket().try_clone().map_err(broken)?;
    let pair = Pair::bind(&connection, 0).map_err(broken)?;
    let asked = Datagrams {
        port: pair.port().map_err(broken)?,
        packets: wanted.packets,
        packet_bytes: wanted.packet_bytes,
        interval_us: u32::try_from(wanted.interval.as_micros()).unwrap_or(u32::MAX),
    };
    let ask = match wanted.with_times {
        true => Ask::OneWay(asked),
        false => Ask::Echo(asked),
    };
    granted(&mut peer, &ask, whom)?;
    pair.connect(whom.port).map_err(broken)?;
    let proof = Proof::new(&peer.secret(SECRET).map_err(broken)?);
    let mut round = Round::new(pair, proof, &asked)?;
    round.run().map_err(broken)?;
    let trips = round.trips;
    let clock = match wanted.with_times {
        true => clock_of(&mut peer, whom)?,
        false => None,
    };
    Ok(Made { trips, clock })
}

/// What the responder knows of its clock once the test has ended: whatever is said to it ends a test.
fn clock_of(peer: &mut Peer, whom: &Whom<'_>) -> Result<Option<Clock>, TestError> {
    match said(peer, "", SAID_WITHIN, whom)? {
        Reply::Ended { clock } => Ok(clock),
        _ => Err(whom.nonsense()),
    }
}

/// Datagrams there and back.
struct Round<'c, 'a> {
    pair: Pair<'c>,
    proof: Proof,
    asked: &'a Datagrams,
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
    fn new(pair: Pair<'c>, proof: Proof, asked: &'a Datagrams) -> Result<Round<'c, 'a>, TestError> {
        let random = SystemRandom::new();
        random.fill(&mut [0]).map_err(|_| TestError::NoRandom)?;
        Ok(Round {
            pair,
            proof,
            asked,
            open: vec![None; asked.packets as usize],
            sent: 0,
            random,
            trips: vec![],
        })
    }

    fn run(&mut self) -> io::Result<()> {
        let begun = Instant::now();
        let interval = Duration::from_micros(self.asked.interval_us.into());
        let mut bytes = vec![0; usize::from(self.asked.packet_bytes) + 1];
        let last = interval * self.asked.packets.saturating_sub(1) + LAST_WITHIN;
        loop {
            let now = begun.elapsed();
            let is_sending = self.sent < self.asked.packets;
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
                return Err(io::Error::new(ErrorKind::ConnectionAborted, ENDED_EARLY));
            }
            self.receive(&mut bytes);
        }
    }

    fn send(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        let mut nonce = [0; 8];
        let filled = self.random.fill(&mut nonce);
        filled.map_err(|_| io::Error::other(TestError::NoRandom))?;
        let nonce = u64::from_ne_bytes(nonce);
        let datagram = Datagram {
            way: Way::There,
            sequence: self.sent,
            nonce,
            received_ns: 0,
            answered_ns: 0,
        };
        let bytes = &mut bytes[..usize::from(self.asked.packet_bytes)];
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

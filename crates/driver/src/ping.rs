// SPDX-License-Identifier: MIT OR Apache-2.0
//! Asks the path before data go over it: does UDP get through in both directions, with datagrams of this size, and how long
//! does it take? Both directions are sealed with keys of a flow of their own, and padded to the full size.

use crate::{Socket, StepError};
use fatpath_transport::{Cipher, Ecn, FlowSecret, HEADER_BYTES, Kind, Opener, Sealer, TAG_BYTES};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// How often it is asked again.
const EVERY: Duration = Duration::from_millis(100);

/// The end that asks.
pub struct Ping {
    sealer: Sealer,
    opener: Opener,
    /// When each left, by number.
    left: Vec<Instant>,
}

/// The end that answers.
pub struct Pong {
    sealer: Sealer,
    opener: Opener,
}

impl Ping {
    /// With a flow that is used for nothing else.
    pub fn new(flow: FlowSecret, cipher: Cipher) -> Ping {
        let (sealer, opener) = flow.of_sender(cipher);
        let left = vec![];
        Ping {
            sealer,
            opener,
            left,
        }
    }

    /// The round-trip time of datagrams of this size to `peer`; `None`: no answer came `within` this time.
    ///
    /// # Errors
    /// The socket's, or the datagrams do not fit the interface.
    pub fn ask(
        &mut self,
        socket: &mut Socket,
        peer: SocketAddr,
        datagram_bytes: u16,
        within: Duration,
    ) -> Result<Option<Duration>, StepError> {
        let begun = Instant::now();
        let mut next = begun;
        while begun.elapsed() < within {
            if next <= Instant::now() {
                next = Instant::now() + EVERY;
                let number = self.sealer.next_number();
                let datagram = padded(&mut self.sealer, Kind::Probe, number, datagram_bytes)?;
                self.left.push(Instant::now());
                socket.send(peer, Ecn::NotCapable, &datagram, datagram.len())?;
            }
            socket.wait(next.saturating_duration_since(Instant::now()))?;
            let (opener, mut answered) = (&mut self.opener, None);
            socket.receive(|_, _, datagram| {
                let opened = opener.open(datagram).ok();
                let number = opened.and_then(|opened| opened.frame.first_chunk().copied());
                answered = answered.or(number.map(u64::from_be_bytes));
            })?;
            let left = answered.and_then(|number| self.left.get(usize::try_from(number).ok()?));
            if let Some(left) = left {
                return Ok(Some(left.elapsed()));
            }
        }
        Ok(None)
    }
}

impl Pong {
    /// With the flow that the other end asks by.
    pub fn new(flow: FlowSecret, cipher: Cipher) -> Pong {
        let (sealer, opener) = flow.of_receiver(cipher);
        Pong { sealer, opener }
    }

    /// Answers what has come, each as long as it was asked, and waits for more for `wait`. Gives where the other end is,
    /// if it asked.
    ///
    /// # Errors
    /// The socket's.
    pub fn answer(
        &mut self,
        socket: &mut Socket,
        wait: Duration,
    ) -> Result<Option<SocketAddr>, StepError> {
        socket.wait(wait)?;
        let (opener, mut asked) = (&mut self.opener, vec![]);
        socket.receive(|from, _, datagram| {
            let length = datagram.len();
            if let Ok(opened) = opener.open(datagram) {
                asked.push((from, opened.header.number, length));
            }
        })?;
        for (peer, number, length) in &asked {
            let length = u16::try_from(*length).unwrap_or(u16::MAX);
            let datagram = padded(&mut self.sealer, Kind::Hello, *number, length)?;
            socket.send(*peer, Ecn::NotCapable, &datagram, datagram.len())?;
        }
        Ok(asked.last().map(|(peer, ..)| *peer))
    }
}

/// A datagram of this length that says `number`.
fn padded(
    sealer: &mut Sealer,
    kind: Kind,
    number: u64,
    datagram_bytes: u16,
) -> Result<Vec<u8>, StepError> {
    let mut datagram = vec![0; HEADER_BYTES];
    datagram.extend_from_slice(&number.to_be_bytes());
    datagram.resize(
        datagram
            .len()
            .max(usize::from(datagram_bytes).saturating_sub(TAG_BYTES)),
        0,
    );
    sealer
        .seal(kind, &mut datagram, 0)
        .map_err(|_| StepError::KeyExhausted)?;
    Ok(datagram)
}

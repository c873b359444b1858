// SPDX-License-Identifier: MIT OR Apache-2.0
//! Asks the path before data go over it: does UDP get through in both directions, with datagrams of which of some sizes, how
//! long does it take, and how fast does it let a short train of them pass? All sizes are asked for at once, so that none costs a
//! round trip. Both directions are sealed with keys of a flow of their own, and padded to the size that is asked for.

use crate::dispersion::Dispersion;
use crate::{Socket, StepError};
use fatpath_transport::{Cipher, Ecn, FlowSecret, HEADER_BYTES, Kind, Opener, Sealer, TAG_BYTES};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// How often it is asked again.
const EVERY: Duration = Duration::from_millis(100);
/// The first question is so many datagrams, one behind the other: what six windows of 10 segments (RFC 6928) are, and
/// 0.7 ms of 1 Gb/s, of which a host that is awake reads the last part after the first.
const TRAIN_PKTS: u64 = 64;
/// So many, or more, that were read after the first reading tell the rate.
const LEAST_PKTS: u64 = TRAIN_PKTS / 4;
/// The rest of the answers is waited for so long after the latest one, and after the first.
const MOST_GAP: Duration = Duration::from_millis(20);
const MOST_SPREAD: Duration = Duration::from_millis(100);

/// What a path has answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The longest of the datagrams that were answered, UDP payload.
    pub datagram_bytes: u16,
    /// The round-trip time.
    pub rtt: Duration,
    /// Rate at which the train arrived there, bits of datagrams a second; `None`: it could not be told, as where all arrived
    /// at once.
    pub there_bps: Option<u64>,
    /// That at which the answers came back: no higher than the other, as they left when the train arrived.
    pub back_bps: Option<u64>,
}

/// The end that asks.
pub struct Ping {
    sealer: Sealer,
    opener: Opener,
    begun: Instant,
    /// When each left, and its length, by number.
    left: Vec<(Instant, u16)>,
}

/// The end that answers.
pub struct Pong {
    sealer: Sealer,
    opener: Opener,
    begun: Instant,
}

/// A question, and the answers so far.
struct Question {
    /// Of the train's datagrams.
    datagram_bytes: u16,
    longest: u16,
    /// No first answer is waited for after that.
    until: Instant,
    /// When the first answer came, and the latest.
    times: Option<(Instant, Instant)>,
    rtt: Option<Duration>,
    /// To the train.
    answers: u64,
    there: Dispersion,
    back: Dispersion,
}

/// What an answer says.
struct Answer {
    /// Of the datagram that asked.
    number: u64,
    /// When that was read, by the clock of the end that answers.
    read_ns: u64,
}

impl Ping {
    /// With a flow that is used for nothing else.
    pub fn new(flow: FlowSecret, cipher: Cipher) -> Ping {
        let (sealer, opener) = flow.of_sender(cipher);
        Ping {
            sealer,
            opener,
            begun: Instant::now(),
            left: vec![],
        }
    }

    /// What the path to `peer` answers to a train of datagrams of this size, and to one of each of the `others`; `None`: no
    /// answer came `within` this time.
    ///
    /// # Errors
    /// The socket's, or no size fits the interface.
    pub fn ask(
        &mut self,
        socket: &mut Socket,
        peer: SocketAddr,
        datagram_bytes: u16,
        others: &[u16],
        within: Duration,
    ) -> Result<Option<Answered>, StepError> {
        let begun = Instant::now();
        let mut question = Question::new(datagram_bytes, begun + within);
        let (mut next, mut pkts) = (begun, TRAIN_PKTS);
        while let Some(until) = question.open_until() {
            if next <= Instant::now() && question.rtt.is_none() {
                self.ask_all(socket, peer, datagram_bytes, others, pkts)?;
                (next, pkts) = (Instant::now() + EVERY, 1);
            }
            let wake = match question.rtt {
                None => until.min(next),
                Some(_) => until,
            };
            socket.wait(wake.saturating_duration_since(Instant::now()))?;
            self.receive(socket, &mut question)?;
        }
        Ok(question.answered())
    }

    /// Others first: their answers come before the last one to the train.
    fn ask_all(
        &mut self,
        socket: &Socket,
        peer: SocketAddr,
        datagram_bytes: u16,
        others: &[u16],
        pkts: u64,
    ) -> Result<(), StepError> {
        let others = others.iter().map(|size| (*size, 1));
        let (mut fits, mut refused) = (false, None);
        for (size, pkts) in others.chain([(datagram_bytes, pkts)]) {
            match self.send(socket, peer, size, pkts) {
                Ok(()) => fits = true,
                Err(error @ StepError::TooLong(_)) => refused = Some(error),
                Err(error) => return Err(error),
            }
        }
        refused.filter(|_| !fits).map_or(Ok(()), Err)
    }

    fn send(
        &mut self,
        socket: &Socket,
        peer: SocketAddr,
        datagram_bytes: u16,
        pkts: u64,
    ) -> Result<(), StepError> {
        let numbers = self.sealer.next_number()..;
        let train = numbers.take(pkts as usize).map(|number| {
            let frame = number.to_be_bytes();
            padded(&mut self.sealer, Kind::Probe, &frame, datagram_bytes)
        });
        // One at a time: what leaves in one call may arrive as one.
        let train = train.collect::<Result<Vec<_>, _>>()?;
        self.left
            .resize(self.sealer.next_number() as usize, (Instant::now(), 0));
        let first = self.left.len() - train.len();
        for (number, datagram) in (first..).zip(train) {
            self.left[number] = (Instant::now(), datagram_bytes);
            socket.send(peer, Ecn::NotCapable, &datagram, datagram.len())?;
        }
        Ok(())
    }

    fn receive(&mut self, socket: &mut Socket, question: &mut Question) -> Result<(), StepError> {
        let (opener, mut answers) = (&mut self.opener, vec![]);
        socket.receive(|_, _, datagram| {
            let opened = opener.open(datagram).ok();
            answers.extend(opened.and_then(|opened| Answer::decode(opened.frame)));
        })?;
        let now_ns = self.begun.elapsed().as_nanos() as u64;
        for answer in &answers {
            let left = usize::try_from(answer.number).ok();
            if let Some(left) = left.and_then(|number| self.left.get(number)) {
                question.take(answer, *left, now_ns);
            }
        }
        Ok(())
    }
}

impl Question {
    fn new(datagram_bytes: u16, until: Instant) -> Question {
        Question {
            datagram_bytes,
            longest: 0,
            until,
            times: None,
            rtt: None,
            answers: 0,
            there: Dispersion::default(),
            back: Dispersion::default(),
        }
    }

    /// Until when it waits; `None`: no longer.
    fn open_until(&self) -> Option<Instant> {
        let until = match self.times {
            None => self.until,
            Some((first, latest)) => (first + MOST_SPREAD).min(latest + MOST_GAP),
        };
        let is_open = self.answers < TRAIN_PKTS && Instant::now() < until;
        is_open.then_some(until)
    }

    fn take(&mut self, answer: &Answer, (left, size): (Instant, u16), now_ns: u64) {
        let now = Instant::now();
        let (first, _) = *self.times.get_or_insert((now, now));
        self.times = Some((first, now));
        self.rtt = Some(self.rtt.unwrap_or(Duration::MAX).min(now - left));
        self.longest = self.longest.max(size);
        if size != self.datagram_bytes {
            return;
        }
        self.there.read(answer.read_ns, self.datagram_bytes.into());
        self.back.read(now_ns, self.datagram_bytes.into());
        self.answers += 1;
    }

    fn answered(&self) -> Option<Answered> {
        let least_bytes = LEAST_PKTS * u64::from(self.datagram_bytes);
        Some(Answered {
            datagram_bytes: self.longest,
            rtt: self.rtt?,
            there_bps: self.there.rate_bps(least_bytes),
            back_bps: self.back.rate_bps(least_bytes),
        })
    }
}

impl Answer {
    fn encode(&self) -> [u8; 16] {
        let mut frame = [0; 16];
        frame[..8].copy_from_slice(&self.number.to_be_bytes());
        frame[8..].copy_from_slice(&self.read_ns.to_be_bytes());
        frame
    }

    fn decode(frame: &[u8]) -> Option<Answer> {
        let (number, rest) = frame.split_first_chunk()?;
        Some(Answer {
            number: u64::from_be_bytes(*number),
            read_ns: u64::from_be_bytes(*rest.first_chunk()?),
        })
    }
}

impl Pong {
    /// With the flow that the other end asks by.
    pub fn new(flow: FlowSecret, cipher: Cipher) -> Pong {
        let (sealer, opener) = flow.of_receiver(cipher);
        Pong {
            sealer,
            opener,
            begun: Instant::now(),
        }
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
        let read_ns = self.begun.elapsed().as_nanos() as u64;
        for &(peer, number, length) in &asked {
            let answer = Answer { number, read_ns }.encode();
            let length = u16::try_from(length).unwrap_or(u16::MAX);
            let datagram = padded(&mut self.sealer, Kind::Hello, &answer, length)?;
            match socket.send(peer, Ecn::NotCapable, &datagram, datagram.len()) {
                Ok(_) | Err(StepError::TooLong(_)) => {} // what does not fit here gets no answer
                Err(error) => return Err(error),
            }
        }
        Ok(asked.last().map(|(peer, ..)| *peer))
    }
}

/// A datagram of this length that says `frame`.
fn padded(
    sealer: &mut Sealer,
    kind: Kind,
    frame: &[u8],
    datagram_bytes: u16,
) -> Result<Vec<u8>, StepError> {
    let mut datagram = vec![0; HEADER_BYTES];
    datagram.extend_from_slice(frame);
    let wanted = usize::from(datagram_bytes).saturating_sub(TAG_BYTES);
    datagram.resize(datagram.len().max(wanted), 0);
    sealer
        .seal(kind, &mut datagram, 0)
        .map_err(|_| StepError::KeyExhausted)?;
    Ok(datagram)
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The end that has the data.

use crate::{LATE, Socket, Source, StepError, socket, system};
use fatpath_tcp::SenderFigures;
use fatpath_transport::{
    CloseCode, Ecn, Extent, FlowSecret, Limit, PollError, Sender, Spec, SpecError,
};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Calls of the kernel for datagrams in one step, at most: acknowledgements are read in between.
const MOST_BATCHES: usize = 8;

/// The sending end of a connection over a socket.
pub struct SendEnd {
    socket: Socket,
    sender: Sender,
    /// Where the receiver is: as given, then where its newest datagram came from.
    peer: Option<SocketAddr>,
    /// Something that verifies came from there.
    was_heard: bool,
    begun: Instant,
    silence: Duration,
    batch: Vec<u8>,
    /// The length of its datagrams, but for the last one.
    batch_datagram_bytes: usize,
    /// Its ECN field.
    batch_ecn: Ecn,
    /// The kernel's buffer was full, and `batch` waits.
    is_held: bool,
    wakes_exactly: bool,
}

impl SendEnd {
    /// Over `socket`; `peer`: where the receiver is, if that is known, else its hello tells. `rtt`: as far as is known.
    ///
    /// # Errors
    /// What of `spec` is out of range.
    pub fn new(
        socket: Socket,
        spec: &Spec,
        secret: FlowSecret,
        peer: Option<SocketAddr>,
        rtt: Duration,
    ) -> Result<SendEnd, SpecError> {
        Ok(SendEnd {
            socket,
            sender: Sender::new(spec, secret, rtt.as_nanos() as u64, 0)?,
            peer,
            was_heard: false,
            begun: Instant::now(),
            silence: Duration::from_nanos(spec.silence_ns),
            batch: Vec::new(),
            batch_datagram_bytes: spec.datagram_bytes.into(),
            batch_ecn: Ecn::NotCapable,
            is_held: false,
            wakes_exactly: false,
        })
    }

    /// This is to be sent, after what was given before.
    pub fn send(&mut self, extent: Extent) {
        self.sender.send(extent);
    }

    /// Bytes that were given and have not left.
    pub fn unsent_bytes(&self) -> u64 {
        self.sender.unsent_bytes()
    }

    /// The lowest byte of what was given that may not have arrived: its object, and where in it; `None`: all has.
    pub fn lowest(&self) -> Option<(u32, u64)> {
        self.sender.lowest()
    }

    /// What was found lost and may leave by any flow, after all else ([`Spec::lost_last`]).
    pub(crate) fn take_lost(&mut self) -> Vec<Extent> {
        self.sender.take_lost()
    }

    /// What was given and may not have arrived, for another flow to send.
    pub(crate) fn into_rest(self) -> impl Iterator<Item = Extent> {
        self.sender.into_rest()
    }

    /// For how long the other end has owed acknowledgements and said nothing; `None`: it owes none.
    pub(crate) fn silent_for(&self) -> Option<Duration> {
        let since_ns = self.sender.silent_since_ns()?;
        Some(Duration::from_nanos(self.now_ns().saturating_sub(since_ns)))
    }

    /// The other end has said something that verifies.
    pub(crate) fn was_heard(&self) -> bool {
        self.was_heard
    }

    /// How long silence may last.
    pub(crate) fn silence(&self) -> Duration {
        self.silence
    }

    /// All that was given has arrived.
    pub fn is_done(&self) -> bool {
        self.sender.is_done()
    }

    /// Tells the receiver that this is the end; the next step sends it.
    pub fn close(&mut self, code: CloseCode) {
        self.sender.close(code);
    }

    /// Where the other end is was said, or it was heard.
    pub(crate) fn knows_peer(&self) -> bool {
        self.peer.is_some()
    }

    /// When something that verifies came last, or the program said that the other end lives; until then, when this end began.
    pub fn heard(&self) -> Instant {
        self.begun + Duration::from_nanos(self.sender.heard_ns())
    }

    /// The program knows by another way that the other end lives, which waits for a disk perhaps: it is not silent.
    pub fn peer_is_alive(&mut self) {
        let now_ns = self.now_ns();
        self.sender.peer_is_alive(now_ns);
    }

    /// What leaves from now on has this DSCP, 1 to 63, until the flow is made polite: that of flows without congestion control.
    pub fn mark(&mut self, dscp: u8) {
        self.socket.mark(Some(dscp));
    }

    /// Congestion control is back at once, and the mark ends.
    pub fn be_polite_now(&mut self) {
        self.sender.be_polite_now();
        self.socket.mark(None);
    }

    /// UDP payload of a full datagram, as far as the path is known to carry it.
    pub fn datagram_bytes(&self) -> u16 {
        self.sender.datagram_bytes()
    }

    /// Datagrams that met congestion and were marked, as far as the receiver has told.
    pub fn marked_pkts(&self) -> u64 {
        self.sender.marked_pkts()
    }

    /// How TCP stands.
    pub fn figures(&self) -> SenderFigures {
        self.sender.figures()
    }

    /// What keeps more from leaving, after a step that sent all that could.
    pub(crate) fn limit(&self) -> Limit {
        match self.is_held {
            true => Limit::Path, // which begins with the device
            false => self.sender.limit(),
        }
    }

    fn now_ns(&self) -> u64 {
        self.begun.elapsed().as_nanos() as u64
    }

    /// Takes acknowledgements, sends what may leave, and waits for at most `wait` when neither was there to do.
    ///
    /// # Errors
    /// The connection cannot go on.
    pub fn step(&mut self, source: &mut impl Source, wait: Duration) -> Result<(), StepError> {
        let begun = Instant::now();
        let has_worked = self.work(source)?;
        if begun.elapsed() >= LATE {
            self.peer_is_alive(); // it may have spoken while the source stood
        }
        if !has_worked {
            wait_all(std::slice::from_mut(self), wait)?;
        }
        Ok(())
    }

    /// A step without its waiting. Says whether there was anything to do.
    pub(crate) fn work(&mut self, source: &mut impl Source) -> Result<bool, StepError> {
        let received = self.receive()?;
        let now_ns = self.now_ns();
        if self.sender.is_abandoned(now_ns) {
            let (peer, silence_s) = (self.peer, self.silence.as_secs());
            return Err(StepError::Silent { peer, silence_s });
        }
        if self.sender.poll_timeout().is_some_and(|at| at <= now_ns) {
            self.sender.handle_timeout(now_ns);
        }
        let sent = self.transmit(source)?;
        if let Some(code) = self.sender.closed_by_peer() {
            return Err(StepError::Closed(code));
        }
        Ok(received > 0 || sent)
    }

    fn receive(&mut self) -> Result<usize, StepError> {
        let now_ns = self.begun.elapsed().as_nanos() as u64;
        let (sender, peer) = (&mut self.sender, &mut self.peer);
        let was_heard = &mut self.was_heard;
        let keeps_peer = self.socket.is_marked() && peer.is_some();
        let count = self.socket.receive(|from, _, datagram| {
            // What does not verify changes nothing.
            if sender.handle_datagram(now_ns, datagram).is_ok() {
                // The permission of marked datagrams is for one place.
                if !keeps_peer {
                    *peer = Some(from);
                }
                *was_heard = true;
            }
        })?;
        Ok(count)
    }

    /// Says whether anything left.
    fn transmit(&mut self, source: &mut impl Source) -> Result<bool, StepError> {
        let Some(peer) = self.peer else {
            return Ok(false);
        };
        let mut sent = false;
        for _ in 0..MOST_BATCHES {
            if !self.is_held {
                self.fill(source)?;
            }
            if self.batch.is_empty() {
                break;
            }
            self.is_held = !self.send_batch(peer)?;
            if self.is_held {
                break;
            }
            self.batch.clear();
            sent = true;
        }
        Ok(sent)
    }

    /// Says whether the kernel took it. What is too long for the device is lost, and shorter datagrams follow.
    fn send_batch(&mut self, peer: SocketAddr) -> Result<bool, StepError> {
        let length = self.batch_datagram_bytes;
        match self.socket.send(peer, self.batch_ecn, &self.batch, length) {
            Err(StepError::TooLong(length)) => {
                let (now_ns, bytes) = (self.now_ns(), u16::try_from(length).unwrap_or(u16::MAX));
                match self.sender.too_long(now_ns, bytes) {
                    true => Ok(true),
                    false => Err(StepError::TooLong(length)),
                }
            }
            taken => taken,
        }
    }

    /// A batch: datagrams of full length, and after them one that may be shorter; or one that asks the path for a longer one.
    fn fill(&mut self, source: &mut impl Source) -> Result<(), StepError> {
        let now_ns = self.now_ns();
        self.batch_ecn = self.sender.ecn();
        let full = usize::from(self.sender.datagram_bytes());
        let most = self.socket.batch_pkts(full) * full;
        self.batch_datagram_bytes = full;
        while self.batch.len() + full <= most {
            let begin = self.batch.len();
            let read = |run: &_, into: &mut [u8]| {
                source.read(run, into);
                Ok::<(), Infallible>(())
            };
            let left = self.sender.poll_transmit(now_ns, &mut self.batch, read);
            match left {
                Ok(true) if self.batch.len() - begin == full => {}
                Ok(_) => {
                    // A longer one is alone.
                    self.batch_datagram_bytes = full.max(self.batch.len() - begin);
                    break;
                }
                Err(PollError::KeyExhausted(_)) => return Err(StepError::KeyExhausted),
                Err(PollError::Read(never)) => match never {},
            }
        }
        Ok(())
    }

    /// Until something is to be done though nothing arrives.
    fn due_in(&self) -> Duration {
        let due_ns = self.sender.poll_timeout().unwrap_or(u64::MAX);
        Duration::from_nanos(due_ns.saturating_sub(self.now_ns()))
    }
}

/// Until one of these, which belong to this thread, has something to do, or this much time has passed.
pub(crate) fn wait_all(ends: &mut [SendEnd], most: Duration) -> Result<(), StepError> {
    for end in ends.iter_mut() {
        if !std::mem::replace(&mut end.wakes_exactly, true) {
            system::wake_exactly();
        }
    }
    let due = ends.iter().map(SendEnd::due_in).min().unwrap_or(most);
    let sockets = ends.iter().map(|end| (&end.socket, end.is_held));
    Ok(socket::wait(sockets, due.min(most))?)
}

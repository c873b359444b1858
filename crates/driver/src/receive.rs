// SPDX-License-Identifier: MIT OR Apache-2.0
//! The end that writes the data.

use crate::{LATE, Sink, Socket, StepError, socket};
use fatpath_tcp::ReceiverFigures;
use fatpath_transport::{CloseCode, Ecn, FlowSecret, Receiver, Spec, SpecError};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// How often a receiver says where it is until the first datagram arrives.
const HELLO_EVERY: Duration = Duration::from_millis(200);

/// The receiving end of a connection over a socket.
pub struct RecvEnd {
    socket: Socket,
    receiver: Receiver,
    peer: Option<SocketAddr>,
    begun: Instant,
    /// When the next hello is due; `None`: none.
    hello_at: Option<Instant>,
    datagram_bytes: usize,
    silence_s: u64,
    acks: Vec<u8>,
}

impl RecvEnd {
    /// Over `socket`; `peer`: where the sender is, if this is the end that knows it; then hellos open the way.
    ///
    /// # Errors
    /// What of `spec` is out of range.
    pub fn new(
        socket: Socket,
        spec: &Spec,
        secret: FlowSecret,
        peer: Option<SocketAddr>,
        rtt: Duration,
    ) -> Result<RecvEnd, SpecError> {
        let begun = Instant::now();
        Ok(RecvEnd {
            socket,
            receiver: Receiver::new(spec, secret, rtt.as_nanos() as u64, 0)?,
            peer,
            begun,
            hello_at: peer.map(|_| begun),
            datagram_bytes: spec.datagram_bytes.into(),
            silence_s: spec.silence_ns / 1_000_000_000,
            acks: Vec::new(),
        })
    }

    /// Whether the sender owes data now: only then its silence is an error.
    pub fn expect_data(&mut self, is_expected: bool) {
        let now_ns = self.now_ns();
        self.receiver.expect_data(now_ns, is_expected);
    }

    /// Ends the connection; the next step tells the sender.
    pub fn close(&mut self, code: CloseCode) {
        self.receiver.close(code);
    }

    /// The sender has ended the connection.
    pub fn closed_by_peer(&self) -> Option<CloseCode> {
        self.receiver.closed_by_peer()
    }

    /// When something that verifies came last, or the program said that the other end lives; until then, when this end began.
    pub fn heard(&self) -> Instant {
        self.begun + Duration::from_nanos(self.receiver.heard_ns())
    }

    /// The program knows by another way that the other end lives, which waits for a disk perhaps: it is not silent.
    pub fn peer_is_alive(&mut self) {
        let now_ns = self.now_ns();
        self.receiver.peer_is_alive(now_ns);
    }

    /// How TCP stands.
    pub fn figures(&self) -> ReceiverFigures {
        self.receiver.figures()
    }

    fn now_ns(&self) -> u64 {
        self.begun.elapsed().as_nanos() as u64
    }

    /// Takes what arrived, gives it to `sink`, acknowledges it, and waits for at most `wait` when nothing had arrived.
    ///
    /// # Errors
    /// The connection cannot go on.
    pub fn step(&mut self, sink: &mut impl Sink, wait: Duration) -> Result<(), StepError> {
        if !self.work(0, sink)? {
            wait_all(std::slice::from_ref(self), wait)?;
        }
        Ok(())
    }

    /// A step without its waiting, of this of several flows. Says whether anything had arrived.
    pub(crate) fn work(&mut self, flow: usize, sink: &mut impl Sink) -> Result<bool, StepError> {
        let received = self.receive(flow, sink)?;
        self.receiver.set_held_bytes(sink.held_bytes(flow));
        let now_ns = self.now_ns();
        if self.receiver.is_abandoned(now_ns) {
            let (peer, silence_s) = (self.peer, self.silence_s);
            return Err(StepError::Silent { peer, silence_s });
        }
        if self.receiver.poll_timeout().is_some_and(|at| at <= now_ns) {
            self.receiver.handle_timeout(now_ns);
        }
        self.greet();
        self.transmit()?;
        Ok(received > 0)
    }

    fn receive(&mut self, flow: usize, sink: &mut impl Sink) -> Result<usize, StepError> {
        let now_ns = self.begun.elapsed().as_nanos() as u64;
        let (receiver, peer, hello_at) = (&mut self.receiver, &mut self.peer, &mut self.hello_at);
        let mut writes = Vec::new();
        let count = self.socket.receive(|from, ecn, datagram| {
            // What does not verify changes nothing.
            if let Ok(received) = receiver.handle_datagram(now_ns, ecn, datagram) {
                *peer = Some(from);
                *hello_at = None;
                writes.extend(received.writes);
            }
        })?;
        if !writes.is_empty() {
            sink.write(flow, &writes);
        }
        if self.now_ns() - now_ns >= LATE.as_nanos() as u64 {
            self.peer_is_alive(); // it may have spoken while the sink stood
        }
        Ok(count)
    }

    fn greet(&mut self) {
        let now = Instant::now();
        if self.hello_at.is_some_and(|at| at <= now) {
            self.receiver.say_hello();
            self.hello_at = Some(now + HELLO_EVERY);
        }
    }

    fn transmit(&mut self) -> Result<(), StepError> {
        let (Some(peer), now_ns) = (self.peer, self.now_ns()) else {
            return Ok(());
        };
        while self
            .receiver
            .poll_transmit(now_ns, &mut self.acks)
            .map_err(|_| StepError::KeyExhausted)?
        {
            // One that the kernel's buffer has no room for is lost, as on the path.
            self.socket
                .send(peer, Ecn::NotCapable, &self.acks, self.datagram_bytes)?;
            self.acks.clear();
        }
        Ok(())
    }

    /// Until something is to be done though nothing arrives.
    fn due_in(&self) -> Duration {
        let due_ns = self.receiver.poll_timeout().unwrap_or(u64::MAX);
        let due = Duration::from_nanos(due_ns.saturating_sub(self.now_ns()));
        let hello = self.hello_at.map_or(HELLO_EVERY, |at| {
            at.saturating_duration_since(Instant::now())
        });
        due.min(hello)
    }
}

/// Until something arrives at one of these, or is to be done, or this much time has passed.
pub(crate) fn wait_all(ends: &[RecvEnd], most: Duration) -> Result<(), StepError> {
    let due = ends.iter().map(RecvEnd::due_in).min().unwrap_or(most);
    let sockets = ends.iter().map(|end| (&end.socket, false));
    Ok(socket::wait(sockets, due.min(most))?)
}

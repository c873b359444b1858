// SPDX-License-Identifier: MIT OR Apache-2.0
//! Carries bytes between a connection and two pipes, both ways, until both have ended. No more waits in memory than a few
//! records each way: an end that does not read makes the other wait.

use crate::Peer;
use crate::connection::{timespec, unless_blocked};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// The payload of a record of TLS (RFC 8446, 5.1).
const RECORD_BYTES: usize = 16 << 10;
/// How long the other end has to take the last bytes, and to end too.
const LINGER: Duration = Duration::from_secs(5);

impl Peer {
    /// Carries what comes from `from` to the other end, and what that says to `to`.
    ///
    /// # Errors
    /// The connection broke, or what came over it does not verify.
    pub fn relay(self, from: OwnedFd, to: OwnedFd) -> io::Result<()> {
        rustix::io::ioctl_fionbio(&to, true)?;
        let mut relay = Relay {
            peer: self,
            from: Some(from),
            to: Some(to),
            waiting: vec![],
            is_heard_out: false,
            end: None,
        };
        relay.open()?; // what came together with the welcome
        while !relay.is_done() {
            let ready = relay.wait()?;
            relay.take_ours(ready)?;
            relay.write_socket(ready)?;
            relay.read_socket(ready)?;
            relay.give_theirs();
        }
        Ok(())
    }
}

struct Relay {
    peer: Peer,
    /// `None`: it has ended.
    from: Option<OwnedFd>,
    /// `None`: nobody listens, or nothing more comes.
    to: Option<OwnedFd>,
    /// For `to`.
    waiting: Vec<u8>,
    /// The other end says nothing more.
    is_heard_out: bool,
    /// When to wait no longer for the other end.
    end: Option<Instant>,
}

/// What may go on.
#[derive(Clone, Copy)]
struct Ready {
    socket: PollFlags,
    ours: bool,
}

/// Also what broke: reading it says so.
const READABLE: PollFlags = PollFlags::IN.union(PollFlags::HUP).union(PollFlags::ERR);

impl Relay {
    fn is_done(&self) -> bool {
        let is_late = self.end.is_some_and(|end| Instant::now() >= end);
        let is_said = self.from.is_none() && !self.peer.tls.wants_write();
        is_late || (is_said && self.is_heard_out && self.waiting.is_empty())
    }

    fn wait(&self) -> io::Result<Ready> {
        let has_to_write = self.peer.tls.wants_write();
        let mut events = PollFlags::empty();
        events.set(PollFlags::IN, self.waiting.is_empty() && !self.is_heard_out);
        events.set(PollFlags::OUT, has_to_write);
        let ours = self.from.as_ref().filter(|_| !has_to_write);
        let theirs = self.to.as_ref().filter(|_| !self.waiting.is_empty());
        let rest = self
            .end
            .map(|end| end.saturating_duration_since(Instant::now()));
        let mut polled = Vec::with_capacity(3);
        if !events.is_empty() {
            polled.push(PollFd::new(&self.peer.socket, events));
        }
        polled.extend(ours.map(|from| PollFd::new(from, PollFlags::IN)));
        polled.extend(theirs.map(|to| PollFd::new(to, PollFlags::OUT)));
        match poll(&mut polled, rest.map(timespec).as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut flags = polled.iter().map(PollFd::revents);
        let socket = match events.is_empty() {
            true => PollFlags::empty(),
            false => flags.next().unwrap_or(PollFlags::empty()),
        };
        let ours = ours.is_some() && flags.next().is_some_and(|flags| !flags.is_empty());
        Ok(Ready { socket, ours })
    }

    fn take_ours(&mut self, ready: Ready) -> io::Result<()> {
        let Some(from) = self.from.as_ref().filter(|_| ready.ours) else {
            return Ok(());
        };
        let mut bytes = [0; RECORD_BYTES];
        match rustix::io::read(from, &mut bytes) {
            Ok(0) => {
                self.from = None;
                self.end = Some(Instant::now() + LINGER);
                self.peer.tls.send_close_notify();
            }
            Ok(count) => self.peer.tls.writer().write_all(&bytes[..count])?,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn write_socket(&mut self, ready: Ready) -> io::Result<()> {
        if ready.socket.contains(PollFlags::OUT) {
            unless_blocked(self.peer.tls.write_tls(&mut self.peer.socket))?;
        }
        if self.from.is_none() && !self.peer.tls.wants_write() {
            let _ = self.peer.socket.shutdown(Shutdown::Write); // it may be gone
        }
        Ok(())
    }

    fn read_socket(&mut self, ready: Ready) -> io::Result<()> {
        let may_read = self.waiting.is_empty() && !self.is_heard_out;
        if !may_read || !ready.socket.intersects(READABLE) {
            return Ok(());
        }
        if unless_blocked(self.peer.tls.read_tls(&mut self.peer.socket))? == Some(0) {
            self.is_heard_out = true;
        }
        self.open()
    }

    /// Opens what was read of the socket.
    fn open(&mut self) -> io::Result<()> {
        let read = self.peer.tls.process_new_packets();
        let state = read.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        self.is_heard_out |= state.peer_has_closed();
        let mut bytes = vec![0; state.plaintext_bytes_to_read()];
        self.peer.tls.reader().read_exact(&mut bytes)?;
        self.waiting = bytes;
        Ok(())
    }

    /// What nobody listens to is dropped.
    fn give_theirs(&mut self) {
        let Some(to) = &self.to else {
            self.waiting.clear();
            return;
        };
        match self.waiting.is_empty() {
            true if self.is_heard_out => self.to = None,
            true => {}
            false => match rustix::io::write(to, &self.waiting) {
                Ok(count) => drop(self.waiting.drain(..count)),
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(_) => self.to = None,
            },
        }
    }
}

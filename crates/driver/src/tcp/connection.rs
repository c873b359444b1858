// SPDX-License-Identifier: MIT OR Apache-2.0
//! One connection, whose other end has shown that it has the keys.

use super::Role;
use crate::StepError;
use crate::socket::wait_for;
use crate::system::{self, ConnectionFigures};
use crate::waits::Chronograph;
use fatpath_transport::{
    Extent, KeyExhausted, MOST_RECORD_BYTES, Record, RecordOpener, RecordSealer,
};
use rustix::event::{PollFd, PollFlags};
use rustix::net::sockopt::set_tcp_nodelay;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Room for what one call reads. The sending end reads hellos.
const INBOX_BYTES: usize = 4 * MOST_RECORD_BYTES;
/// What the kernel takes of data beyond those that may leave now.
const NOT_SENT_BYTES: u32 = 256 << 10;

/// A connection that does not block.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    peer: SocketAddr,
    sealer: RecordSealer,
    opener: RecordOpener,
    inbox: Vec<u8>,
    /// What of the inbox has arrived, and was not opened.
    arrived: std::ops::Range<usize>,
    outbox: Vec<u8>,
    /// Bytes of the outbox that the kernel has taken.
    taken: usize,
    /// The record that the last hello told of as the next.
    told: u64,
    /// When a record that verifies came last, or the program said that the other end lives; before, when it began.
    heard: Instant,
    /// When another record became the oldest of those that may not have arrived.
    moved: Instant,
}

impl Connection {
    pub(super) fn new(
        stream: TcpStream,
        peer: SocketAddr,
        (sealer, opener): (RecordSealer, RecordOpener),
        role: Role,
    ) -> io::Result<Connection> {
        stream.set_nonblocking(true)?;
        set_tcp_nodelay(&stream, true)?;
        system::bound_unsent(&stream, NOT_SENT_BYTES)?;
        let inbox_bytes = match role {
            Role::Sends => MOST_RECORD_BYTES,
            Role::Receives => INBOX_BYTES,
        };
        Ok(Connection {
            stream,
            peer,
            sealer,
            opener,
            inbox: vec![0; inbox_bytes],
            arrived: 0..0,
            outbox: Vec::new(),
            taken: 0,
            told: 0,
            heard: Instant::now(),
            moved: Instant::now(),
        })
    }

    /// Where the other end is.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// The kernel's round-trip time.
    pub fn rtt(&self) -> Duration {
        self.figures()
            .map_or(Duration::ZERO, |figures| figures.srtt)
    }

    /// Where the kernel says that its time went.
    pub(super) fn chronograph(&self) -> Chronograph {
        let figures = self.figures();
        figures.map_or(Chronograph::default(), |figures| figures.chronograph)
    }

    pub(super) fn figures(&self) -> Option<ConnectionFigures> {
        system::figures(&self.stream)
    }

    /// No more than this leaves in a second.
    pub(super) fn limit(&self, bytes_per_s: u64) -> io::Result<()> {
        system::pace(&self.stream, bytes_per_s)
    }

    /// The law of this name, where the kernel has it and the user may choose it.
    pub(super) fn prefer_law(&self, name: &str) {
        let _ = system::set_law(&self.stream, name); // the host's own stays
    }

    /// Reads what has arrived, by one call; says whether there was anything.
    pub(super) fn read(&mut self) -> Result<bool, StepError> {
        // What is left of a record begins the inbox: there is room for more than that.
        self.inbox.copy_within(self.arrived.clone(), 0);
        self.arrived = 0..self.arrived.len();
        match (&self.stream).read(&mut self.inbox[self.arrived.end..]) {
            Ok(0) => Err(StepError::Ended(self.peer)),
            Ok(count) => {
                self.arrived.end += count;
                Ok(true)
            }
            Err(error) => self.passing(error).map(|()| false),
        }
    }

    /// Opens the records that have arrived whole.
    pub(super) fn open<'c>(
        &'c mut self,
        mut take: impl FnMut(Record<'c>),
    ) -> Result<(), StepError> {
        let peer = self.peer;
        let refused = |refused| StepError::Refused(peer, refused);
        let mut rest = &mut self.inbox[self.arrived.clone()];
        while let Some(length) = RecordOpener::whole(rest).map_err(refused)? {
            let (record, after) = rest.split_at_mut(length);
            let record = self.opener.open(record).map_err(refused)?;
            if let Record::Hello(next) = record {
                let oldest = self.sealer.oldest();
                self.sealer.arrived(next).map_err(refused)?;
                if self.sealer.oldest() != oldest {
                    self.moved = Instant::now();
                }
            }
            take(record);
            self.heard = Instant::now();
            rest = after;
            self.arrived.start += length;
        }
        self.sealer.heard(self.opener.phase());
        Ok(())
    }

    pub(super) fn heard(&self) -> Instant {
        self.heard
    }

    /// How long nothing has come back, or for how much more than that nothing has gone out: where only short segments arrive
    /// there, hellos come and data do not leave.
    pub(super) fn silent_for(&self) -> Duration {
        let silent_for = self.heard.elapsed();
        // After an outage TCP waits for as long again before it sends the next segment.
        let stuck_for = self.moved.elapsed() / 2;
        let is_stuck = stuck_for > silent_for && self.sealer.oldest().is_some();
        match is_stuck && self.figures().is_some_and(|figures| figures.timeouts > 0) {
            true => stuck_for,
            false => silent_for,
        }
    }

    /// The program knows by another way that the other end lives.
    pub(super) fn peer_is_alive(&mut self) {
        self.heard = Instant::now();
    }

    /// Nothing waits for the kernel.
    pub(super) fn is_idle(&self) -> bool {
        self.outbox.is_empty()
    }

    /// Records that have arrived, and were not told of.
    pub(super) fn untold(&self) -> u64 {
        self.opener.next() - self.told
    }

    /// Appends a hello.
    pub(super) fn greet(&mut self) -> Result<(), StepError> {
        self.told = self.opener.next();
        let hello = self.sealer.hello(self.told, &mut self.outbox);
        hello.map_err(|_| StepError::KeyExhausted)
    }

    /// Segments of more bytes, their headers among them, do not arrive here.
    #[cfg(test)]
    pub(super) fn refuse_longer_than(&self, bytes: u32) {
        // linux/bpf_common.h: the length is loaded; where it is greater, nothing is taken, and else all.
        let filter = [
            (0x80, 0, 0, 0),
            (0x25, 0, 1, bytes),
            (6, 0, 0, 0),
            (6, 0, 0, u32::MAX),
        ];
        let filter = filter.map(|(code, jt, jf, k)| socket2::SockFilter::new(code, jt, jf, k));
        let socket = socket2::SockRef::from(&self.stream);
        socket.attach_filter(&filter).expect("the filter is sound");
    }

    /// The lowest byte that may not have arrived.
    pub(super) fn lowest(&self) -> Option<(u32, u64)> {
        self.sealer.lowest()
    }

    /// Ends it; gives what may not have arrived.
    pub(super) fn into_rest(self) -> impl Iterator<Item = Extent> {
        // What the kernel has of it is of no use any more.
        let _ = socket2::SockRef::from(&self.stream).set_linger(Some(Duration::ZERO));
        self.sealer.into_rest()
    }

    /// Appends what is to leave.
    pub(super) fn seal(
        &mut self,
        seal: impl FnOnce(&mut RecordSealer, &mut Vec<u8>) -> Result<bool, KeyExhausted>,
    ) -> Result<bool, StepError> {
        if self.sealer.oldest().is_none() {
            self.moved = Instant::now();
        }
        seal(&mut self.sealer, &mut self.outbox).map_err(|_| StepError::KeyExhausted)
    }

    pub(super) fn outbox_bytes(&self) -> usize {
        self.outbox.len()
    }

    /// Gives the kernel what it takes; says whether it took anything.
    pub(super) fn write(&mut self) -> Result<bool, StepError> {
        match (&self.stream).write(&self.outbox[self.taken..]) {
            Ok(count) => {
                self.taken += count;
                if self.taken == self.outbox.len() {
                    self.taken = 0;
                    self.outbox.clear();
                }
                Ok(count > 0)
            }
            Err(error) => self.passing(error).map(|()| false),
        }
    }

    fn passing(&self, error: io::Error) -> Result<(), StepError> {
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::Interrupted => Ok(()),
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => Err(StepError::Ended(self.peer)),
            _ => Err(StepError::Connection(self.peer, error)),
        }
    }
}

/// Does `work` on each connection. Says whether one had anything to do, and which have ended while others go on.
pub(super) fn each(
    connections: &mut Vec<Connection>,
    mut work: impl FnMut(&mut Connection) -> Result<bool, StepError>,
) -> Result<(bool, Vec<Connection>), StepError> {
    let (mut has_worked, mut ended, mut place) = (false, vec![], 0);
    while let Some(connection) = connections.get_mut(place) {
        match work(connection) {
            Ok(worked) => {
                has_worked |= worked;
                place += 1;
            }
            Err(StepError::Ended(_) | StepError::Connection(..)) if connections.len() > 1 => {
                ended.push(connections.swap_remove(place));
            }
            Err(error) => return Err(error),
        }
    }
    Ok((has_worked, ended))
}

/// When the one that was heard last was; there is one at least.
pub(super) fn newest(connections: &[Connection]) -> Instant {
    let heard = connections.iter().map(Connection::heard);
    heard.max().unwrap_or_else(Instant::now)
}

/// Until something arrives, if that is to be read, or there is room for what waits, or this much time has passed.
pub(super) fn wait(connections: &[Connection], most: Duration, reads: bool) -> io::Result<()> {
    let mut fds: Vec<_> = connections
        .iter()
        .filter_map(|connection| {
            let mut events = PollFlags::empty();
            events.set(PollFlags::IN, reads);
            events.set(PollFlags::OUT, !connection.is_idle());
            // One that is waited for in no way would end the wait by its errors.
            (!events.is_empty()).then(|| PollFd::new(&connection.stream, events))
        })
        .collect();
    wait_for(&mut fds, most)
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Connections begin with a hello of each end, sealed: what does not begin so is closed, and anybody may try.

use super::{Connection, Role};
use crate::socket::{BindError, on_free_port};
use fatpath_peer::first_of_most;
use fatpath_transport::{Cipher, FlowSecret, HELLO_BYTES, Record, RecordOpener, RecordSealer};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

/// Connections that have not said their hello, at most, and how long they may take. When there are more, the oldest goes of
/// the network that has most: a stranger takes the places of its own.
const MOST_WAITING: usize = 128;
const HELLO_WITHIN: Duration = Duration::from_secs(10);

/// Waits for the other end's connections.
pub struct Listener {
    listener: TcpListener,
    role: Role,
    waiting: VecDeque<Waiting>,
    /// The keys of connections that have not come.
    keys: Vec<(RecordSealer, RecordOpener)>,
    verified: Vec<Connection>,
}

/// A connection that has not said who it is.
struct Waiting {
    stream: TcpStream,
    peer: SocketAddr,
    since: Instant,
    hello: [u8; HELLO_BYTES],
    arrived: usize,
}

impl Listener {
    /// On a free port of `ports`, sought from `first` on.
    ///
    /// # Errors
    /// None is free, or the kernel's.
    pub fn bind(
        address: IpAddr,
        ports: RangeInclusive<u16>,
        first: u16,
    ) -> Result<Listener, BindError> {
        let listener = on_free_port(address, ports, first, TcpListener::bind)?;
        let nonblocking = listener.set_nonblocking(true);
        nonblocking.map_err(|error| BindError::Io(address, error))?;
        Ok(Listener {
            listener,
            role: Role::Receives,
            waiting: VecDeque::new(),
            keys: vec![],
            verified: vec![],
        })
    }

    /// These connections may come: one by each flow.
    #[must_use]
    pub fn expecting(mut self, flows: Vec<FlowSecret>, role: Role, cipher: Cipher) -> Listener {
        let keys = flows.into_iter().map(|flow| role.keys(flow, cipher));
        (self.role, self.keys) = (role, keys.collect());
        self
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The kernel's.
    pub fn port(&self) -> io::Result<u16> {
        Ok(self.listener.local_addr()?.port())
    }

    /// Takes what has come, and answers the hellos that verify. Says how many connections there are.
    ///
    /// # Errors
    /// The kernel's.
    pub fn poll(&mut self) -> io::Result<usize> {
        for _ in 0..MOST_WAITING {
            match self.listener.accept() {
                Ok((stream, peer)) => self.wait_for(stream, peer)?,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // One that was given up before it was taken is no error of this end.
                Err(_) => {}
            }
        }
        let mut still = VecDeque::new();
        while let Some(mut waiting) = self.waiting.pop_front() {
            if waiting.since.elapsed() >= HELLO_WITHIN {
                continue;
            }
            match waiting.read() {
                Ok(true) => self.judge(waiting)?,
                Ok(false) => still.push_back(waiting),
                Err(_) => {} // it is gone
            }
        }
        self.waiting = still;
        Ok(self.verified.len())
    }

    fn wait_for(&mut self, stream: TcpStream, peer: SocketAddr) -> io::Result<()> {
        stream.set_nonblocking(true)?;
        self.waiting.push_back(Waiting {
            stream,
            peer,
            since: Instant::now(),
            hello: [0; HELLO_BYTES],
            arrived: 0,
        });
        if self.waiting.len() > MOST_WAITING {
            let addresses = self.waiting.iter().map(|waiting| waiting.peer.ip());
            first_of_most(addresses).and_then(|place| self.waiting.remove(place));
        }
        Ok(())
    }

    /// What does not verify is closed, and its keys wait for another.
    fn judge(&mut self, mut waiting: Waiting) -> io::Result<()> {
        let hello = &mut waiting.hello;
        let place = self.keys.iter_mut().position(|(_, opener)| {
            opener.is_named_by(hello)
                && matches!(opener.open(&mut hello.clone()), Ok(Record::Hello(_)))
        });
        let Some(place) = place else { return Ok(()) };
        let mut keys = self.keys.remove(place);
        let mut answer = vec![];
        if keys.0.hello(keys.1.next(), &mut answer).is_err()
            || waiting.stream.write_all(&answer).is_err()
        {
            return Ok(()); // it is gone
        }
        let connection = Connection::new(waiting.stream, waiting.peer, keys, self.role)?;
        self.verified.push(connection);
        Ok(())
    }

    /// The connections, and no more come.
    pub fn into_connections(self) -> Vec<Connection> {
        self.verified
    }
}

impl Waiting {
    /// Says whether all of the hello has come.
    fn read(&mut self) -> io::Result<bool> {
        match self.stream.read(&mut self.hello[self.arrived..]) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                self.arrived += count;
                Ok(self.arrived == HELLO_BYTES)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Connects to `peer` by a flow that is used for nothing else, `within` this time.
///
/// # Errors
/// It does not answer, or not as the other end would.
pub fn connect(
    peer: SocketAddr,
    flow: FlowSecret,
    role: Role,
    cipher: Cipher,
    within: Duration,
) -> io::Result<Connection> {
    let end = Instant::now() + within;
    let mut stream = TcpStream::connect_timeout(&peer, within)?;
    let (mut sealer, mut opener) = role.keys(flow, cipher);
    let mut hello = vec![];
    sealer
        .hello(opener.next(), &mut hello)
        .map_err(io::Error::other)?;
    stream.write_all(&hello)?;
    let mut answer = [0; HELLO_BYTES];
    read_until(&mut stream, &mut answer, end)?;
    match opener.open(&mut answer) {
        Ok(Record::Hello(_)) => Connection::new(stream, peer, (sealer, opener), role),
        Ok(_) => Err(ErrorKind::InvalidData.into()),
        Err(refused) => Err(io::Error::new(ErrorKind::InvalidData, refused)),
    }
}

/// All of `answer`, however it is cut, before `end`.
fn read_until(stream: &mut TcpStream, mut answer: &mut [u8], end: Instant) -> io::Result<()> {
    while !answer.is_empty() {
        let rest = end.saturating_duration_since(Instant::now());
        if rest.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(rest))?;
        match stream.read(answer) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => answer = &mut answer[count..],
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

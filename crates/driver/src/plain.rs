// SPDX-License-Identifier: MIT OR Apache-2.0
//! A connection of the kernel's TCP as any program has it: zeros go over it, and the kernel is asked what has been
//! acknowledged.
//!
//! Start with [`PlainSendEnd`].

use crate::system;
use fatpath_tcp::SenderFigures;
use rustix::event::{PollFd, PollFlags};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, ErrorKind, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// What one call gives the kernel, or takes.
static PIECE: [u8; 64 << 10] = [0; 64 << 10];
/// How often the kernel is asked whether all has been acknowledged, which it does not tell by itself.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// What a program asks of its socket; `None`: nothing, so that the host and the policy decide.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SocketRequests {
    /// TCP_CONGESTION.
    pub law: Option<String>,
    /// TCP_MAXSEG, options of TCP included.
    pub mss_bytes: Option<u32>,
    /// SO_SNDBUF and SO_RCVBUF, bytes.
    pub window_bytes: Option<u32>,
    /// SO_MAX_PACING_RATE, bytes a second.
    pub pacing_bytes_per_s: Option<u64>,
}

impl SocketRequests {
    fn socket(&self, peer: SocketAddr) -> io::Result<Socket> {
        let socket = Socket::new(Domain::for_address(peer), Type::STREAM, Some(Protocol::TCP))?;
        if let Some(bytes) = self.window_bytes {
            socket.set_send_buffer_size(bytes as usize)?;
            socket.set_recv_buffer_size(bytes as usize)?;
        }
        if let Some(bytes) = self.mss_bytes {
            socket.set_tcp_mss(bytes)?;
        }
        if let Some(law) = &self.law {
            system::set_law(&socket, law)?;
        }
        if let Some(bytes_per_s) = self.pacing_bytes_per_s {
            system::pace(&socket, bytes_per_s)?;
        }
        Ok(socket)
    }

    /// Waits for connections on this address.
    ///
    /// # Errors
    /// The kernel's.
    pub fn listen(&self, address: SocketAddr, most_waiting: u32) -> io::Result<TcpListener> {
        let socket = self.socket(address)?;
        socket.set_reuse_address(true)?;
        socket.bind(&address.into())?;
        socket.listen(i32::try_from(most_waiting).unwrap_or(i32::MAX))?;
        Ok(socket.into())
    }
}

/// The end that has the data.
#[derive(Debug)]
pub struct PlainSendEnd {
    stream: TcpStream,
    /// Given, and not yet taken by the kernel.
    left_bytes: u64,
}

impl PlainSendEnd {
    /// Begins to connect, and does not wait.
    ///
    /// # Errors
    /// The kernel's.
    pub fn connect(peer: SocketAddr, requests: &SocketRequests) -> io::Result<PlainSendEnd> {
        let socket = requests.socket(peer)?;
        socket.set_nonblocking(true)?;
        match socket.connect(&peer.into()) {
            Err(error)
                if error.raw_os_error() != Some(rustix::io::Errno::INPROGRESS.raw_os_error()) =>
            {
                return Err(error);
            }
            _ => {}
        }
        Ok(PlainSendEnd {
            stream: socket.into(),
            left_bytes: 0,
        })
    }

    /// Until it is connected, `within` this time.
    ///
    /// # Errors
    /// It is refused, or nobody answers.
    pub fn wait_connected(&self, within: Duration) -> io::Result<()> {
        let end = Instant::now() + within;
        while !wait(
            &self.stream,
            PollFlags::OUT,
            end.saturating_duration_since(Instant::now()),
        )? {
            if Instant::now() >= end {
                return Err(ErrorKind::TimedOut.into());
            }
        }
        self.stream.take_error()?.map_or(Ok(()), Err)
    }

    /// Its own address.
    ///
    /// # Errors
    /// The kernel's.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.stream.local_addr()
    }

    /// So much more is to be sent.
    pub fn send(&mut self, bytes: u64) {
        self.left_bytes += bytes;
    }

    /// All that was given has been acknowledged.
    pub fn is_done(&self) -> bool {
        let now = || system::sender_figures(&self.stream);
        self.left_bytes == 0
            && now().is_some_and(|(now, unsent_bytes)| unsent_bytes == 0 && now.in_flight_pkts == 0)
    }

    /// How TCP stands.
    pub fn figures(&self) -> SenderFigures {
        let now = system::sender_figures(&self.stream);
        now.map_or(SenderFigures::default(), |(figures, _)| figures)
    }

    /// Gives the kernel what it takes, and waits for at most `wait_for` when it took nothing.
    ///
    /// # Errors
    /// The connection cannot go on.
    pub fn step(&mut self, wait_for: Duration) -> io::Result<()> {
        let piece = &PIECE[..PIECE
            .len()
            .min(usize::try_from(self.left_bytes).unwrap_or(usize::MAX))];
        if piece.is_empty() {
            std::thread::sleep(wait_for.min(LOOK_EVERY));
            return Ok(());
        }
        match self.stream.write(piece) {
            Ok(taken) => self.left_bytes -= taken as u64,
            Err(error) if is_passing(&error) => {
                wait(&self.stream, PollFlags::OUT, wait_for)?;
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

/// The end that data go to.
#[derive(Debug)]
pub struct PlainRecvEnd {
    stream: TcpStream,
    delivered_bytes: u64,
    room: Vec<u8>,
}

impl PlainRecvEnd {
    /// Of a connection.
    ///
    /// # Errors
    /// The kernel's.
    pub fn of(stream: TcpStream) -> io::Result<PlainRecvEnd> {
        stream.set_nonblocking(true)?;
        Ok(PlainRecvEnd {
            stream,
            delivered_bytes: 0,
            room: PIECE.to_vec(),
        })
    }

    /// What has arrived in order.
    pub fn delivered_bytes(&self) -> u64 {
        self.delivered_bytes
    }

    /// Reads what has arrived, and waits for at most `wait_for` when nothing has.
    ///
    /// # Errors
    /// The connection cannot go on.
    pub fn step(&mut self, wait_for: Duration) -> io::Result<()> {
        match system::discard(&self.stream, &mut self.room) {
            // The other end has sent all, and says so elsewhere.
            Ok(0) => std::thread::sleep(wait_for),
            Ok(count) => self.delivered_bytes += count as u64,
            Err(error) if is_passing(&error) => {
                wait(&self.stream, PollFlags::IN, wait_for)?;
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// Says whether it came.
fn wait(stream: &TcpStream, flags: PollFlags, most: Duration) -> io::Result<bool> {
    let most = rustix::event::Timespec::try_from(most).map_err(io::Error::other)?;
    match rustix::event::poll(&mut [PollFd::new(stream, flags)], Some(&most)) {
        Ok(count) => Ok(count > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

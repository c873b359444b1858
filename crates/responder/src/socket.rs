// SPDX-License-Identifier: MIT OR Apache-2.0
//! The UDP socket of a test, connected to the other end: what others send does not arrive.

use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use socket2::{Domain, Socket, Type};
use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A datagram that came.
pub struct Came {
    /// Its bytes.
    pub bytes: usize,
    /// When the kernel had it, ns since 1970.
    pub at_ns: u64,
    /// How long it waited until it was read.
    pub waited: Duration,
}

/// The socket, and the connection by which the test was asked for.
pub struct Pair<'c> {
    udp: UdpSocket,
    connection: &'c TcpStream,
    control: Vec<u8>,
}

impl<'c> Pair<'c> {
    /// From `port` (0: any) of this end's address on `connection`; it leads nowhere yet.
    ///
    /// # Errors
    /// The kernel's.
    pub fn bind(connection: &'c TcpStream, port: u16) -> io::Result<Pair<'c>> {
        let mut address = plain(connection.local_addr()?);
        address.set_port(port);
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, None)?;
        // Each test has a socket; the kernel prefers the one that is connected to where a datagram comes from.
        socket.set_reuse_address(port != 0)?;
        socket.bind(&address.into())?;
        socket.set_nonblocking(true)?;
        let udp = UdpSocket::from(socket);
        setsockopt(&udp, sockopt::ReceiveTimestampns, &true)?;
        Ok(Pair {
            udp,
            connection,
            control: nix::cmsg_space!(nix::sys::time::TimeSpec),
        })
    }

    /// Connects it to a port of the other end.
    ///
    /// # Errors
    /// The kernel's.
    pub fn connect(&self, port: u16) -> io::Result<()> {
        let mut address = plain(self.connection.peer_addr()?);
        address.set_port(port);
        self.udp.connect(address)
    }

    /// The socket alone, which waits for what it is asked for.
    ///
    /// # Errors
    /// The kernel's.
    pub fn into_waiting(self) -> io::Result<UdpSocket> {
        self.udp.set_nonblocking(false)?;
        Ok(self.udp)
    }

    /// Its own port.
    ///
    /// # Errors
    /// The kernel's.
    pub fn port(&self) -> io::Result<u16> {
        Ok(self.udp.local_addr()?.port())
    }

    /// Waits for a datagram, for so long at most; says whether the connection says something, or has ended.
    ///
    /// # Errors
    /// The kernel's.
    pub fn wait(&self, most: Duration) -> io::Result<bool> {
        let mut polled = [
            PollFd::new(&self.udp, PollFlags::IN),
            PollFd::new(self.connection, PollFlags::IN | PollFlags::RDHUP),
        ];
        let most = Timespec::try_from(most).map_err(io::Error::other)?;
        match poll(&mut polled, Some(&most)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(!polled[1].revents().is_empty())
    }

    /// Sends a datagram. One for which there is no room or no listener is lost, as others are on their way.
    pub fn send(&self, bytes: &[u8]) {
        let _ = self.udp.send(bytes);
    }

    /// The next datagram; `None`: there is none.
    pub fn receive(&mut self, into: &mut [u8]) -> Option<Came> {
        let mut parts = [IoSliceMut::new(into)];
        let control = Some(&mut self.control[..]);
        // An error is of a datagram that was sent: it is lost.
        let message =
            recvmsg::<()>(self.udp.as_raw_fd(), &mut parts, control, MsgFlags::empty()).ok()?;
        let read_ns = now_ns();
        let mut at_ns = read_ns;
        for control in message.cmsgs().ok()? {
            if let ControlMessageOwned::ScmTimestampns(at) = control {
                at_ns = Duration::from(at).as_nanos() as u64;
            }
        }
        Some(Came {
            bytes: message.bytes,
            at_ns,
            // A clock that was set meanwhile does not make it a long time.
            waited: Duration::from_nanos(read_ns.saturating_sub(at_ns)).min(MOST_WAITED),
        })
    }
}

const MOST_WAITED: Duration = Duration::from_secs(1);

/// Whether a connection says nothing and goes on.
pub fn is_quiet(connection: &TcpStream) -> bool {
    let mut polled = [PollFd::new(connection, PollFlags::IN | PollFlags::RDHUP)];
    let now = Timespec::default();
    matches!(poll(&mut polled, Some(&now)), Ok(0) | Err(Errno::INTR))
}

/// ns since 1970.
pub fn now_ns() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| now.as_nanos() as u64)
}

/// An address of IPv4 as such, also on a socket of IPv6.
pub fn plain(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        ip if ip == address.ip() => address,
        ip => SocketAddr::new(ip, address.port()),
    }
}

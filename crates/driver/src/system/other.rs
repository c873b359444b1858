// SPDX-License-Identifier: MIT OR Apache-2.0
//! Other systems: without what only makes it faster or tells more, and with an error in the place of what was asked for.

use super::ConnectionFigures;
use fatpath_tcp::SenderFigures;
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_send_buffer_size};
use std::io;
use std::net::{SocketAddr, TcpStream, UdpSocket};

/// What lets the kernel give a socket the room that it asks for: of it buffers may have 2048/(256+2048) (sbreserve(9)).
pub const BUFFER_REMEDY: &str = "sysctl kern.ipc.maxsockbuf=16777216";
/// What no kernel refuses.
const LEAST_BUFFER_BYTES: usize = 64 << 10;

/// Datagrams without congestion control leave by Linux alone: nothing else has the daemon that permits them.
pub(crate) struct Mark;

impl Mark {
    pub(crate) fn new(_dscp: u8) -> Mark {
        Mark
    }

    pub(crate) fn has_offload(&self) -> bool {
        false
    }

    /// # Errors
    /// Always: what was to leave is lost.
    pub(crate) fn send(
        &self,
        _socket: &UdpSocket,
        _destination: SocketAddr,
        _contents: &[u8],
        _datagram_bytes: usize,
    ) -> io::Result<()> {
        Err(not_here())
    }
}

/// Wakes a thread as the system does by itself.
pub(crate) fn wake_exactly() {}

/// Buffers of a new socket, each of `bytes`, or of the half of it, the quarter and so on, until the kernel takes it: it refuses
/// what is too much.
pub(crate) fn ask_buffers(socket: &UdpSocket, bytes: usize) -> io::Result<()> {
    largest(bytes, |bytes| set_socket_recv_buffer_size(socket, bytes))?;
    largest(bytes, |bytes| set_socket_send_buffer_size(socket, bytes))
}

fn largest(wanted: usize, set: impl Fn(usize) -> rustix::io::Result<()>) -> io::Result<()> {
    let mut bytes = wanted;
    while bytes > LEAST_BUFFER_BYTES {
        if set(bytes).is_ok() {
            return Ok(());
        }
        bytes /= 2;
    }
    Ok(set(bytes)?)
}

/// # Errors
/// Always: `quinn-udp` has forbidden it to the socket.
pub(crate) fn let_fragment(_socket: &UdpSocket) -> io::Result<()> {
    Err(not_here())
}

/// The kernel takes as much as its buffer holds.
pub(crate) fn bound_unsent(_stream: &TcpStream, _bytes: u32) -> io::Result<()> {
    Ok(())
}

/// The kernel tells it in a form of its own, which is not read: the round-trip time counts as 0, and a connection on which hellos
/// come and no data leave is not found out.
pub(crate) fn figures(_stream: &TcpStream) -> Option<ConnectionFigures> {
    None
}

/// It is not read either.
pub(crate) fn sender_figures(_stream: &TcpStream) -> Option<(SenderFigures, u64)> {
    None
}

/// Takes what has arrived, as any read does.
pub(crate) fn discard(mut stream: &TcpStream, room: &mut [u8]) -> io::Result<usize> {
    io::Read::read(&mut stream, room)
}

/// # Errors
/// Always: no more than this may leave, and nothing would see to that.
pub(crate) fn pace<S>(_socket: &S, _bytes_per_s: u64) -> io::Result<()> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "a rate of TCP is not kept on this system: leave out --limit, or let UDP carry the data",
    ))
}

/// # Errors
/// Always: the host's own stays.
pub(crate) fn set_law<S>(_socket: &S, _name: &str) -> io::Result<()> {
    Err(not_here())
}

fn not_here() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "not on this system")
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A UDP socket that sends and receives many datagrams at a call.

use crate::StepError;
use crate::system::{self, Mark};
use fatpath_transport::Ecn;
use quinn_udp::{BATCH_SIZE, EcnCodepoint, RecvMeta, Transmit, UdpSocketState};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::ops::RangeInclusive;
use std::time::Duration;

/// What is asked of the kernel for each direction: 100 ms of 1 Gb/s would be 12 MB, and a thread is never that late.
const WANTED_BUFFER_BYTES: usize = 8 << 20;
/// Room of one receive buffer: what one call of UDP's receive offload gives at most.
const RECEIVE_BYTES: usize = 1 << 16;
/// What one call may send: the longest IP packet, less headers.
const MOST_BATCH_BYTES: usize = 65_000;

/// Datagrams in, datagrams out.
pub struct Socket {
    socket: UdpSocket,
    state: UdpSocketState,
    lets_fragment: bool,
    mark: Option<Mark>,
    buffers: Vec<u8>,
    metas: [RecvMeta; BATCH_SIZE],
}

/// A socket has no free port.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// All are taken.
    #[error("no port from {} to {} is free: give other ports", .0.start(), .0.end())]
    Taken(RangeInclusive<u16>),
    /// Another error of the kernel.
    #[error("socket on {0}")]
    Io(IpAddr, #[source] io::Error),
}

/// What a new socket got of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Where it is.
    pub address: SocketAddr,
    /// The kernel's buffers: sending, receiving; bytes, with the kernel's own overhead.
    pub buffer_bytes: (usize, usize),
    /// Less than what was asked for; [`BUFFER_REMEDY`](crate::BUFFER_REMEDY) names what bounds the latter.
    pub is_short: bool,
}

impl Socket {
    /// On a free port of `ports`, sought from `first` on, so that callers that give another `first` each seldom meet.
    ///
    /// # Errors
    /// None is free, or the kernel's.
    pub fn bind(
        address: IpAddr,
        ports: RangeInclusive<u16>,
        first: u16,
    ) -> Result<(Socket, Bound), BindError> {
        let socket = on_free_port(address, ports, first, UdpSocket::bind)?;
        Socket::of(socket).map_err(|error| BindError::Io(address, error))
    }

    fn of(socket: UdpSocket) -> io::Result<(Socket, Bound)> {
        let state = UdpSocketState::new((&socket).into())?;
        system::ask_buffers(&socket, WANTED_BUFFER_BYTES)?;
        let buffer_bytes = (
            state.send_buffer_size((&socket).into())?,
            state.recv_buffer_size((&socket).into())?,
        );
        let bound = Bound {
            address: socket.local_addr()?,
            buffer_bytes,
            is_short: buffer_bytes.1 < WANTED_BUFFER_BYTES,
        };
        let socket = Socket {
            socket,
            state,
            lets_fragment: false,
            mark: None,
            buffers: vec![0; RECEIVE_BYTES * BATCH_SIZE],
            metas: [RecvMeta::default(); BATCH_SIZE],
        };
        Ok((socket, bound))
    }

    /// Datagrams that are longer than the MTU of the device are fragmented by IP. IPv4's are so on the way, too, where the path's
    /// MTU is smaller: no DF flag is set, and what the kernel knows of the path is not looked at (`IP_PMTUDISC_OMIT`). IPv6's
    /// are by their sender alone, as soon as it knows the path's MTU.
    ///
    /// # Errors
    /// The kernel's, or this is not Linux.
    pub fn let_fragment(&mut self) -> io::Result<()> {
        system::let_fragment(&self.socket)?;
        self.lets_fragment = true;
        Ok(())
    }

    /// What is sent from now on has this DSCP, 1 to 63, and is not ECN-capable; `None`: it has none.
    pub(crate) fn mark(&mut self, dscp: Option<u8>) {
        self.mark = dscp.map(Mark::new);
    }

    /// What is sent has a DSCP.
    pub(crate) fn is_marked(&self) -> bool {
        self.mark.is_some()
    }

    /// The most datagrams of `datagram_bytes` that one call sends. The kernel's segmentation makes no fragments.
    pub(crate) fn batch_pkts(&self, datagram_bytes: usize) -> usize {
        let has_offload = self.mark.as_ref().is_none_or(Mark::has_offload);
        if self.lets_fragment || !has_offload {
            return 1;
        }
        let fitting = MOST_BATCH_BYTES / datagram_bytes;
        self.state.max_gso_segments().min(fitting).max(1)
    }

    /// Sends `datagrams` with this ECN field, each of `datagram_bytes` but the last, which may be shorter. Says whether the kernel took them:
    /// if not, its buffer is full. What it cannot send for another reason is lost.
    pub(crate) fn send(
        &self,
        destination: SocketAddr,
        ecn: Ecn,
        datagrams: &[u8],
        datagram_bytes: usize,
    ) -> Result<bool, StepError> {
        let most = self.batch_pkts(datagram_bytes) * datagram_bytes;
        for contents in datagrams.chunks(most) {
            let transmit = Transmit {
                destination,
                ecn: (ecn == Ecn::Capable).then_some(EcnCodepoint::Ect0),
                contents,
                segment_size: Some(datagram_bytes),
                src_ip: None,
            };
            let sent = match &self.mark {
                Some(mark) => mark.send(&self.socket, destination, contents, datagram_bytes),
                None => self.state.try_send((&self.socket).into(), &transmit),
            };
            match sent {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if quinn_udp::is_msg_size_err(&error) => {
                    return Err(StepError::TooLong(datagram_bytes));
                }
                // A route that is away, a filter, a device that refuses offload (which quinn-udp then leaves off): the
                // transport sends it again, and its limit of silence ends what lasts.
                Err(_) => {}
            }
        }
        Ok(true)
    }

    /// Until something arrives, or this much time has passed.
    pub(crate) fn wait(&self, most: Duration) -> io::Result<()> {
        wait(std::iter::once((self, false)), most)
    }

    /// Takes what has arrived, a batch of many datagrams at most, and gives each with its sender and its ECN field; says how
    /// many.
    pub(crate) fn receive<'b>(
        &'b mut self,
        mut take: impl FnMut(SocketAddr, Ecn, &'b mut [u8]),
    ) -> io::Result<usize> {
        let mut slices: Vec<_> = self
            .buffers
            .chunks_mut(RECEIVE_BYTES)
            .map(IoSliceMut::new)
            .collect();
        let received = self
            .state
            .recv((&self.socket).into(), &mut slices, &mut self.metas);
        let count = match received {
            Ok(count) => count,
            Err(error) if is_passing(&error) => return Ok(0),
            Err(error) => return Err(error),
        };
        drop(slices);
        let mut datagrams = 0;
        let buffers = self.buffers.chunks_mut(RECEIVE_BYTES);
        for (buffer, meta) in buffers.zip(&self.metas[..count]) {
            for datagram in buffer[..meta.len].chunks_mut(meta.stride.max(1)) {
                take(meta.addr, ecn(meta), datagram);
                datagrams += 1;
            }
        }
        Ok(datagrams)
    }
}

/// Until something arrives at one of these sockets, room is to send at one that is to be waited for with that, or this much
/// time has passed.
pub(crate) fn wait<'s>(
    sockets: impl Iterator<Item = (&'s Socket, bool)>,
    most: Duration,
) -> io::Result<()> {
    let mut fds: Vec<_> = sockets
        .map(|(socket, for_room)| {
            let mut events = PollFlags::IN;
            events.set(PollFlags::OUT, for_room);
            PollFd::new(&socket.socket, events)
        })
        .collect();
    wait_for(&mut fds, most)
}

/// Until something happens to one of these, or this much time has passed.
pub(crate) fn wait_for(fds: &mut [PollFd<'_>], most: Duration) -> io::Result<()> {
    let timeout = Timespec {
        tv_sec: most.as_secs() as i64,
        tv_nsec: most.subsec_nanos().into(),
    };
    match poll(fds, Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The first of `ports` that `bind` gets, sought from `first` on.
pub(crate) fn on_free_port<S>(
    address: IpAddr,
    ports: RangeInclusive<u16>,
    first: u16,
    bind: impl Fn((IpAddr, u16)) -> io::Result<S>,
) -> Result<S, BindError> {
    let count = usize::from(ports.end().saturating_sub(*ports.start())) + 1;
    let begin = usize::from(first) % count;
    for port in ports.clone().cycle().skip(begin).take(count) {
        match bind((address, port)) {
            Ok(socket) => return Ok(socket),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            Err(error) => return Err(BindError::Io(address, error)),
        }
    }
    Err(BindError::Taken(ports))
}

/// That of a batch. The kernel puts it together of datagrams with the same one; before Linux 6.9 or so also of others, whose
/// marks count for the whole batch or for none of it.
fn ecn(meta: &RecvMeta) -> Ecn {
    match meta.ecn {
        Some(EcnCodepoint::Ect0) => Ecn::Capable,
        Some(EcnCodepoint::Ce) => Ecn::Marked,
        Some(EcnCodepoint::Ect1) | None => Ecn::NotCapable,
    }
}

/// Nothing is there, or an earlier datagram met no listener.
fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, Interrupted, WouldBlock};
    matches!(error.kind(), WouldBlock | Interrupted | ConnectionRefused)
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The packets of one TCP connection, from a packet socket (packet(7)) with a filter in the kernel: no other packet is
//! copied, and of these no more than asked for, the headers as a rule.
//!
//! It writes no file and knows no flow but by its two ends. Of a packet that passes several interfaces (a bridge and its
//! port) it takes one: for each direction that where the first was seen. Start at [`Sniffer`].

mod filter;

pub use filter::Keep;

use fatpath_capture::{End, Frame, decode};
use filter::program;
use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType,
    getsockopt, recv, recvmsg, setsockopt, socket, sockopt,
};
use nix::sys::time::{TimeSpec, TimeVal, TimeValLike};
use socket2::{SockFilter, SockRef};
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// Room for what comes while nobody reads: headers of 100,000 packets.
const RECEIVE_BUFFER_BYTES: usize = 64 << 20;
/// The largest packet that an interface with offload is handed (BIG TCP, `GSO_MAX_SIZE`).
const LARGEST_BYTES: usize = 8 * 65_536;

/// No more packets are in the socket when its filter is attached.
const MOST_BEFORE: usize = 1 << 20;
/// `LINKTYPE_RAW`.
const RAW_IP: i32 = 101;
/// sll_pkttype of linux/if_packet.h.
const OUTGOING: u8 = 4;

/// The options of packet(7), which `nix` does not name.
#[allow(unsafe_code)] // the macro's own call of the kernel
mod option {
    use nix::{getsockopt_impl, libc, setsockopt_impl, sockopt_impl};

    sockopt_impl!(
        /// Packets that passed the filter, and those of them that were lost, since it was asked before.
        Statistics,
        GetOnly,
        libc::SOL_PACKET,
        libc::PACKET_STATISTICS,
        libc::tpacket_stats
    );
    sockopt_impl!(
        /// Tells the length that a packet had before the filter cut it.
        AuxData,
        SetOnly,
        libc::SOL_PACKET,
        libc::PACKET_AUXDATA,
        bool
    );
}

/// Why a socket was not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// CAP_NET_RAW is needed.
    #[error("capturing packets needs root, or the capability CAP_NET_RAW")]
    NotPermitted,
    /// IPv4 and IPv6 mixed.
    #[error("one end has an IPv4 address, the other an IPv6 address")]
    MixedFamilies,
    /// Anything else.
    #[error("cannot open a packet socket")]
    Io(#[from] io::Error),
}

/// One packet, from its IP header on.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'b> {
    /// When the kernel saw it, since 1970.
    pub time_ns: i64,
    /// How long it was.
    pub wire_bytes: u32,
    /// What was kept.
    pub data: &'b [u8],
}

/// Takes packets.
pub struct Sniffer {
    socket: OwnedFd,
    ends: [End; 2],
    /// Index of the interface, for each direction.
    interfaces: [Option<usize>; 2],
    buffer: Vec<u8>,
    control: Vec<u8>,
    dropped: u64,
    elsewhere: u64,
}

/// What a call of the kernel gave.
struct Received {
    bytes: usize,
    wire_bytes: u32,
    time_ns: i64,
    interface: usize,
    /// A packet over the loopback interface comes twice.
    is_echo: bool,
}

/// What came before the filter was attached is of anybody, and whole.
fn forget_what_came_before(socket: &OwnedFd) -> nix::Result<()> {
    for _ in 0..MOST_BEFORE {
        match recv(socket.as_raw_fd(), &mut [0; 1], MsgFlags::MSG_DONTWAIT) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(Errno::EAGAIN) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

impl Sniffer {
    /// Of the connection between these two ends, in this network namespace.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(ends: [SocketAddr; 2], keep: Keep) -> Result<Sniffer, OpenError> {
        let program = program(ends, keep).ok_or(OpenError::MixedFamilies)?;
        let opened = socket(
            AddressFamily::Packet,
            SockType::Datagram,
            SockFlag::SOCK_CLOEXEC,
            SockProtocol::EthAll,
        );
        let socket = opened.map_err(|error| match error {
            // The last where a service may not use this family of sockets.
            Errno::EPERM | Errno::EACCES | Errno::EAFNOSUPPORT => OpenError::NotPermitted,
            other => OpenError::Io(other.into()),
        })?;
        let filter: Vec<SockFilter> = program
            .iter()
            .map(|one| SockFilter::new(one.code, one.if_true, one.if_false, one.operand))
            .collect();
        SockRef::from(&socket).attach_filter(&filter)?;
        forget_what_came_before(&socket).map_err(io::Error::from)?;
        let set = || -> nix::Result<()> {
            setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
            setsockopt(&socket, option::AuxData, &true)?;
            if setsockopt(&socket, sockopt::RcvBufForce, &RECEIVE_BUFFER_BYTES).is_err() {
                setsockopt(&socket, sockopt::RcvBuf, &RECEIVE_BUFFER_BYTES)?;
            }
            Ok(())
        };
        set().map_err(io::Error::from)?;
        Ok(Sniffer {
            socket,
            ends: ends.map(|end| End::new(end.ip(), end.port())),
            interfaces: [None; 2],
            buffer: vec![0; LARGEST_BYTES],
            control: nix::cmsg_space!(TimeSpec, libc::tpacket_auxdata),
            dropped: 0,
            elsewhere: 0,
        })
    }

    /// The next packet; none when none has come for so long.
    ///
    /// # Errors
    /// The kernel's.
    pub fn next(&mut self, longest: Duration) -> io::Result<Option<Packet<'_>>> {
        let wait = TimeVal::microseconds(longest.as_micros().max(1) as i64);
        setsockopt(&self.socket, sockopt::ReceiveTimeout, &wait)?;
        let end = Instant::now() + longest;
        let received = loop {
            if Instant::now() > end {
                return Ok(None);
            }
            match self.receive() {
                Ok(received) if self.is_taken(&received) => break received,
                Ok(_) => {}
                // An interface went down.
                Err(Errno::ENETDOWN) => {}
                Err(Errno::EAGAIN | Errno::EINTR) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        };
        Ok(Some(Packet {
            time_ns: received.time_ns,
            wire_bytes: received.wire_bytes,
            data: &self.buffer[..received.bytes],
        }))
    }

    /// Whether it is of the connection, and seen for the first time.
    fn is_taken(&mut self, received: &Received) -> bool {
        let segment = decode(&Frame {
            time_ns: received.time_ns,
            link_type: RAW_IP,
            wire_bytes: received.wire_bytes,
            data: &self.buffer[..received.bytes],
        });
        let Ok(segment) = segment else { return false };
        let ends = [segment.source, segment.destination];
        let is_back = ends == [self.ends[1], self.ends[0]];
        if received.is_echo || !(is_back || ends == self.ends) {
            return false;
        }
        let kept = self.interfaces[usize::from(is_back)].get_or_insert(received.interface);
        let is_first = *kept == received.interface;
        self.elsewhere += u64::from(!is_first);
        is_first
    }

    fn receive(&mut self) -> nix::Result<Received> {
        let mut parts = [IoSliceMut::new(&mut self.buffer)];
        let control = Some(&mut self.control[..]);
        let message = recvmsg::<LinkAddr>(
            self.socket.as_raw_fd(),
            &mut parts,
            control,
            MsgFlags::empty(),
        )?;
        let address = message.address;
        let mut received = Received {
            bytes: message.bytes,
            wire_bytes: message.bytes as u32,
            time_ns: 0,
            interface: address.map_or(0, |address| address.ifindex()),
            is_echo: address.is_some_and(|address| {
                address.pkttype() == OUTGOING && address.hatype() == libc::ARPHRD_LOOPBACK
            }),
        };
        for control in message.cmsgs()? {
            match control {
                ControlMessageOwned::ScmTimestampns(at) => {
                    received.time_ns = Duration::from(at).as_nanos() as i64;
                }
                // struct tpacket_auxdata: status, then the packet's length.
                ControlMessageOwned::Unknown(other) => {
                    if let Some(length) = other.data_bytes.get(4..8) {
                        let bytes = [length[0], length[1], length[2], length[3]];
                        received.wire_bytes = u32::from_ne_bytes(bytes);
                    }
                }
                _ => {}
            }
        }
        Ok(received)
    }

    /// Packets that the kernel lost because nobody read in time.
    pub fn dropped(&mut self) -> u64 {
        if let Ok(new) = getsockopt(&self.socket, option::Statistics) {
            self.dropped += u64::from(new.tp_drops);
        }
        self.dropped
    }

    /// Packets that were seen on a second interface, and not taken.
    pub fn elsewhere(&self) -> u64 {
        self.elsewhere
    }
}

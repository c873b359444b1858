// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packet trains to a host that does not run fatpath: its kernel answers each packet, and the answers are timed.

pub mod packet;

use crate::send::{Batch, Batches, make_room, paced, room, until_sent};
use crate::{Patience, Receiver, Record, Secret};
use aws_lc_rs::rand::{SecureRandom, SystemRandom};
use fatpath_train::{Departure, Train};
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, sendmsg};
use packet::{Ends, Packets};
use socket2::{Domain, Protocol, SockAddr, SockFilter, Socket, Type};
use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;
use std::sync::Arc;

/// What is sent, and answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Echo requests, whose answers are as long.
    Icmp,
    /// Segments of no connection to this port, whose answers (RST) are short.
    Tcp(u16),
}

/// Why no train can be sent.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// CAP_NET_RAW is needed.
    #[error("sending such packets needs root, or the capability CAP_NET_RAW")]
    NotPermitted,
    /// Anything else.
    #[error("cannot open a socket for packets that the host answers")]
    Io(#[from] io::Error),
}

/// The sockets of a test.
pub struct Answered {
    socket: Socket,
    packets: Arc<Packets>,
    receiver: Receiver,
    /// Nobody else of this host has the local port meanwhile, and the kernel knows of no connection of it.
    _port: Option<Socket>,
}

impl Answered {
    /// Sockets for trains to a host.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(peer: IpAddr, method: Method) -> Result<Answered, OpenError> {
        let (socket, is_raw) = opened(peer, method)?;
        socket.connect(&end(peer, 0))?;
        let local = socket.local_addr()?.as_socket().map(|end| end.ip());
        let local = local.ok_or(io::Error::from(io::ErrorKind::AddrNotAvailable))?;
        let port = match method {
            Method::Icmp => None,
            Method::Tcp(_) => Some(reserved(local)?),
        };
        let ports = match (&port, method) {
            (Some(reserved), Method::Tcp(port)) => Some([port_of(reserved)?, port]),
            _ => None,
        };
        if let Some([local_port, _]) = ports {
            socket.attach_filter(&only_to(local_port, peer.is_ipv4()))?;
        }
        let ends = Ends {
            local,
            peer,
            ports,
            has_ipv4_header: is_raw && peer.is_ipv4(),
        };
        let packets = Arc::new(Packets::new(ends, secret()?));
        let opener = Arc::clone(&packets);
        let open = move |packet: &[u8], train| opener.answered(packet, train);
        make_room(&socket).map_err(io::Error::from)?;
        Ok(Answered {
            receiver: Receiver::opening(socket.try_clone()?.into(), Box::new(open))?,
            socket,
            packets,
            _port: port,
        })
    }

    /// Sends a train, number `number` of the test, and hears what is answered.
    ///
    /// # Errors
    /// The kernel's.
    pub fn exchange(
        &mut self,
        number: u32,
        train: &Train,
        patience: Patience,
    ) -> io::Result<(Vec<Departure>, Record)> {
        let (socket, packets, receiver) = (&self.socket, &*self.packets, &mut self.receiver);
        let (written_bytes, header_bytes) = (packets.written_bytes(), packets.header_bytes());
        let bytes = room(train, header_bytes, written_bytes)?;
        let mut asked = Asked {
            socket,
            written: packets.written(number, train.packets, bytes),
            written_bytes,
            zeros: vec![0; bytes - written_bytes],
        };
        std::thread::scope(|scope| {
            let heard = scope.spawn(|| receiver.receive(number, train, patience));
            let departures = paced(train, &mut asked);
            // It does not panic: what it reads are bytes that `Packets` takes or leaves.
            let heard = heard.join().map_err(|_| io::ErrorKind::Other)?;
            Ok((departures?, heard?))
        })
    }
}

/// The packets of a train, a call each: the kernel splits none of these for a caller.
struct Asked<'a> {
    socket: &'a Socket,
    /// The beginning of each. To make it takes longer than to send it.
    written: Vec<u8>,
    written_bytes: usize,
    zeros: Vec<u8>,
}

impl Batches for Asked<'_> {
    fn prepare(&mut self, _: Batch) {}

    fn send(&mut self, batch: Batch) -> io::Result<()> {
        let all = self.written.chunks_exact(self.written_bytes);
        let mut batch = all.skip(batch.first as usize).take(batch.packets as usize);
        batch.try_for_each(|written| {
            let parts = [IoSlice::new(written), IoSlice::new(&self.zeros)];
            let fd = self.socket.as_raw_fd();
            until_sent(|| sendmsg::<()>(fd, &parts, &[], MsgFlags::empty(), None))
        })
    }
}

/// Says whether it is a raw one. Echo requests need none where the host lets this user's group have sockets for them
/// (`net.ipv4.ping_group_range`, icmp(7)).
fn opened(peer: IpAddr, method: Method) -> Result<(Socket, bool), OpenError> {
    let domain = Domain::for_address(SocketAddr::new(peer, 0));
    let protocol = match (method, peer) {
        (Method::Tcp(_), _) => Protocol::TCP,
        (Method::Icmp, IpAddr::V4(_)) => Protocol::ICMPV4,
        (Method::Icmp, IpAddr::V6(_)) => Protocol::ICMPV6,
    };
    if method == Method::Icmp
        && let Ok(socket) = Socket::new(domain, Type::DGRAM, Some(protocol))
    {
        return Ok((socket, false));
    }
    match Socket::new(domain, Type::RAW, Some(protocol)) {
        Ok(socket) => Ok((socket, true)),
        Err(error) if is_refused(&error) => Err(OpenError::NotPermitted),
        Err(error) => Err(error.into()),
    }
}

fn is_refused(error: &io::Error) -> bool {
    let refused = [Errno::EPERM, Errno::EACCES].map(|errno| errno as i32);
    error
        .raw_os_error()
        .is_some_and(|errno| refused.contains(&errno))
}

/// A port of TCP, bound and nothing more.
fn reserved(local: IpAddr) -> io::Result<Socket> {
    let address = end(local, 0);
    let socket = Socket::new(address.domain(), Type::STREAM, Some(Protocol::TCP))?;
    socket.bind(&address)?;
    Ok(socket)
}

fn port_of(socket: &Socket) -> io::Result<u16> {
    let address = socket.local_addr()?.as_socket();
    Ok(address.ok_or(io::ErrorKind::AddrNotAvailable)?.port())
}

fn end(address: IpAddr, port: u16) -> SockAddr {
    SocketAddr::new(address, port).into()
}

/// A raw socket gets all segments of the peer: a filter (linux/filter.h) that takes those to this port.
fn only_to(port: u16, has_ipv4_header: bool) -> [SockFilter; 5] {
    /// X = 4 * (byte & 15); X = constant; A = two bytes behind X; skip unless A is equal; take so many bytes.
    const X_HEADER_LENGTH: u16 = 0xb1;
    const X_CONSTANT: u16 = 0x01;
    const LOAD_HALF_BEHIND_X: u16 = 0x48;
    const IF_EQUAL: u16 = 0x15;
    const ACCEPT: u16 = 0x06;
    let load = match has_ipv4_header {
        true => X_HEADER_LENGTH,
        false => X_CONSTANT,
    };
    [
        SockFilter::new(load, 0, 0, 0),
        SockFilter::new(LOAD_HALF_BEHIND_X, 0, 0, 2),
        SockFilter::new(IF_EQUAL, 0, 1, port.into()),
        SockFilter::new(ACCEPT, 0, 0, u32::MAX),
        SockFilter::new(ACCEPT, 0, 0, 0),
    ]
}

fn secret() -> io::Result<Secret> {
    let mut bytes = [0; 32];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| io::Error::other("the kernel gives no random bytes"))?;
    Ok(Secret::new(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const TRAIN: Train = Train {
        rate_bps: 40_000_000,
        packets: 100,
        packet_bytes: 1500,
    };
    const PATIENCE: Patience = Patience {
        first: Duration::from_secs(10),
        next: Duration::from_secs(2),
        all: Duration::from_secs(20),
    };

    /// Loopback answers all; port 9 has no listener.
    #[test]
    fn a_host_answers_each_packet_once() {
        for peer in ["127.0.0.1", "::1"] {
            for method in [Method::Icmp, Method::Tcp(9)] {
                let mut answered = match Answered::open(peer.parse().unwrap(), method) {
                    Ok(answered) => answered,
                    Err(OpenError::NotPermitted) => {
                        println!("skipped: no CAP_NET_RAW");
                        return;
                    }
                    Err(error) => panic!("{peer} {method:?}: {error:?}"),
                };
                for number in [0, 1] {
                    let (sent, heard) = answered.exchange(number, &TRAIN, PATIENCE).unwrap();
                    let arrived = heard.arrivals.iter().map(|run| run.packets);
                    assert_eq!(arrived.sum::<u32>(), 100, "{peer} {method:?} {number}");
                    assert_eq!((sent.len(), heard.overrun), (100, 0));
                }
            }
        }
    }

    #[test]
    fn a_packet_without_room_for_its_headers_is_refused() {
        let Ok(mut answered) = Answered::open("127.0.0.1".parse().unwrap(), Method::Icmp) else {
            println!("skipped: no CAP_NET_RAW");
            return;
        };
        let short = Train {
            packet_bytes: 50,
            ..TRAIN
        };
        assert!(answered.exchange(0, &short, PATIENCE).is_err());
    }
}

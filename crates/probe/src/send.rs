// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sends a train at its rate.

use crate::Secret;
use crate::packet::Header;
use fatpath_train::{Departure, Train};
use nix::errno::Errno;
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg, setsockopt, sockopt};
use std::hint::spin_loop;
use std::io::{self, IoSlice};
use std::net::UdpSocket;
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

/// IPv4 and UDP headers, which count to a packet's length.
const IPV4_UDP_BYTES: usize = 28;
/// IPv6 and UDP headers.
const IPV6_UDP_BYTES: usize = 48;

/// How much earlier than a batch the sender stops sleeping: what the kernel may wake it late.
const WAKE_UP: Duration = Duration::from_micros(120);

/// Room for what waits for the device, so that pacing is the sender's alone.
const SEND_BUFFER_BYTES: usize = 4 << 20;

/// Sends `train`, number `number` of the test of `secret`, over a connected socket, and returns when each batch left, by
/// the monotonic clock from the train's beginning. A batch that is due late leaves at once.
///
/// # Errors
/// The kernel's. That nobody listens (ICMP port unreachable) is no error.
pub fn send(
    socket: &UdpSocket,
    secret: &Secret,
    number: u32,
    train: &Train,
) -> io::Result<Vec<Departure>> {
    make_room(socket)?;
    let payload_bytes = payload_bytes(socket, train)?;
    let seal = |sequence, datagram: &mut [u8]| {
        let header = Header {
            train: number,
            sequence,
        };
        datagram[..Header::BYTES].copy_from_slice(&header.sealed(secret));
    };
    let send = |datagrams: &[u8]| send_batch(socket, datagrams, payload_bytes);
    paced(train, payload_bytes, seal, send)
}

/// For what waits for the device. Without the right to so much, the system's limit holds.
pub(crate) fn make_room(socket: &impl AsFd) -> nix::Result<()> {
    setsockopt(socket, sockopt::SndBufForce, &SEND_BUFFER_BYTES)
        .or_else(|_| setsockopt(socket, sockopt::SndBuf, &SEND_BUFFER_BYTES))
}

/// Sends each batch when it is due: `write` writes each packet, of `payload_bytes`, `send` sends those of a batch.
pub(crate) fn paced(
    train: &Train,
    payload_bytes: usize,
    write: impl Fn(u32, &mut [u8]),
    send: impl Fn(&[u8]) -> io::Result<()>,
) -> io::Result<Vec<Departure>> {
    let mut buffer = vec![0; payload_bytes * train.batch_packets() as usize];
    let mut departures = vec![];
    let mut begun = None;
    let mut first = 0;
    while first < train.packets {
        let packets = train.batch_packets().min(train.packets - first);
        let batch = &mut buffer[..payload_bytes * packets as usize];
        for (sequence, packet) in (first..).zip(batch.chunks_exact_mut(payload_bytes)) {
            write(sequence, packet);
        }
        // The train begins with its first packet: were that one late, the others would follow faster than asked.
        let begun = *begun.get_or_insert_with(Instant::now);
        wait_until(begun + Duration::from_nanos(train.offset_ns(first)));
        let at_ns = begun.elapsed().as_nanos() as u64;
        send(batch)?;
        departures.push(Departure {
            at_ns,
            first,
            packets,
        });
        first += packets;
    }
    Ok(departures)
}

/// Lets the kernel split what is sent at once into datagrams of `datagram_bytes` (UDP_SEGMENT, udp(7)).
///
/// # Errors
/// The kernel's.
pub fn set_udp_segment(socket: &UdpSocket, datagram_bytes: u16) -> io::Result<()> {
    setsockopt(socket, sockopt::UdpGsoSegment, &i32::from(datagram_bytes))?;
    Ok(())
}

/// Of each datagram of the train.
fn payload_bytes(socket: &UdpSocket, train: &Train) -> io::Result<usize> {
    let header_bytes = match socket.peer_addr()?.is_ipv4() {
        true => IPV4_UDP_BYTES,
        false => IPV6_UDP_BYTES,
    };
    room(train, header_bytes, Header::BYTES)
}

/// What is behind the headers of each packet, `least` bytes at least.
pub(crate) fn room(train: &Train, header_bytes: usize, least: usize) -> io::Result<usize> {
    let bytes = (train.packet_bytes as usize).checked_sub(header_bytes);
    let too_small = || io::Error::new(io::ErrorKind::InvalidInput, "packets too small for a train");
    bytes.filter(|bytes| *bytes >= least).ok_or_else(too_small)
}

fn wait_until(moment: Instant) {
    let left = moment.saturating_duration_since(Instant::now());
    if left > WAKE_UP {
        std::thread::sleep(left - WAKE_UP);
    }
    while Instant::now() < moment {
        spin_loop();
    }
}

/// All datagrams by one call; the kernel splits them (UDP_SEGMENT) where there are several.
fn send_batch(socket: &UdpSocket, datagrams: &[u8], payload_bytes: usize) -> io::Result<()> {
    let segment = u16::try_from(payload_bytes).map_err(io::Error::other)?;
    let several = [ControlMessage::UdpGsoSegments(&segment)];
    let control: &[ControlMessage] = match datagrams.len() > payload_bytes {
        true => &several,
        false => &[],
    };
    let parts = [IoSlice::new(datagrams)];
    until_sent(|| sendmsg::<()>(socket.as_raw_fd(), &parts, control, MsgFlags::empty(), None))
}

/// The error of an earlier datagram, which may be made up by others, or a full device: the datagram counts as lost.
pub(crate) fn until_sent(send: impl Fn() -> nix::Result<usize>) -> io::Result<()> {
    use Errno::{ECONNREFUSED, EHOSTUNREACH, EINTR, ENETUNREACH, ENOBUFS};
    loop {
        match send() {
            Ok(_) | Err(ECONNREFUSED | EHOSTUNREACH | ENETUNREACH | ENOBUFS) => return Ok(()),
            Err(EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

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
    let mut datagrams = Datagrams {
        socket,
        secret,
        number,
        payload_bytes,
        buffer: vec![0; payload_bytes * train.batch_packets() as usize],
    };
    paced(train, &mut datagrams)
}

/// For what waits for the device. Without the right to so much, the system's limit holds.
pub(crate) fn make_room(socket: &impl AsFd) -> nix::Result<()> {
    setsockopt(socket, sockopt::SndBufForce, &SEND_BUFFER_BYTES)
        .or_else(|_| setsockopt(socket, sockopt::SndBuf, &SEND_BUFFER_BYTES))
}

/// What is sent at once.
#[derive(Clone, Copy)]
pub(crate) struct Batch {
    /// Of its first packet.
    pub(crate) first: u32,
    pub(crate) packets: u32,
}

/// Packets of a train, sent batch by batch.
pub(crate) trait Batches {
    /// Before the batch is due.
    fn prepare(&mut self, batch: Batch);
    fn send(&mut self, batch: Batch) -> io::Result<()>;
}

/// Sends each batch when it is due.
pub(crate) fn paced(train: &Train, batches: &mut impl Batches) -> io::Result<Vec<Departure>> {
    let mut departures = vec![];
    let mut begun = None;
    let mut first = 0;
    while first < train.packets {
        let packets = train.batch_packets().min(train.packets - first);
        let batch = Batch { first, packets };
        batches.prepare(batch);
        // The train begins with its first packet: were that one late, the others would follow faster than asked.
        let begun = *begun.get_or_insert_with(Instant::now);
        wait_until(begun + Duration::from_nanos(train.offset_ns(first)));
        let at_ns = begun.elapsed().as_nanos() as u64;
        batches.send(batch)?;
        departures.push(Departure {
            at_ns,
            first,
            packets,
        });
        first += packets;
    }
    Ok(departures)
}

/// Datagrams of UDP, a call a batch.
struct Datagrams<'a> {
    socket: &'a UdpSocket,
    secret: &'a Secret,
    number: u32,
    payload_bytes: usize,
    buffer: Vec<u8>,
}

impl Batches for Datagrams<'_> {
    fn prepare(&mut self, batch: Batch) {
        let datagrams = self.buffer.chunks_exact_mut(self.payload_bytes);
        for (sequence, datagram) in (batch.first..batch.first + batch.packets).zip(datagrams) {
            let header = Header {
                train: self.number,
                sequence,
            };
            datagram[..Header::BYTES].copy_from_slice(&header.sealed(self.secret));
        }
    }

    fn send(&mut self, batch: Batch) -> io::Result<()> {
        let datagrams = &self.buffer[..self.payload_bytes * batch.packets as usize];
        send_batch(self.socket, datagrams, self.payload_bytes)
    }
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

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The other end of a connection of this host's kernel, behind a TUN device: a receiver that is this program, so that
//! all that the kernel does at an ACK is done within the one call that hands it over.
//!
//! What the kernel sends waits in order, as if it were on its way, until [`Peer::acknowledge`] lets two segments more arrive.

use anyhow::{Context, Result, ensure};
use fatpath_emulator::Tun;
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};

/// Small, so that the cost of the data themselves is: RFC 9293, 3.7.1.
pub const MSS_BYTES: u32 = 536;
/// What one ACK acknowledges (RFC 9293, 3.8.6.3).
const ACKED_BYTES: u32 = 2 * MSS_BYTES;

const PORT: u16 = 40_000;
/// Of our sequence numbers: we send no data.
const FIRST: u32 = 1000;
const SHIFT: u8 = 14;
const IP_BYTES: usize = 20;
const TCP_BYTES: usize = 20;
const SYN: u8 = 2;
const ACK: u8 = 16;
/// Partial checksums, which the kernel completes: linux/virtio_net.h.
const NEEDS_CSUM: u8 = 1;
const CSUM_OFFSET: u8 = 16;

/// A receiver of one connection.
pub struct Peer<'t> {
    tun: &'t Tun,
    own: SocketAddrV4,
    kernel: SocketAddrV4,
    buffer: Vec<u8>,
    /// On their way: first byte and length.
    on_way: VecDeque<(u32, u32)>,
    /// The end of what was sent, and how much of what came before it was sent again.
    sent_end: u32,
    resent_pkts: u32,
    /// All before it arrived.
    next: u32,
    /// Of what arrived, the end.
    highest: u32,
    /// Lost, and not arrived since: its first byte, and the one after its last.
    hole: Option<(u32, u32)>,
}

impl<'t> Peer<'t> {
    /// Opens a connection from an address behind the device to a listening socket.
    pub fn connect(tun: &'t Tun, own: Ipv4Addr, kernel: SocketAddrV4) -> Result<Peer<'t>> {
        let mut peer = Peer {
            tun,
            own: SocketAddrV4::new(own, PORT),
            kernel,
            buffer: vec![0; 1 << 17],
            on_way: VecDeque::new(),
            sent_end: 0,
            resent_pkts: 0,
            next: 0,
            highest: 0,
            hole: None,
        };
        while peer.tun.read(&mut peer.buffer)?.is_some() {}
        let mss = (MSS_BYTES as u16).to_be_bytes();
        let options = [2, 4, mss[0], mss[1], 1, 1, 4, 2, 1, 3, 3, SHIFT];
        peer.send(FIRST, SYN, &options)?;
        let answer = Duration::from_secs(1);
        let end = Instant::now() + answer;
        while peer.next == 0 {
            ensure!(Instant::now() < end, "no SYN-ACK within {answer:?}");
            peer.receive()?;
        }
        peer.send(FIRST + 1, ACK, &[])?;
        Ok(peer)
    }

    /// Segments that the kernel sent and that are not acknowledged.
    pub fn on_way_pkts(&self) -> u32 {
        let bytes: u32 = self.on_way.iter().map(|(_, length)| length).sum();
        bytes / MSS_BYTES
    }

    /// Segments that the kernel has sent a second time.
    pub fn resent_pkts(&self) -> u32 {
        self.resent_pkts
    }

    /// Whether a lost segment has not arrived yet.
    pub fn has_hole(&self) -> bool {
        self.hole.is_some()
    }

    /// The segment that would arrive next is lost.
    pub fn lose(&mut self) {
        if let Some((first, length)) = self.take(MSS_BYTES) {
            let end = first.wrapping_add(length);
            self.hole = Some((first, end));
            self.highest = end;
        }
    }

    /// Two segments arrive and are acknowledged; how long the kernel took for the ACK, and for all that it sends at it.
    /// `None` when nothing was on its way.
    pub fn acknowledge(&mut self) -> Result<Option<Duration>> {
        let Some((first, length)) = self.take(ACKED_BYTES) else {
            return Ok(None);
        };
        self.arrived(first, length);
        let took = match self.hole {
            Some((_, end)) => {
                let mut options = [1, 1, 5, 10, 0, 0, 0, 0, 0, 0, 0, 0];
                options[4..8].copy_from_slice(&end.to_be_bytes());
                options[8..].copy_from_slice(&self.highest.to_be_bytes());
                self.send(FIRST + 1, ACK, &options)?
            }
            None => self.send(FIRST + 1, ACK, &[])?,
        };
        self.receive()?;
        Ok(Some(took))
    }

    fn arrived(&mut self, first: u32, length: u32) {
        let end = first.wrapping_add(length);
        if end.wrapping_sub(self.highest) as i32 > 0 {
            self.highest = end;
        }
        if self.hole.is_some_and(|(lost, _)| lost == first) {
            self.hole = None;
        }
        if self.hole.is_none() {
            self.next = self.highest;
        }
    }

    /// Of what is first on its way, `most` bytes at most.
    fn take(&mut self, most: u32) -> Option<(u32, u32)> {
        let (first, length) = self.on_way.front_mut()?;
        let taken = (*first, most.min(*length));
        *first = first.wrapping_add(taken.1);
        *length -= taken.1;
        if *length == 0 {
            self.on_way.pop_front();
        }
        Some(taken)
    }

    /// All that the kernel has sent.
    pub fn receive(&mut self) -> Result<()> {
        while let Some(bytes) = self.tun.read(&mut self.buffer)? {
            let packet = self.buffer.get(Tun::VNET_BYTES..bytes);
            let packet = packet.context("a packet without a header")?;
            let Some((port, flags, first, length)) = segment(packet) else {
                continue;
            };
            if port != PORT {
                continue;
            }
            if flags & SYN != 0 {
                self.next = first.wrapping_add(1);
                self.highest = self.next;
                self.sent_end = self.next;
            } else if length > 0 {
                self.note_sent(first, length);
                self.on_way.push_back((first, length));
            }
        }
        Ok(())
    }

    fn note_sent(&mut self, first: u32, length: u32) {
        if first == self.sent_end {
            self.sent_end = first.wrapping_add(length);
        } else {
            self.resent_pkts += length.div_ceil(MSS_BYTES);
        }
    }

    fn send(&self, sequence: u32, flags: u8, options: &[u8]) -> Result<Duration> {
        let packet = self.packet(sequence, flags, options);
        let start = Instant::now();
        self.tun.write(&packet)?;
        Ok(start.elapsed())
    }

    /// With its virtio-net header; the checksum of TCP is partial.
    fn packet(&self, sequence: u32, flags: u8, options: &[u8]) -> Vec<u8> {
        let tcp_bytes = (TCP_BYTES + options.len()) as u8;
        let total = u16::from(tcp_bytes) + IP_BYTES as u16;
        let mut vnet = [0; Tun::VNET_BYTES];
        (vnet[0], vnet[6], vnet[8]) = (NEEDS_CSUM, IP_BYTES as u8, CSUM_OFFSET);
        let mut ip = [0; IP_BYTES];
        (ip[0], ip[8], ip[9]) = (0x45, 64, 6);
        ip[2..4].copy_from_slice(&total.to_be_bytes());
        ip[12..16].copy_from_slice(&self.own.ip().octets());
        ip[16..20].copy_from_slice(&self.kernel.ip().octets());
        let sum = !folded(&ip);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
        let mut tcp = [0; TCP_BYTES];
        tcp[..2].copy_from_slice(&self.own.port().to_be_bytes());
        tcp[2..4].copy_from_slice(&self.kernel.port().to_be_bytes());
        tcp[4..8].copy_from_slice(&sequence.to_be_bytes());
        if flags & ACK != 0 {
            tcp[8..12].copy_from_slice(&self.next.to_be_bytes());
        }
        (tcp[12], tcp[13]) = (tcp_bytes << 2, flags);
        tcp[14..16].fill(0xff);
        let pseudo = [&ip[12..20], &[0, 6, 0, tcp_bytes]].concat();
        tcp[16..18].copy_from_slice(&folded(&pseudo).to_be_bytes());
        [&vnet[..], &ip, &tcp, options].concat()
    }
}

/// Of an IPv4 packet of TCP: destination port, flags, sequence number, bytes of data.
fn segment(packet: &[u8]) -> Option<(u16, u8, u32, u32)> {
    let is_tcp = packet.first()? == &0x45 && packet.get(9)? == &6;
    let tcp = packet.get(IP_BYTES..).filter(|_| is_tcp)?;
    let header = usize::from(tcp.get(12)? >> 4) * 4;
    let port = u16::from_be_bytes(*tcp.get(2..)?.first_chunk()?);
    let sequence = u32::from_be_bytes(*tcp.get(4..)?.first_chunk()?);
    Some((
        port,
        tcp[13],
        sequence,
        tcp.len().checked_sub(header)? as u32,
    ))
}

/// The sum of RFC 1071, of an even number of bytes.
fn folded(bytes: &[u8]) -> u16 {
    let words = bytes.chunks_exact(2);
    let sum: u32 = words
        .map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])))
        .sum();
    let once = (sum & 0xffff) + (sum >> 16);
    ((once & 0xffff) + (once >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 1071, 3: the example's sum.
    #[test]
    fn the_sum_is_that_of_the_rfc() {
        assert_eq!(
            folded(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]),
            0xddf2
        );
    }

    #[test]
    fn a_segment_is_read_by_its_headers() {
        let mut packet = vec![0; 540];
        (packet[0], packet[9], packet[20 + 12], packet[20 + 13]) = (0x45, 6, 0x80, ACK);
        packet[22..24].copy_from_slice(&PORT.to_be_bytes());
        packet[24..28].copy_from_slice(&7u32.to_be_bytes());
        assert_eq!(segment(&packet), Some((PORT, ACK, 7, 488)));
        assert_eq!(segment(&packet[..30]), None);
    }
}

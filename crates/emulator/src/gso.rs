// SPDX-License-Identifier: MIT OR Apache-2.0
//! Super-packets as the kernel hands them over: a virtio-net header, then one IP packet whose
//! payload is that of many segments. Says where the segments lie, and splits them apart.
//!
//! Pure functions of bytes, safe on any bytes: what is not a well-formed super-packet is one opaque
//! segment. The reference is what the kernel's own segmentation does (`tcp_gso_segment`,
//! `__udp_gso_segment`, `inet_gso_segment`).

use fatpath_link::Wire;

use crate::bytes::{be_u16, set_be_u16};
use crate::checksum;
use crate::ip::{self, Family};
use crate::vnet;

const TCP_SEQUENCE: usize = 4;
const TCP_DATA_OFFSET: usize = 12;
const TCP_FLAGS: usize = 13;
const TCP_CHECKSUM: usize = 16;
const TCP_FIN_PSH: u8 = 0x01 | 0x08;
const TCP_CWR: u8 = 0x80;
const UDP_LEN: usize = 4;
const UDP_CHECKSUM: usize = 6;
const UDP_HEADER_BYTES: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Transport {
    Tcp,
    Udp,
}

/// Where things lie in a well-formed super-packet, of any number of its segments above one. Offsets
/// count from the IP header; no super-packet is longer than 65,535 bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Layout {
    family: Family,
    transport: Transport,
    transport_offset: u16,
    /// All headers, IP and transport.
    header_bytes: u16,
    /// Payload of every segment but the last.
    segment_payload_bytes: u16,
}

impl Layout {
    /// The layout of `frame` (virtio-net header and packet); `None` when it is one segment, or not
    /// well-formed.
    pub(crate) fn of(frame: &[u8]) -> Option<Layout> {
        let (vnet, packet) = frame.split_at_checked(vnet::BYTES)?;
        let (family, transport) = kind(vnet, packet)?;
        let (transport_offset, checksum_offset) = vnet::partial_checksum(vnet)?;
        let header_bytes = transport_offset + transport.header_bytes(packet, transport_offset)?;
        let segment_payload_bytes = vnet::gso_size(vnet);
        let well_formed = checksum_offset == transport.checksum_offset()
            && agrees(family, transport, packet, transport_offset)
            && segment_payload_bytes > 0
            && packet.len() > header_bytes + usize::from(segment_payload_bytes);
        // The packet is at most 65,535 bytes (`agrees`), so all that is within it is.
        well_formed.then_some(Layout {
            family,
            transport,
            transport_offset: transport_offset as u16,
            header_bytes: header_bytes as u16,
            segment_payload_bytes,
        })
    }

    /// The segments of a frame of `frame_bytes` with this layout.
    pub(crate) fn wire(&self, frame_bytes: usize) -> Wire {
        let payload_bytes = (frame_bytes - self.payload_start()) as u32;
        let full_bytes = u32::from(self.segment_payload_bytes);
        let segments = payload_bytes.div_ceil(full_bytes);
        let header_bytes = u32::from(self.header_bytes);
        Wire {
            segments,
            segment_bytes: header_bytes + full_bytes,
            last_bytes: header_bytes + payload_bytes - (segments - 1) * full_bytes,
        }
    }

    /// Length of a frame of the first `count` segments.
    pub(crate) fn front_bytes(&self, count: u32) -> usize {
        self.payload_start() + self.payload_bytes(count)
    }

    /// Copies the segments that fill `front` from the beginning of `frame`. Others follow them.
    pub(crate) fn copy_front(&self, frame: &[u8], front: &mut [u8]) {
        front.copy_from_slice(&frame[..front.len()]);
        self.set_lengths(front);
        if self.transport == Transport::Tcp {
            front[self.transport_start() + TCP_FLAGS] &= !TCP_FIN_PSH;
        }
    }

    /// Takes the first `count` segments off `frame`, over whose end the headers are written anew.
    /// Returns where in `frame` the rest now begins.
    pub(crate) fn drop_front(&self, frame: &mut [u8], count: u32) -> usize {
        let rest_start = self.payload_bytes(count);
        frame.copy_within(..self.payload_start(), rest_start);
        self.become_rest(&mut frame[rest_start..], count);
        rest_start
    }

    /// Where in a frame the transport header begins.
    fn transport_start(&self) -> usize {
        vnet::BYTES + usize::from(self.transport_offset)
    }

    /// Where in a frame the payload begins.
    fn payload_start(&self) -> usize {
        vnet::BYTES + usize::from(self.header_bytes)
    }

    fn payload_bytes(&self, count: u32) -> usize {
        count as usize * usize::from(self.segment_payload_bytes)
    }

    /// Headers of a packet after `count` segments: the mark of the beginning goes, and the counting
    /// fields advance.
    fn become_rest(&self, frame: &mut [u8], count: u32) {
        self.set_lengths(frame);
        vnet::clear_gso_ecn(frame);
        let packet = &mut frame[vnet::BYTES..];
        if self.family == Family::V4 {
            let id = be_u16(packet, ip::IPV4_ID).wrapping_add(count as u16);
            ip::set_ipv4_field(packet, ip::IPV4_ID, id);
        }
        if self.transport == Transport::Tcp {
            let tcp = &mut frame[self.transport_start()..];
            advance_sequence(tcp, self.payload_bytes(count) as u32);
            tcp[TCP_FLAGS] &= !TCP_CWR;
        }
    }

    /// Makes all length fields, and the checksums over them, those of a frame as long as `frame`.
    fn set_lengths(&self, frame: &mut [u8]) {
        if frame.len() <= self.front_bytes(1) {
            vnet::clear_gso(frame);
        }
        vnet::bound_header(frame, self.header_bytes);
        let packet = &mut frame[vnet::BYTES..];
        let old_bytes = self.family.len_bytes(packet) as u16 - self.transport_offset;
        self.family.set_len(packet, packet.len() as u16);
        let transport = &mut packet[usize::from(self.transport_offset)..];
        self.transport
            .set_len(transport, old_bytes, transport.len() as u16);
    }
}

/// The families that the GSO type and the version field agree on.
fn kind(vnet: &[u8], packet: &[u8]) -> Option<(Family, Transport)> {
    match (vnet::gso_type(vnet), Family::of(packet)?) {
        (vnet::GSO_TCPV4, Family::V4) => Some((Family::V4, Transport::Tcp)),
        (vnet::GSO_TCPV6, Family::V6) => Some((Family::V6, Transport::Tcp)),
        (vnet::GSO_UDP_L4, family) => Some((family, Transport::Udp)),
        _ => None,
    }
}

/// Whether the IP header fits the length of the packet and the place of the transport header.
/// IPv6 extension headers are not parsed: `transport_offset`, the kernel's word, counts.
fn agrees(family: Family, transport: Transport, packet: &[u8], transport_offset: usize) -> bool {
    let place_agrees = match family {
        Family::V4 => {
            transport_offset >= ip::IPV4_HEADER_BYTES
                && usize::from(packet[0] & 0x0f) * 4 == transport_offset
                && be_u16(packet, ip::IPV4_FRAGMENT) & 0x3fff == 0
                && packet[ip::IPV4_PROTOCOL] == transport.protocol()
        }
        Family::V6 => {
            let direct = transport_offset == ip::IPV6_HEADER_BYTES;
            transport_offset >= ip::IPV6_HEADER_BYTES
                && (!direct || packet[ip::IPV6_NEXT_HEADER] == transport.protocol())
        }
    };
    place_agrees
        && family.len_bytes(packet) == packet.len()
        && packet.len() <= usize::from(u16::MAX)
}

impl Transport {
    const fn protocol(self) -> u8 {
        match self {
            Transport::Tcp => ip::TCP,
            Transport::Udp => ip::UDP,
        }
    }

    const fn checksum_offset(self) -> usize {
        match self {
            Transport::Tcp => TCP_CHECKSUM,
            Transport::Udp => UDP_CHECKSUM,
        }
    }

    fn header_bytes(self, packet: &[u8], offset: usize) -> Option<usize> {
        match self {
            Transport::Tcp => {
                let bytes = usize::from(packet.get(offset + TCP_DATA_OFFSET)? >> 4) * 4;
                (bytes >= 20).then_some(bytes)
            }
            Transport::Udp => Some(UDP_HEADER_BYTES),
        }
    }

    /// Sets the length, header included, in UDP's own field and in the sum of the pseudo-header,
    /// which is all that the checksum field holds until the receiver or its device completes it.
    fn set_len(self, header: &mut [u8], old_bytes: u16, new_bytes: u16) {
        let field = self.checksum_offset();
        let sum = checksum::replacing(be_u16(header, field), old_bytes, new_bytes);
        set_be_u16(header, field, sum);
        if self == Transport::Udp {
            set_be_u16(header, UDP_LEN, new_bytes);
        }
    }
}

fn advance_sequence(tcp: &mut [u8], by_bytes: u32) {
    let field = &mut tcp[TCP_SEQUENCE..TCP_SEQUENCE + 4];
    let old = u32::from_be_bytes([field[0], field[1], field[2], field[3]]);
    field.copy_from_slice(&old.wrapping_add(by_bytes).to_be_bytes());
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Super-packets as the kernel hands them over: a virtio-net header, then one IP packet whose
//! payload is that of many segments. Says where the segments lie, and splits them apart.
//!
//! Pure functions of bytes, safe on any bytes: what is not a well-formed super-packet is one opaque
//! segment. The reference is what the kernel's own segmentation does (`tcp_gso_segment`,
//! `__udp_gso_segment`, `inet_gso_segment`).

use fatpath_link::Wire;

use crate::tun::Tun;

const VNET: usize = Tun::VNET_BYTES;

// struct virtio_net_hdr of linux/virtio_net.h; its integers are in host byte order.
const GSO_TYPE: usize = 1;
const GSO_SIZE: usize = 4;
const CSUM_START: usize = 6;
const CSUM_OFFSET: usize = 8;
const FLAG_NEEDS_CSUM: u8 = 1;
const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
const GSO_ECN: u8 = 0x80;

const IPV4_TOTAL_LEN: usize = 2;
const IPV4_ID: usize = 4;
const IPV4_FRAGMENT: usize = 6;
const IPV4_PROTOCOL: usize = 9;
const IPV4_CHECKSUM: usize = 10;
const IPV6_PAYLOAD_LEN: usize = 4;
const IPV6_NEXT_HEADER: usize = 6;
const IPV6_HEADER_BYTES: usize = 40;
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
enum Ip {
    V4,
    V6,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Transport {
    Tcp,
    Udp,
}

/// Where things lie in a well-formed super-packet. Offsets count from the IP header.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Layout {
    ip: Ip,
    transport: Transport,
    transport_offset: usize,
    /// All headers, IP and transport.
    header_bytes: usize,
    /// Payload of every segment but the last.
    segment_payload_bytes: usize,
}

impl Layout {
    /// The layout of `frame` (virtio-net header and packet); `None` when it is one segment, or not
    /// well-formed.
    pub(crate) fn of(frame: &[u8]) -> Option<Layout> {
        let (vnet, packet) = frame.split_at_checked(VNET)?;
        let (ip, transport) = kind(vnet[GSO_TYPE], packet)?;
        let transport_offset = usize::from(host_u16(vnet, CSUM_START));
        let header_bytes = transport_offset + transport.header_bytes(packet, transport_offset)?;
        let segment_payload_bytes = usize::from(host_u16(vnet, GSO_SIZE));
        let well_formed = vnet[0] & FLAG_NEEDS_CSUM != 0
            && usize::from(host_u16(vnet, CSUM_OFFSET)) == transport.checksum_offset()
            && ip.agrees(packet, transport, transport_offset)
            && segment_payload_bytes > 0
            && packet.len() > header_bytes + segment_payload_bytes;
        well_formed.then_some(Layout {
            ip,
            transport,
            transport_offset,
            header_bytes,
            segment_payload_bytes,
        })
    }

    /// The segments of a frame of `frame_bytes` with this layout.
    pub(crate) fn wire(&self, frame_bytes: usize) -> Wire {
        let payload_bytes = frame_bytes - VNET - self.header_bytes;
        let segments = payload_bytes.div_ceil(self.segment_payload_bytes);
        let last_payload_bytes = payload_bytes - (segments - 1) * self.segment_payload_bytes;
        // None of these passes 64 KiB.
        Wire {
            segments: segments as u32,
            segment_bytes: (self.header_bytes + self.segment_payload_bytes) as u32,
            last_bytes: (self.header_bytes + last_payload_bytes) as u32,
        }
    }

    /// Length of a frame of the first `count` segments.
    pub(crate) fn front_bytes(&self, count: u32) -> usize {
        VNET + self.header_bytes + self.payload_bytes(count)
    }

    /// Splits the first `count` segments of `frame` off into `front`, which has just the room.
    /// Returns where in `frame` the rest now begins, with headers of its own.
    pub(crate) fn split(&self, frame: &mut [u8], count: u32, front: &mut [u8]) -> usize {
        let rest_start = self.payload_bytes(count);
        front.copy_from_slice(&frame[..front.len()]);
        frame.copy_within(..VNET + self.header_bytes, rest_start);
        self.become_front(front);
        self.become_rest(&mut frame[rest_start..], count);
        rest_start
    }

    fn payload_bytes(&self, count: u32) -> usize {
        count as usize * self.segment_payload_bytes
    }

    /// Headers of a packet that others follow: the marks of the end go.
    fn become_front(&self, frame: &mut [u8]) {
        self.set_lengths(frame);
        if self.transport == Transport::Tcp {
            frame[VNET + self.transport_offset + TCP_FLAGS] &= !TCP_FIN_PSH;
        }
    }

    /// Headers of a packet after `count` segments: the mark of the beginning goes, and the counting
    /// fields advance.
    fn become_rest(&self, frame: &mut [u8], count: u32) {
        self.set_lengths(frame);
        frame[GSO_TYPE] &= !GSO_ECN;
        let packet = &mut frame[VNET..];
        if self.ip == Ip::V4 {
            let id = be_u16(packet, IPV4_ID).wrapping_add(count as u16);
            set_ipv4_field(packet, IPV4_ID, id);
        }
        if self.transport == Transport::Tcp {
            let tcp = &mut packet[self.transport_offset..];
            advance_sequence(tcp, self.payload_bytes(count) as u32);
            tcp[TCP_FLAGS] &= !TCP_CWR;
        }
    }

    /// Makes all length fields, and the checksums over them, those of a frame as long as `frame`.
    fn set_lengths(&self, frame: &mut [u8]) {
        if frame.len() <= VNET + self.header_bytes + self.segment_payload_bytes {
            frame[GSO_TYPE] = GSO_NONE;
            frame[GSO_SIZE..GSO_SIZE + 2].fill(0);
        }
        let packet = &mut frame[VNET..];
        // Super-packets are at most 65,535 bytes: `Ip::agrees` compared with a 16-bit field.
        let old_ip_len = self.ip.set_len(packet, packet.len() as u16);
        let headers_before = self.transport_offset as u16;
        let transport = &mut packet[self.transport_offset..];
        let (old, new) = (old_ip_len - headers_before, transport.len() as u16);
        self.transport.set_len(transport, old, new);
    }
}

/// The families that the GSO type and the version field agree on.
fn kind(gso_type: u8, packet: &[u8]) -> Option<(Ip, Transport)> {
    match (gso_type & !GSO_ECN, packet.first()? >> 4) {
        (GSO_TCPV4, 4) => Some((Ip::V4, Transport::Tcp)),
        (GSO_TCPV6, 6) => Some((Ip::V6, Transport::Tcp)),
        (GSO_UDP_L4, 4) => Some((Ip::V4, Transport::Udp)),
        (GSO_UDP_L4, 6) => Some((Ip::V6, Transport::Udp)),
        _ => None,
    }
}

impl Ip {
    /// Whether the IP header fits the length of the packet and the place of the transport header.
    /// IPv6 extension headers are not parsed: `transport_offset`, the kernel's word, counts.
    fn agrees(self, packet: &[u8], transport: Transport, transport_offset: usize) -> bool {
        match self {
            Ip::V4 => {
                transport_offset >= 20
                    && usize::from(packet[0] & 0x0f) * 4 == transport_offset
                    && usize::from(be_u16(packet, IPV4_TOTAL_LEN)) == packet.len()
                    && be_u16(packet, IPV4_FRAGMENT) & 0x3fff == 0
                    && packet[IPV4_PROTOCOL] == transport.protocol()
            }
            Ip::V6 => {
                let direct = transport_offset == IPV6_HEADER_BYTES;
                transport_offset >= IPV6_HEADER_BYTES
                    && packet.len() <= usize::from(u16::MAX)
                    && usize::from(be_u16(packet, IPV6_PAYLOAD_LEN)) + IPV6_HEADER_BYTES
                        == packet.len()
                    && (!direct || packet[IPV6_NEXT_HEADER] == transport.protocol())
            }
        }
    }

    /// Sets the length of the whole packet; returns what it was.
    fn set_len(self, packet: &mut [u8], len_bytes: u16) -> u16 {
        match self {
            Ip::V4 => {
                let old = be_u16(packet, IPV4_TOTAL_LEN);
                set_ipv4_field(packet, IPV4_TOTAL_LEN, len_bytes);
                old
            }
            Ip::V6 => {
                let fixed = IPV6_HEADER_BYTES as u16;
                let old = be_u16(packet, IPV6_PAYLOAD_LEN) + fixed;
                set_be_u16(packet, IPV6_PAYLOAD_LEN, len_bytes - fixed);
                old
            }
        }
    }
}

impl Transport {
    const fn protocol(self) -> u8 {
        match self {
            Transport::Tcp => 6,
            Transport::Udp => 17,
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
        let sum = be_u16(header, self.checksum_offset());
        set_be_u16(
            header,
            self.checksum_offset(),
            sum_replacing(sum, old_bytes, new_bytes),
        );
        if self == Transport::Udp {
            set_be_u16(header, UDP_LEN, new_bytes);
        }
    }
}

/// Sets a 16-bit field and corrects the header checksum for it (RFC 1624, equation 3).
fn set_ipv4_field(packet: &mut [u8], offset: usize, value: u16) {
    let sum = !be_u16(packet, IPV4_CHECKSUM);
    let sum = sum_replacing(sum, be_u16(packet, offset), value);
    set_be_u16(packet, offset, value);
    set_be_u16(packet, IPV4_CHECKSUM, !sum);
}

fn advance_sequence(tcp: &mut [u8], by_bytes: u32) {
    let field = &mut tcp[TCP_SEQUENCE..TCP_SEQUENCE + 4];
    let old = u32::from_be_bytes([field[0], field[1], field[2], field[3]]);
    field.copy_from_slice(&old.wrapping_add(by_bytes).to_be_bytes());
}

/// A ones' complement sum in which one term is replaced by another.
fn sum_replacing(sum: u16, old: u16, new: u16) -> u16 {
    let wide = u32::from(sum) + u32::from(!old) + u32::from(new);
    let folded = (wide & 0xffff) + (wide >> 16);
    ((folded & 0xffff) + (folded >> 16)) as u16
}

fn be_u16(bytes: &[u8], offset: usize) -> u16 {
    u16::from_be_bytes([bytes[offset], bytes[offset + 1]])
}

fn set_be_u16(bytes: &mut [u8], offset: usize, value: u16) {
    bytes[offset..offset + 2].copy_from_slice(&value.to_be_bytes());
}

fn host_u16(bytes: &[u8], offset: usize) -> u16 {
    u16::from_ne_bytes([bytes[offset], bytes[offset + 1]])
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Super-packets built with etherparse, as the kernel would hand them over.

use etherparse::checksum::Sum16BitWords;
use etherparse::{IpHeaders, Ipv4Header, Ipv6FlowLabel, Ipv6Header, PacketBuilder, TcpHeader};
use proptest::prelude::*;

use crate::buffer::Pool;
use crate::frame::Frame;

pub const SOURCE_V4: [u8; 4] = [10, 1, 2, 3];
pub const TARGET_V4: [u8; 4] = [10, 4, 5, 6];
pub const SOURCE_V6: [u8; 16] = [0xfd, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
pub const TARGET_V6: [u8; 16] = [0xfd, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 1, 2, 3, 4, 5];
pub const FIRST_SEQUENCE: u32 = u32::MAX - 10_000;
pub const FIRST_ID: u16 = u16::MAX - 3;
pub const VNET: usize = 10;
pub const NEEDS_CSUM: u8 = 1;
pub const ECN: u8 = 0x80;

/// A super-packet to build.
#[derive(Clone, Debug)]
pub struct Super {
    pub ipv6: bool,
    pub udp: bool,
    /// IPv6 destination options before the transport header.
    pub extension: bool,
    /// IPv4 type of service, IPv6 traffic class.
    pub tos: u8,
    pub gso_size: u16,
    pub flags: u8,
    pub options: Vec<u8>,
    pub payload: Vec<u8>,
}

pub const FIN: u8 = 0x01;
pub const PSH: u8 = 0x08;
pub const ACK: u8 = 0x10;
pub const CWR: u8 = 0x80;

pub fn supers() -> impl Strategy<Value = Super> {
    let payload = (1..1460u16, 2..45usize).prop_flat_map(|(gso_size, segments)| {
        let shortest = usize::from(gso_size) + 1;
        let longest = (usize::from(gso_size) * segments).min(65_000).max(shortest);
        (
            Just(gso_size),
            (shortest..=longest, any::<u32>()).prop_map(noise),
        )
    });
    let flags = prop::sample::select(vec![ACK, ACK | PSH, ACK | FIN | PSH, ACK | CWR | PSH]);
    let options = (0..11usize).prop_map(|words| vec![1u8; 4 * words]);
    let kinds = (any::<[bool; 3]>(), any::<u8>());
    (kinds, payload, flags, options).prop_map(
        |(([ipv6, udp, extension], tos), (gso_size, payload), flags, options)| Super {
            ipv6,
            udp,
            extension: extension && ipv6,
            tos,
            gso_size,
            flags,
            options,
            payload,
        },
    )
}

/// So many bytes that look random. To draw each one takes seconds.
fn noise((len_bytes, seed): (usize, u32)) -> Vec<u8> {
    let mut state = seed;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    std::iter::repeat_with(next).take(len_bytes).collect()
}

impl Super {
    pub fn packet(&self) -> Vec<u8> {
        let ip = PacketBuilder::ip(match self.ipv6 {
            true => ipv6(self.tos),
            false => ipv4(self.tos),
        });
        let mut packet = vec![];
        match self.udp {
            true => ip
                .udp(1000, 2000)
                .write(&mut packet, &self.payload)
                .unwrap(),
            false => ip
                .tcp_header(self.tcp())
                .write(&mut packet, &self.payload)
                .unwrap(),
        }
        if self.extension {
            add_extension(&mut packet);
        }
        packet
    }

    fn tcp(&self) -> TcpHeader {
        let mut tcp = TcpHeader::new(1000, 2000, FIRST_SEQUENCE, 5000);
        tcp.acknowledgment_number = 77;
        tcp.set_options_raw(&self.options).unwrap();
        tcp.ack = true;
        tcp.psh = self.flags & PSH != 0;
        tcp.fin = self.flags & FIN != 0;
        tcp.cwr = self.flags & CWR != 0;
        tcp
    }

    pub fn transport_offset(&self) -> usize {
        if self.ipv6 {
            40 + 8 * usize::from(self.extension)
        } else {
            20
        }
    }

    pub fn header_bytes(&self) -> usize {
        let transport = if self.udp { 8 } else { 20 + self.options.len() };
        self.transport_offset() + transport
    }

    pub fn gso_type(&self) -> u8 {
        let ecn = if self.flags & CWR != 0 && !self.udp {
            ECN
        } else {
            0
        };
        match (self.udp, self.ipv6) {
            (true, _) => 5,
            (false, true) => 4 | ecn,
            (false, false) => 1 | ecn,
        }
    }

    /// The frame as the kernel would give it: only the pseudo-header in the transport checksum.
    pub fn frame_bytes(&self) -> Vec<u8> {
        let checksum_offset: u16 = if self.udp { 6 } else { 16 };
        let mut packet = self.packet();
        let field = self.transport_offset() + usize::from(checksum_offset);
        let pseudo = pseudo_sum(self, (packet.len() - self.transport_offset()) as u16);
        packet[field..field + 2].copy_from_slice(&pseudo.to_be_bytes());
        let mut frame = vec![NEEDS_CSUM, self.gso_type()];
        let numbers = [
            self.header_bytes() as u16,
            self.gso_size,
            self.transport_offset() as u16,
        ];
        numbers
            .iter()
            .for_each(|number| frame.extend(number.to_ne_bytes()));
        frame.extend(checksum_offset.to_ne_bytes());
        frame.extend(packet);
        frame
    }

    pub fn frame(&self) -> Frame {
        frame_of(&self.frame_bytes())
    }
}

fn ipv4(tos: u8) -> IpHeaders {
    let header = Ipv4Header {
        source: SOURCE_V4,
        destination: TARGET_V4,
        identification: FIRST_ID,
        time_to_live: 60,
        dont_fragment: true,
        dscp: (tos >> 2).try_into().unwrap(),
        ecn: (tos & 3).try_into().unwrap(),
        ..Default::default()
    };
    IpHeaders::Ipv4(header, Default::default())
}

fn ipv6(traffic_class: u8) -> IpHeaders {
    let header = Ipv6Header {
        source: SOURCE_V6,
        destination: TARGET_V6,
        hop_limit: 60,
        traffic_class,
        flow_label: Ipv6FlowLabel::try_new(0xabcde).unwrap(),
        ..Default::default()
    };
    IpHeaders::Ipv6(header, Default::default())
}

fn add_extension(packet: &mut Vec<u8>) {
    const DESTINATION_OPTIONS: u8 = 60;
    let next_header = std::mem::replace(&mut packet[6], DESTINATION_OPTIONS);
    packet.splice(40..40, [next_header, 0, 1, 4, 0, 0, 0, 0]);
    let payload_len = (packet.len() - 40) as u16;
    packet[4..6].copy_from_slice(&payload_len.to_be_bytes());
}

fn pseudo_sum(packet: &Super, len_bytes: u16) -> u16 {
    let sum = match packet.ipv6 {
        true => Sum16BitWords::new()
            .add_16bytes(SOURCE_V6)
            .add_16bytes(TARGET_V6),
        false => Sum16BitWords::new()
            .add_slice(&SOURCE_V4)
            .add_slice(&TARGET_V4),
    };
    let protocol = if packet.udp { 17 } else { 6 };
    !sum.add_2bytes([0, protocol])
        .add_2bytes(len_bytes.to_be_bytes())
        .ones_complement()
        .to_be()
}

pub fn frame_of(bytes: &[u8]) -> Frame {
    let mut buffer = Pool::default().take(bytes.len());
    buffer[..bytes.len()].copy_from_slice(bytes);
    Frame::new(buffer, bytes.len())
}

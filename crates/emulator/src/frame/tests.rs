// SPDX-License-Identifier: MIT OR Apache-2.0
//! Super-packets, split in every way, against an independent parser (etherparse).

use etherparse::checksum::Sum16BitWords;
use etherparse::{NetSlice, PacketBuilder, SlicedPacket, TcpHeader, TransportSlice};
use fatpath_link::Packet;
use proptest::collection::vec;
use proptest::prelude::*;

use super::Frame;
use crate::buffer::Pool;

const SOURCE_V4: [u8; 4] = [10, 1, 2, 3];
const TARGET_V4: [u8; 4] = [10, 4, 5, 6];
const SOURCE_V6: [u8; 16] = [0xfd, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
const TARGET_V6: [u8; 16] = [0xfd, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 1, 2, 3, 4, 5];
const FIRST_SEQUENCE: u32 = u32::MAX - 10_000;
const FIRST_ID: u16 = u16::MAX - 3;
const VNET: usize = 10;
const NEEDS_CSUM: u8 = 1;
const ECN: u8 = 0x80;

/// A super-packet to build.
#[derive(Clone, Debug)]
struct Super {
    ipv6: bool,
    udp: bool,
    /// IPv6 destination options before the transport header.
    extension: bool,
    gso_size: u16,
    flags: u8,
    options: Vec<u8>,
    payload: Vec<u8>,
}

const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const ACK: u8 = 0x10;
const CWR: u8 = 0x80;

fn supers() -> impl Strategy<Value = Super> {
    let payload = (1..1460u16, 2..45usize).prop_flat_map(|(gso_size, segments)| {
        let longest = (usize::from(gso_size) * segments).min(65_000);
        let shortest = usize::from(gso_size) + 1;
        (
            Just(gso_size),
            vec(any::<u8>(), shortest..=longest.max(shortest)),
        )
    });
    let flags = prop::sample::select(vec![ACK, ACK | PSH, ACK | FIN | PSH, ACK | CWR | PSH]);
    let options = (0..11usize).prop_map(|words| vec![1u8; 4 * words]);
    (any::<[bool; 3]>(), payload, flags, options).prop_map(
        |([ipv6, udp, extension], (gso_size, payload), flags, options)| Super {
            ipv6,
            udp,
            extension: extension && ipv6,
            gso_size,
            flags,
            options,
            payload,
        },
    )
}

impl Super {
    fn packet(&self) -> Vec<u8> {
        let ip = match self.ipv6 {
            true => PacketBuilder::ipv6(SOURCE_V6, TARGET_V6, 60),
            false => PacketBuilder::ip(ipv4()),
        };
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

    fn transport_offset(&self) -> usize {
        if self.ipv6 {
            40 + 8 * usize::from(self.extension)
        } else {
            20
        }
    }

    fn header_bytes(&self) -> usize {
        let transport = if self.udp { 8 } else { 20 + self.options.len() };
        self.transport_offset() + transport
    }

    fn gso_type(&self) -> u8 {
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
    fn frame_bytes(&self) -> Vec<u8> {
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

    fn frame(&self) -> Frame {
        frame_of(&self.frame_bytes())
    }
}

fn ipv4() -> etherparse::IpHeaders {
    let header = etherparse::Ipv4Header {
        source: SOURCE_V4,
        destination: TARGET_V4,
        identification: FIRST_ID,
        time_to_live: 60,
        dont_fragment: true,
        ..Default::default()
    };
    etherparse::IpHeaders::Ipv4(header, Default::default())
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

fn frame_of(bytes: &[u8]) -> Frame {
    let mut buffer = Pool::default().take(bytes.len());
    buffer[..bytes.len()].copy_from_slice(bytes);
    Frame::new(buffer, bytes.len())
}

/// Splits a frame at `cuts`, each a share of what is left.
fn split(mut frame: Frame, cuts: &[f64]) -> Vec<Frame> {
    let mut pieces = vec![];
    for cut in cuts {
        let segments = frame.wire().segments;
        if segments > 1 {
            let count = 1 + (f64::from(segments - 1) * cut) as u32;
            pieces.push(frame.split_front(count.min(segments - 1)));
        }
    }
    pieces.push(frame);
    pieces
}

/// The packet of a frame with its transport checksum completed, as a receiving device would.
fn completed(frame: &Frame) -> Vec<u8> {
    let (vnet, packet) = frame.bytes().split_at(VNET);
    assert_eq!(vnet[0], NEEDS_CSUM);
    let number = |offset: usize| usize::from(u16::from_ne_bytes([vnet[offset], vnet[offset + 1]]));
    let (start, field) = (number(6), number(6) + number(8));
    let sum = Sum16BitWords::new()
        .add_slice(&packet[start..])
        .to_ones_complement_with_no_zero();
    let mut packet = packet.to_vec();
    packet[field..field + 2].copy_from_slice(&sum.to_be().to_be_bytes());
    packet
}

/// Checks all lengths and checksums of a packet; returns its payload.
fn verified_payload(packet: &[u8], origin: &Super, offset_bytes: usize, is_last: bool) -> Vec<u8> {
    let sliced = SlicedPacket::from_ip(packet).unwrap();
    let segments_before = (offset_bytes / usize::from(origin.gso_size)) as u16;
    if let Some(NetSlice::Ipv4(ipv4)) = &sliced.net {
        let header = ipv4.header().to_header();
        assert_eq!(header.header_checksum, header.calc_header_checksum());
        assert_eq!(
            header.identification,
            FIRST_ID.wrapping_add(segments_before)
        );
        assert_eq!(usize::from(header.total_len), packet.len());
    }
    match sliced.transport.unwrap() {
        TransportSlice::Tcp(tcp) => {
            let expected = match origin.ipv6 {
                true => tcp.calc_checksum_ipv6(SOURCE_V6, TARGET_V6).unwrap(),
                false => tcp.calc_checksum_ipv4(SOURCE_V4, TARGET_V4).unwrap(),
            };
            assert!(
                same_sum(tcp.checksum(), expected),
                "{} {expected}",
                tcp.checksum()
            );
            assert_eq!(
                tcp.sequence_number(),
                FIRST_SEQUENCE.wrapping_add(offset_bytes as u32)
            );
            assert_eq!(tcp.cwr(), origin.flags & CWR != 0 && offset_bytes == 0);
            assert_eq!(tcp.psh(), origin.flags & PSH != 0 && is_last);
            assert_eq!(tcp.fin(), origin.flags & FIN != 0 && is_last);
            assert!(tcp.ack() && tcp.acknowledgment_number() == 77);
            assert_eq!(tcp.options(), origin.options);
            tcp.payload().to_vec()
        }
        TransportSlice::Udp(udp) => {
            let (header, payload) = (udp.to_header(), udp.payload());
            let expected = match origin.ipv6 {
                true => header
                    .calc_checksum_ipv6_raw(SOURCE_V6, TARGET_V6, payload)
                    .unwrap(),
                false => header
                    .calc_checksum_ipv4_raw(SOURCE_V4, TARGET_V4, payload)
                    .unwrap(),
            };
            assert!(
                same_sum(header.checksum, expected),
                "{} {expected}",
                header.checksum
            );
            assert_eq!(usize::from(header.length), 8 + payload.len());
            payload.to_vec()
        }
        other => panic!("{other:?}"),
    }
}

/// 0 and 0xffff are one number in ones' complement; only UDP tells them apart.
fn same_sum(one: u16, other: u16) -> bool {
    one % 0xffff == other % 0xffff
}

fn assert_gso_fields(frame: &Frame, origin: &Super, is_first: bool) {
    let segments = frame.wire().segments;
    let vnet = &frame.bytes()[..VNET];
    let ecn = if is_first { 0xff } else { !ECN };
    let gso_type = if segments > 1 {
        origin.gso_type() & ecn
    } else {
        0
    };
    let gso_size = if segments > 1 { origin.gso_size } else { 0 };
    assert_eq!(vnet[1], gso_type);
    assert_eq!(u16::from_ne_bytes([vnet[4], vnet[5]]), gso_size);
}

proptest! {
    #[test]
    fn pieces_are_right_and_join_to_the_whole(
        origin in supers(),
        cuts in vec(0.0..1.0f64, 0..8),
    ) {
        let pieces = split(origin.frame(), &cuts);
        let mut payload = vec![];
        for (index, piece) in pieces.iter().enumerate() {
            let (is_first, is_last) = (index == 0, index + 1 == pieces.len());
            assert_gso_fields(piece, &origin, is_first);
            let packet = completed(piece);
            payload.extend(verified_payload(&packet, &origin, payload.len(), is_last));
        }
        prop_assert_eq!(payload, origin.payload);
    }

    #[test]
    fn the_wire_is_what_splitting_to_the_last_segment_gives(origin in supers()) {
        let mut frame = origin.frame();
        let wire = frame.wire();
        let payload_bytes = origin.payload.len();
        prop_assert_eq!(wire.segments as usize, payload_bytes.div_ceil(origin.gso_size.into()));
        let headers = wire.segments as usize * origin.header_bytes();
        prop_assert_eq!(wire.len_bytes(0) as usize, payload_bytes + headers);
        for _ in 1..wire.segments {
            let front = frame.split_front(1);
            prop_assert_eq!(front.wire().len_bytes(0), u64::from(wire.segment_bytes));
            prop_assert_eq!(front.bytes().len() - VNET, wire.segment_bytes as usize);
        }
        prop_assert_eq!(frame.wire().len_bytes(0), u64::from(wire.last_bytes));
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in vec(any::<u8>(), VNET..300), cuts in vec(0.0..1.0f64, 8)) {
        split(frame_of(&bytes), &cuts);
    }

    #[test]
    fn no_damaged_super_packet_makes_it_panic_or_lose_a_byte(
        origin in supers(),
        damage in vec((0..80usize, any::<u8>()), 1..4),
        kept in 0.0..1.0f64,
        cuts in vec(0.0..1.0f64, 8),
    ) {
        let mut bytes = origin.frame_bytes();
        damage.iter().for_each(|(offset, value)| {
            if let Some(byte) = bytes.get_mut(*offset) {
                *byte = *value;
            }
        });
        if kept > 0.5 {
            bytes.truncate(VNET.max((bytes.len() as f64 * kept) as usize));
        }
        let whole = frame_of(&bytes).wire().len_bytes(0);
        let pieces = split(frame_of(&bytes), &cuts);
        let sum: u64 = pieces.iter().map(|piece| piece.wire().len_bytes(0)).sum();
        prop_assert_eq!(sum, whole);
        let written: usize = pieces.iter().map(|piece| piece.bytes().len()).sum();
        prop_assert!(written >= bytes.len());
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What cells ask of packets besides splitting: marks, flows, copies, damage, messages.

use std::net::SocketAddr;

use etherparse::{
    Icmpv4Type, Icmpv6Type, IpFragOffset, Ipv4Header, NetSlice, PacketBuilder, SlicedPacket,
    TransportSlice, icmpv4::DestUnreachableHeader,
};
use fatpath_link::{Ecn, Flow, Packet};
use proptest::collection::vec;
use proptest::prelude::*;

use super::packets::*;
use super::{completed, same_sum, split, verified_payload};
use crate::frame::Frame;

/// A frame of a packet with complete checksums.
fn single(packet: &[u8]) -> Frame {
    frame_of(&[&[0; VNET][..], packet].concat())
}

fn flow_of(origin: &Super) -> Flow {
    let (source, destination) = match origin.ipv6 {
        true => (
            SocketAddr::from((SOURCE_V6, 1000)),
            SocketAddr::from((TARGET_V6, 2000)),
        ),
        false => (
            SocketAddr::from((SOURCE_V4, 1000)),
            SocketAddr::from((TARGET_V4, 2000)),
        ),
    };
    let protocol = if origin.udp { 17 } else { 6 };
    Flow {
        source,
        destination,
        protocol,
    }
}

fn tos_of(packet: &[u8]) -> u8 {
    match SlicedPacket::from_ip(packet).unwrap().net.unwrap() {
        NetSlice::Ipv4(ipv4) => {
            let header = ipv4.header();
            header.dcp().value() << 2 | header.ecn().value()
        }
        NetSlice::Ipv6(ipv6) => ipv6.header().traffic_class(),
        other => panic!("{other:?}"),
    }
}

/// A frame of one segment, as the kernel would give it: of TCP or UDP, with a partial checksum.
fn segments() -> impl Strategy<Value = (Super, Frame)> {
    supers().prop_map(|origin| {
        let front = origin.frame().split_front(1);
        (origin, front)
    })
}

/// Whether the transport checksum of a packet with the addresses of these tests is right.
fn is_right(packet: &[u8]) -> bool {
    let sliced = SlicedPacket::from_ip(packet).unwrap();
    let is_v4 = matches!(sliced.net, Some(NetSlice::Ipv4(_)));
    match sliced.transport.unwrap() {
        TransportSlice::Tcp(tcp) => {
            let expected = match is_v4 {
                true => tcp.calc_checksum_ipv4(SOURCE_V4, TARGET_V4),
                false => tcp.calc_checksum_ipv6(SOURCE_V6, TARGET_V6),
            };
            same_sum(expected.unwrap(), tcp.checksum())
        }
        TransportSlice::Udp(udp) => {
            let (header, payload) = (udp.to_header(), udp.payload());
            let expected = match is_v4 {
                true => header.calc_checksum_ipv4_raw(SOURCE_V4, TARGET_V4, payload),
                false => header.calc_checksum_ipv6_raw(SOURCE_V6, TARGET_V6, payload),
            };
            same_sum(expected.unwrap(), udp.checksum())
        }
        other => panic!("{other:?}"),
    }
}

fn flipped_bits(one: &[u8], other: &[u8]) -> Vec<usize> {
    assert_eq!(one.len(), other.len());
    let differs = |bit: &usize| (one[bit / 8] ^ other[bit / 8]) >> (bit % 8) & 1 == 1;
    (0..8 * one.len()).filter(differs).collect()
}

proptest! {
    #[test]
    fn a_mark_is_in_every_segment_and_nothing_else_changes(
        origin in supers(),
        cuts in vec(0.0..1.0f64, 0..4),
    ) {
        let mut frame = origin.frame();
        let expected = [Ecn::NotCapable, Ecn::Capable, Ecn::Capable, Ecn::Marked];
        prop_assert_eq!(frame.ecn(), expected[usize::from(origin.tos & 3)]);
        frame.mark();
        prop_assert_eq!(frame.ecn(), Ecn::Marked);
        let pieces = split(frame, &cuts);
        let mut payload = vec![];
        for (index, piece) in pieces.iter().enumerate() {
            let packet = completed(piece);
            prop_assert_eq!(tos_of(&packet), origin.tos | 3);
            let is_last = index + 1 == pieces.len();
            payload.extend(verified_payload(&packet, &origin, payload.len(), is_last));
        }
        prop_assert_eq!(payload, origin.payload);
    }

    /// The checksum of the IPv4 header with it, and nothing else.
    #[test]
    fn the_dscp_is_set_in_every_piece(origin in supers(), dscp in 0..=63u8, cut in 0.0..1.0f64) {
        let mut frame = origin.frame();
        frame.set_dscp(dscp);
        let mut payload = vec![];
        let pieces = split(frame, &[cut]);
        for (index, piece) in pieces.iter().enumerate() {
            let packet = completed(piece);
            prop_assert_eq!(tos_of(&packet), dscp << 2 | origin.tos & 3);
            let is_last = index + 1 == pieces.len();
            payload.extend(verified_payload(&packet, &origin, payload.len(), is_last));
        }
        prop_assert_eq!(payload, origin.payload);
    }

    #[test]
    fn every_piece_is_of_the_flow_and_has_data(origin in supers(), cut in 0.0..1.0f64) {
        for piece in split(origin.frame(), &[cut]) {
            prop_assert_eq!(piece.flow(), Some(flow_of(&origin)));
            prop_assert!(piece.has_data());
        }
    }

    #[test]
    fn a_duplicate_is_the_same_and_its_own(origin in supers(), cut in 0.0..1.0f64) {
        for piece in split(origin.frame(), &[cut]) {
            let mut copy = piece.duplicate();
            prop_assert_eq!(copy.bytes(), piece.bytes());
            prop_assert_eq!(copy.wire(), piece.wire());
            let before = piece.bytes().to_vec();
            copy.mark();
            copy.bytes_mut().fill(0);
            prop_assert_eq!(piece.bytes(), before);
        }
    }

    #[test]
    fn corruption_flips_one_bit_that_the_receiver_must_find(
        (origin, mut frame) in segments(),
        random in any::<u64>(),
    ) {
        let right = completed(&frame);
        prop_assert!(is_right(&right));
        frame.corrupt(random);
        let (vnet, wrong) = frame.bytes().split_at(VNET);
        prop_assert_eq!(vnet, [0; VNET], "nothing tells the receiver to trust it");
        let flipped = flipped_bits(&right, wrong);
        prop_assert_eq!(flipped.len(), 1);
        let offset = flipped[0] / 8;
        prop_assert!(offset >= origin.transport_offset());
        // Length of UDP and its checksum, which may mean none; data offset of TCP.
        let spared = if origin.udp { 4..8 } else { 12..13 };
        prop_assert!(!spared.contains(&(offset - origin.transport_offset())));
        prop_assert!(!is_right(wrong));
    }

    #[test]
    fn a_datagram_without_checksum_gets_a_wrong_one(
        payload in vec(any::<u8>(), 0..50),
        random in any::<u64>(),
        is_all_but_right in any::<bool>(),
    ) {
        let mut packet = udp_v4(&payload);
        if is_all_but_right && payload.len() >= 2 {
            // The bit that `random` flips in a checksum of 0 would make it right.
            let bit = random % 16;
            let checksum = (1u16 << (bit % 8) << (8 * (1 - bit / 8))).to_be_bytes();
            let right = u16::from_be_bytes([packet[26], packet[27]]);
            let word = u16::from_be_bytes([packet[28], packet[29]]);
            let sum = u32::from(word) + u32::from(right) + u32::from(!u16::from_be_bytes(checksum));
            let word = ((sum & 0xffff) + (sum >> 16)) as u16;
            packet[28..30].copy_from_slice(&word.to_be_bytes());
            packet[26..28].copy_from_slice(&checksum);
            prop_assume!(is_right(&packet));
        }
        packet[26..28].fill(0);
        let mut frame = single(&packet);
        frame.corrupt(random);
        let wrong = &frame.bytes()[VNET..];
        let flipped = flipped_bits(&packet, wrong);
        prop_assert_eq!(flipped.len(), 1);
        prop_assert!((26..28).contains(&(flipped[0] / 8)));
        prop_assert!(!is_right(wrong));
    }

    #[test]
    fn too_big_quotes_the_first_segment_to_its_sender(
        origin in supers(),
        mtu_bytes in 1280..65_535u32,
    ) {
        let message = origin.frame().too_big(mtu_bytes).unwrap();
        let first = completed(&origin.frame().split_front(1));
        let (vnet, packet) = message.bytes().split_at(VNET);
        prop_assert_eq!(vnet, [0; VNET]);
        let quote = match origin.ipv6 {
            true => verified_quote_v6(packet, mtu_bytes),
            false => verified_quote_v4(packet, mtu_bytes as u16),
        };
        let longest = if origin.ipv6 { 1280 - 48 } else { 576 - 28 };
        prop_assert_eq!(quote, &first[..first.len().min(longest)]);
        prop_assert!(message.too_big(68).is_none());
    }
}

fn verified_quote_v4(packet: &[u8], mtu: u16) -> Vec<u8> {
    let sliced = SlicedPacket::from_ip(packet).unwrap();
    let Some(NetSlice::Ipv4(ipv4)) = &sliced.net else {
        panic!("{sliced:?}")
    };
    let header = ipv4.header().to_header();
    assert!(same_sum(
        header.header_checksum,
        header.calc_header_checksum()
    ));
    assert_eq!(usize::from(header.total_len), packet.len());
    assert_eq!((header.source, header.destination), (TARGET_V4, SOURCE_V4));
    let Some(TransportSlice::Icmpv4(icmp)) = &sliced.transport else {
        panic!("{sliced:?}")
    };
    let told = DestUnreachableHeader::FragmentationNeeded { next_hop_mtu: mtu };
    assert_eq!(icmp.icmp_type(), Icmpv4Type::DestinationUnreachable(told));
    assert!(same_sum(
        icmp.checksum(),
        icmp.icmp_type().calc_checksum(icmp.payload())
    ));
    icmp.payload().to_vec()
}

fn verified_quote_v6(packet: &[u8], mtu: u32) -> Vec<u8> {
    let sliced = SlicedPacket::from_ip(packet).unwrap();
    let Some(NetSlice::Ipv6(ipv6)) = &sliced.net else {
        panic!("{sliced:?}")
    };
    let header = ipv6.header().to_header();
    assert_eq!(usize::from(header.payload_length), packet.len() - 40);
    assert_eq!((header.source, header.destination), (TARGET_V6, SOURCE_V6));
    let Some(TransportSlice::Icmpv6(icmp)) = &sliced.transport else {
        panic!("{sliced:?}")
    };
    assert_eq!(icmp.icmp_type(), Icmpv6Type::PacketTooBig { mtu });
    assert!(icmp.is_checksum_valid(header.source, header.destination));
    icmp.payload().to_vec()
}

fn udp_v4(payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![];
    PacketBuilder::ipv4(SOURCE_V4, TARGET_V4, 60)
        .udp(1000, 2000)
        .write(&mut packet, payload)
        .unwrap();
    packet
}

/// A UDP packet over IPv4 whose header is changed by `change`.
fn udp_v4_with(change: impl FnOnce(&mut Ipv4Header)) -> Vec<u8> {
    let packet = udp_v4(&[1; 100]);
    let mut header = Ipv4Header::from_slice(&packet).unwrap().0;
    change(&mut header);
    [&header.to_bytes()[..], &packet[20..]].concat()
}

fn fragment(offset_8_bytes: u16) -> Vec<u8> {
    udp_v4_with(|header| {
        header.more_fragments = true;
        header.fragment_offset = IpFragOffset::try_new(offset_8_bytes).unwrap();
    })
}

/// A UDP packet over IPv6 with a fragment header.
fn fragment_v6(offset_8_bytes: u16) -> Vec<u8> {
    let mut packet = vec![];
    PacketBuilder::ipv6(SOURCE_V6, TARGET_V6, 60)
        .udp(1000, 2000)
        .write(&mut packet, &[1; 100])
        .unwrap();
    let [high, low] = (offset_8_bytes << 3 | 1).to_be_bytes();
    packet.splice(40..40, [17, 0, high, low, 0, 0, 0, 9]);
    packet[6] = 44;
    packet[5] += 8;
    packet
}

fn icmp_v4(kind: Icmpv4Type) -> Vec<u8> {
    let mut packet = vec![];
    PacketBuilder::ipv4(SOURCE_V4, TARGET_V4, 60)
        .icmpv4(kind)
        .write(&mut packet, &[1; 100])
        .unwrap();
    packet
}

fn icmp_v6(kind: Icmpv6Type) -> Vec<u8> {
    let mut packet = vec![];
    PacketBuilder::ipv6(SOURCE_V6, TARGET_V6, 60)
        .icmpv6(kind)
        .write(&mut packet, &[1; 100])
        .unwrap();
    packet
}

fn tcp_v4(flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![];
    PacketBuilder::ipv4(SOURCE_V4, TARGET_V4, 60)
        .tcp(1000, 2000, 1, 1)
        .write(&mut packet, payload)
        .unwrap();
    packet[33] = flags;
    packet
}

#[test]
fn only_payload_is_data() {
    const SYN: u8 = 2;
    assert!(!single(&tcp_v4(ACK, &[])).has_data());
    assert!(!single(&tcp_v4(SYN, &[])).has_data());
    assert!(single(&tcp_v4(ACK, &[1])).has_data());
    assert!(!single(&udp_v4(&[])).has_data());
    assert!(single(&udp_v4(&[1])).has_data());
    let echo = Icmpv4Type::EchoRequest(etherparse::IcmpEchoHeader { id: 1, seq: 1 });
    assert!(!single(&icmp_v4(echo)).has_data());
    // Bytes behind the end of the packet are not its payload.
    assert!(!single(&[tcp_v4(ACK, &[]), vec![0; 6]].concat()).has_data());
}

#[test]
fn a_flow_has_ports() {
    assert!(single(&fragment(0)).flow().is_some());
    assert!(single(&fragment_v6(0)).flow().is_some());
    for without in [
        fragment(3),
        fragment_v6(3),
        icmp_v4(Icmpv4Type::DestinationUnreachable(
            DestUnreachableHeader::Port,
        )),
        udp_v4(&[])[..22].to_vec(),
        vec![],
        vec![0x45],
        vec![0; 60],
    ] {
        assert_eq!(single(&without).flow(), None, "{without:?}");
    }
    // More extension headers than anyone sends end the walk.
    let mut deep = fragment_v6(0);
    deep.splice(40..40, [60, 0, 1, 4, 0, 0, 0, 0].repeat(8));
    (deep[5], deep[6]) = (deep[5] + 64, 60);
    assert_eq!(single(&deep).flow(), None);
}

#[test]
fn a_message_is_sent_only_where_it_may_be() {
    let echo = etherparse::IcmpEchoHeader { id: 1, seq: 1 };
    for told in [
        udp_v4(&[1; 100]),
        fragment(0),
        fragment_v6(0),
        icmp_v4(Icmpv4Type::EchoRequest(echo)),
        icmp_v6(Icmpv6Type::EchoRequest(echo)),
    ] {
        assert!(single(&told).too_big(1280).is_some(), "{told:?}");
    }
    let unreachable = DestUnreachableHeader::Port;
    let mut to_group_v6 = icmp_v6(Icmpv6Type::EchoRequest(echo));
    to_group_v6[24] = 0xff;
    let mut redirect_v6 = icmp_v6(Icmpv6Type::EchoRequest(echo));
    redirect_v6[40] = 137;
    for not_told in [
        fragment(3),
        fragment_v6(3),
        icmp_v4(Icmpv4Type::DestinationUnreachable(unreachable)),
        icmp_v6(Icmpv6Type::PacketTooBig { mtu: 1280 }),
        redirect_v6,
        to_group_v6,
        udp_v4_with(|header| header.destination = [224, 0, 0, 251]),
        udp_v4_with(|header| header.destination = [255; 4]),
        udp_v4_with(|header| header.source = [0; 4]),
        udp_v4_with(|header| header.source = [127, 0, 0, 1]),
        udp_v4_with(|header| header.total_len += 1),
        vec![0x45; 10],
    ] {
        assert!(single(&not_told).too_big(1280).is_none(), "{not_told:?}");
    }
}

#[test]
fn what_has_no_payload_or_no_header_is_corrupted_as_far_as_it_goes() {
    let header_only = &udp_v4_with(|header| header.total_len = 20)[..20];
    for random in 0..40 {
        let mut frame = single(header_only);
        frame.corrupt(random);
        let flipped = flipped_bits(header_only, &frame.bytes()[VNET..]);
        assert!(flipped.len() == 1 && (10..12).contains(&(flipped[0] / 8)));
        // Too short for a checksum: whatever is there.
        let mut short = udp_v4_with(|header| header.total_len = 23)[..23].to_vec();
        let mut frame = single(&short);
        frame.corrupt(random);
        assert_eq!(flipped_bits(&short, &frame.bytes()[VNET..]).len(), 1);
        short[0] = 0;
        let mut frame = single(&short);
        frame.corrupt(random);
        assert_eq!(frame.bytes()[VNET..], short);
    }
}

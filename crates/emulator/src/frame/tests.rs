// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames against an independent parser (etherparse).

mod effects;
mod packets;
mod splitting;

use etherparse::checksum::Sum16BitWords;
use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use fatpath_link::Packet;

use super::Frame;
use packets::*;

/// Splits a frame at `cuts`, each a share of what is left.
pub fn split(mut frame: Frame, cuts: &[f64]) -> Vec<Frame> {
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
pub fn completed(frame: &Frame) -> Vec<u8> {
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
pub fn verified_payload(
    packet: &[u8],
    origin: &Super,
    offset_bytes: usize,
    is_last: bool,
) -> Vec<u8> {
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
pub fn same_sum(one: u16, other: u16) -> bool {
    one % 0xffff == other % 0xffff
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The entry of the fuzzer (`fuzz/fuzz_targets/splitter.rs`) into code that is private: all that
//! cells may do to a packet, on any bytes. Panics when an invariant breaks. No part of the interface.

use fatpath_link::{Ecn, Packet};

use crate::buffer::Pool;
use crate::checksum;
use crate::frame::Frame;
use crate::ip::{self, Family, Parts};
use crate::vnet;

/// Eight bytes that choose, then a frame: splits it, and tries all else on the pieces.
pub fn packet(bytes: &[u8]) {
    let Some((choice, frame)) = bytes.split_first_chunk() else {
        return;
    };
    if !(vnet::BYTES..=Pool::LARGEST_BYTES).contains(&frame.len()) {
        return;
    }
    let whole = frame_of(frame);
    let (whole_bytes, is_super) = (whole.wire().len_bytes(0), whole.wire().segments > 1);
    check_reply(&whole);
    let pieces = split(whole, choice);
    let sum: u64 = pieces.iter().map(|piece| piece.wire().len_bytes(0)).sum();
    assert_eq!(sum, whole_bytes, "segments are neither lost nor made");
    for piece in pieces {
        check_piece(&piece, is_super);
        check_mark(piece.duplicate());
        check_dscp(piece.duplicate(), 46);
        if piece.wire().segments == 1 {
            check_fragments(piece.duplicate());
            check_corruption(piece, u64::from_le_bytes(*choice));
        }
    }
}

fn frame_of(bytes: &[u8]) -> Frame {
    let mut buffer = Pool::default().take(Pool::LARGEST_BYTES);
    buffer[..bytes.len()].copy_from_slice(bytes);
    Frame::new(buffer, bytes.len())
}

/// Splits at as many places as there are bytes in `cuts`, each a share of what is left.
fn split(mut rest: Frame, cuts: &[u8]) -> Vec<Frame> {
    let mut pieces = vec![];
    for cut in cuts {
        let segments = rest.wire().segments;
        if segments > 1 {
            pieces.push(rest.split_front(1 + (segments - 1) * u32::from(*cut) / 256));
        }
    }
    pieces.push(rest);
    pieces
}

/// A piece is what the kernel would take it for.
fn check_piece(piece: &Frame, is_of_super: bool) {
    let anew = frame_of(piece.bytes());
    assert_eq!(anew.wire(), piece.wire());
    assert_eq!(piece.duplicate().bytes(), piece.bytes());
    // On any bytes there is nothing to compare these with; they must not panic.
    let _ = (piece.flow(), piece.has_data());
    if is_of_super {
        let (vnet, packet) = piece.bytes().split_at(vnet::BYTES);
        let family = Family::of(packet).expect("a super-packet has an IP header");
        assert_eq!(family.len_bytes(packet), packet.len());
        assert_eq!(vnet::gso_size(vnet) > 0, piece.wire().segments > 1);
    }
}

/// No fragment is longer than the MTU, and together they have all data.
fn check_fragments(piece: Frame) {
    const MTU_BYTES: u32 = 68;
    let Some(parts) = Parts::of(&piece.bytes()[vnet::BYTES..]) else {
        return;
    };
    if !piece.may_be_fragmented() || piece.wire().last_bytes <= MTU_BYTES {
        return;
    }
    assert_eq!(parts.end, piece.wire().last_bytes as usize);
    let fragments = piece.fragments(MTU_BYTES);
    assert!((fragments.iter()).all(|one| one.wire().last_bytes <= MTU_BYTES));
    let data = |one: &Frame| one.wire().last_bytes as usize - parts.transport;
    let sum: usize = fragments.iter().map(data).sum();
    assert!(sum == parts.end - parts.transport && !fragments.is_empty());
}

/// Only the six bits change, and the checksum of an IPv4 header with them.
fn check_dscp(mut piece: Frame, dscp: u8) {
    let (header_before, ecn) = (ipv4_header_sum(&piece), piece.ecn());
    let before = piece.bytes().to_vec();
    piece.set_dscp(dscp);
    let packet = &piece.bytes()[vnet::BYTES..];
    let set = match Family::of(packet) {
        Some(Family::V4) => packet[1] >> 2,
        Some(Family::V6) => packet[0] << 2 & 0x3c | packet[1] >> 6,
        None => return assert_eq!(piece.bytes(), before),
    };
    assert_eq!((set, piece.ecn()), (dscp, ecn));
    let header_after = ipv4_header_sum(&piece);
    assert_eq!(
        header_before.map(|sum| sum % 0xffff),
        header_after.map(|sum| sum % 0xffff)
    );
}

fn check_mark(mut piece: Frame) {
    let header_before = ipv4_header_sum(&piece);
    let len_before = piece.bytes().len();
    piece.mark();
    let is_ip = Family::of(&piece.bytes()[vnet::BYTES..]).is_some();
    assert_eq!(piece.ecn() == Ecn::Marked, is_ip);
    assert_eq!(piece.bytes().len(), len_before);
    let header_after = ipv4_header_sum(&piece);
    assert_eq!(
        header_before.map(|sum| sum % 0xffff),
        header_after.map(|sum| sum % 0xffff)
    );
}

/// Of the fixed part of the header, all of which marking may touch.
fn ipv4_header_sum(piece: &Frame) -> Option<u16> {
    let packet = &piece.bytes()[vnet::BYTES..];
    let is_ipv4 = Family::of(packet) == Some(Family::V4);
    is_ipv4.then(|| checksum::sum(&packet[..ip::IPV4_HEADER_BYTES]))
}

/// At most one bit more than the completion of the checksum changes, and the receiver verifies.
fn check_corruption(mut piece: Frame, random: u64) {
    let mut completed = piece.bytes().to_vec();
    vnet::complete_checksum(&mut completed);
    piece.corrupt(random);
    let differ = completed.iter().zip(piece.bytes());
    let flipped: u32 = differ.map(|(one, other)| (one ^ other).count_ones()).sum();
    let is_sound = ip::Parts::of(&completed[vnet::BYTES..])
        .is_some_and(|parts| parts.family == Family::V4 || parts.transport < parts.end);
    assert!(
        flipped <= 1 && (flipped == 1 || !is_sound),
        "{flipped} bits flipped"
    );
}

/// A message is short, goes back, and has right checksums.
fn check_reply(whole: &Frame) {
    let Some(reply) = whole.too_big(1400) else {
        return;
    };
    let (vnet, packet) = reply.bytes().split_at(vnet::BYTES);
    let parts = ip::Parts::of(packet).expect("the header of a reply is sound");
    let about = &whole.bytes()[vnet::BYTES..];
    assert_eq!(parts.family.source(packet), parts.family.destination(about));
    assert_eq!(parts.family.destination(packet), parts.family.source(about));
    assert_eq!((vnet, parts.end), (&[0; vnet::BYTES][..], packet.len()));
    let (longest, pseudo) = match parts.family {
        Family::V4 => (576, 0),
        Family::V6 => {
            let len_bytes = (packet.len() - ip::IPV6_HEADER_BYTES) as u16;
            (1280, parts.family.pseudo_sum(packet, ip::ICMPV6, len_bytes))
        }
    };
    assert!(packet.len() <= longest);
    let sum = checksum::plus(pseudo, checksum::sum(parts.transport(packet)));
    assert!(checksum::is_right(sum));
    assert!(reply.too_big(68).is_none(), "no error about an error");
}

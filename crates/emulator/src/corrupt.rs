// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flips one bit of a packet so that its receiver finds a wrong checksum, counts it and drops the
//! packet. Damage that the receiver would find by other means, or not at all, is not made.

use std::ops::Range;

use crate::bytes::be_u16;
use crate::checksum;
use crate::ip::{self, Family, Fragment, Parts};

const UDP_CHECKSUM: Range<usize> = 6..8;

/// Flips a bit behind the IP header of `packet`, which `random` chooses. Its checksums are complete.
///
/// One flipped bit always makes a ones' complement checksum wrong. These bits stay: TCP's data
/// offset, UDP's length, with which the kernel may drop a packet before it verifies; UDP's checksum,
/// of which 0 means "not verified". A UDP packet over IPv4 whose checksum is 0 gets a bit of
/// that very field flipped: then it is verified, and wrong.
///
/// A packet that ends with its IPv4 header gets a bit of that header's checksum flipped. What has no
/// sound IP header, or nothing behind an IPv6 header, stays as it is: no program gets it anyway.
pub(crate) fn flip_bit(packet: &mut [u8], random: u64) {
    let Some(parts) = Parts::of(packet) else {
        return;
    };
    if is_unverified(&parts, packet) {
        return verify_wrongly(&parts, packet, random);
    }
    let whole = parts.transport..parts.end;
    let spared = spared(&parts);
    let flippable = whole.len() - spared.len();
    match (flippable, parts.family) {
        (0, Family::V4) => flip(packet, ip::IPV4_CHECKSUM..ip::IPV4_CHECKSUM + 2, random),
        (0, Family::V6) => {}
        _ => {
            let (byte, bit) = place(flippable, random);
            let is_before = parts.transport + byte < spared.start;
            let skipped = if is_before { 0 } else { spared.len() };
            packet[parts.transport + byte + skipped] ^= bit;
        }
    }
}

/// Bytes of the packet in which a flipped bit would not be found by the checksum.
fn spared(parts: &Parts) -> Range<usize> {
    let bytes = match (parts.fragment, parts.protocol) {
        (Fragment::Later, _) => 0..0,
        (_, ip::TCP) => 12..13,
        (_, ip::UDP) => 4..8,
        _ => 0..0,
    };
    let within = |offset: usize| (parts.transport + offset).min(parts.end);
    within(bytes.start)..within(bytes.end)
}

/// Whether the packet is UDP over IPv4 without a checksum.
fn is_unverified(parts: &Parts, packet: &[u8]) -> bool {
    let is_udp = parts.family == Family::V4
        && parts.protocol == ip::UDP
        && parts.fragment != Fragment::Later;
    let field = parts.transport(packet).get(UDP_CHECKSUM);
    is_udp && field.is_some_and(|field| field == [0, 0])
}

/// Flips a bit of the checksum of such a packet, but not the one that makes it right.
fn verify_wrongly(parts: &Parts, packet: &mut [u8], random: u64) {
    let field = parts.transport + UDP_CHECKSUM.start..parts.transport + UDP_CHECKSUM.end;
    flip(packet, field.clone(), random);
    if is_right(parts, packet) {
        flip(packet, field.clone(), random);
        flip(packet, field, random.wrapping_add(1));
    }
}

fn is_right(parts: &Parts, packet: &[u8]) -> bool {
    let transport = parts.transport(packet);
    let len_bytes = be_u16(transport, 4);
    let pseudo = parts.family.pseudo_sum(packet, parts.protocol, len_bytes);
    checksum::is_right(checksum::plus(pseudo, checksum::sum(transport)))
}

fn flip(packet: &mut [u8], bytes: Range<usize>, random: u64) {
    let (byte, bit) = place(bytes.len(), random);
    packet[bytes.start + byte] ^= bit;
}

/// A bit of so many bytes, at least one: the byte and the bit in it.
fn place(bytes: usize, random: u64) -> (usize, u8) {
    let bit = random % (8 * bytes as u64);
    // Less than 8 × 64 KiB.
    ((bit / 8) as usize, 1 << (bit % 8))
}

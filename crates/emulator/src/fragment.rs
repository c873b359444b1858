// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fragments of IPv4 packets (RFC 791, section 3.2), as a router makes them. IPv6 packets are fragmented by their sender alone
//! (RFC 8200, section 5). Pure.

use crate::bytes::{be_u16, set_be_u16};
use crate::checksum;
use crate::ip::{self, Family, Parts};

const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
const OFFSET: u16 = 0x1fff;
/// Of the offset, bytes.
const UNIT_BYTES: usize = 8;

/// Whether a router may do it. Not of a packet with more bytes than its header says: it is none that a host sent.
pub(crate) fn is_allowed(packet: &[u8]) -> bool {
    Parts::of(packet).is_some_and(|parts| {
        let may = be_u16(packet, ip::IPV4_FRAGMENT) & DONT_FRAGMENT == 0;
        parts.family == Family::V4 && may && parts.end == packet.len()
    })
}

/// The fragments of a packet of which [`is_allowed`] holds, with complete checksums. `mtu_bytes` is 68 or more, so that the
/// longest header and eight bytes fit.
pub(crate) fn fragments(packet: &[u8], mtu_bytes: usize) -> Vec<Vec<u8>> {
    let Some(parts) = Parts::of(packet) else {
        return vec![packet.to_vec()];
    };
    let (header, data) = (&packet[..parts.transport], parts.transport(packet));
    let later_header = without_uncopied_options(header);
    let most_bytes =
        mtu_bytes.saturating_sub(header.len()).max(UNIT_BYTES) / UNIT_BYTES * UNIT_BYTES;
    let count = data.len().div_ceil(most_bytes);
    let one = |(number, part): (usize, &[u8])| {
        let header = if number == 0 { header } else { &later_header };
        let offset = number * most_bytes / UNIT_BYTES;
        fragment(header, part, offset as u16, number + 1 < count)
    };
    data.chunks(most_bytes).enumerate().map(one).collect()
}

/// What was a fragment before lies at its own offset, and has others behind it if it had.
fn fragment(header: &[u8], data: &[u8], offset: u16, has_more: bool) -> Vec<u8> {
    let mut fragment = [header, data].concat();
    let field = be_u16(header, ip::IPV4_FRAGMENT);
    let more = if has_more { MORE_FRAGMENTS } else { 0 };
    let field = ((field & OFFSET) + offset) & OFFSET | field & MORE_FRAGMENTS | more;
    let len_bytes = fragment.len() as u16;
    set_be_u16(&mut fragment, ip::IPV4_TOTAL_LEN, len_bytes);
    set_be_u16(&mut fragment, ip::IPV4_FRAGMENT, field);
    set_be_u16(&mut fragment, ip::IPV4_CHECKSUM, 0);
    let sum = checksum::sum(&fragment[..header.len()]);
    set_be_u16(&mut fragment, ip::IPV4_CHECKSUM, checksum::field(sum));
    fragment
}

/// The header of fragments but the first: options without the copied flag are no operation there, as in Linux.
fn without_uncopied_options(header: &[u8]) -> Vec<u8> {
    const END: u8 = 0;
    const NO_OPERATION: u8 = 1;
    const COPIED: u8 = 0x80;
    let mut header = header.to_vec();
    let mut at = ip::IPV4_HEADER_BYTES;
    while at < header.len() && header[at] != END {
        let len_bytes = match header[at] {
            NO_OPERATION => 1,
            _ => header.get(at + 1).map_or(1, |len| usize::from(*len).max(2)),
        };
        let end = (at + len_bytes).min(header.len());
        if header[at] & COPIED == 0 {
            header[at..end].fill(NO_OPERATION);
        }
        at = end;
    }
    header
}

#[cfg(test)]
mod tests {
    use etherparse::{Ipv4Slice, PacketBuilder};
    use proptest::prelude::*;

    use super::*;

    /// A UDP datagram with these options of IPv4, which may be fragmented.
    fn datagram(payload: &[u8], options: &[u8]) -> Vec<u8> {
        let builder = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).udp(1000, 2000);
        let mut packet = Vec::new();
        builder.write(&mut packet, payload).unwrap();
        let words = options.len() / 4;
        packet.splice(20..20, options.iter().copied());
        packet[0] = 0x45 + words as u8;
        let len_bytes = packet.len() as u16;
        set_be_u16(&mut packet, ip::IPV4_TOTAL_LEN, len_bytes);
        set_be_u16(&mut packet, ip::IPV4_FRAGMENT, 0);
        set_be_u16(&mut packet, ip::IPV4_CHECKSUM, 0);
        let sum = checksum::sum(&packet[..20 + options.len()]);
        set_be_u16(&mut packet, ip::IPV4_CHECKSUM, checksum::field(sum));
        packet
    }

    /// The data of fragments in order, as a host puts them together; their headers are right.
    fn reassembled(fragments: &[Vec<u8>]) -> Vec<u8> {
        let mut data = Vec::new();
        for (number, fragment) in fragments.iter().enumerate() {
            let slice = Ipv4Slice::from_slice(fragment).unwrap();
            let header = slice.header();
            assert_eq!(
                header.to_header().calc_header_checksum(),
                header.header_checksum()
            );
            assert_eq!(usize::from(header.total_len()), fragment.len());
            assert_eq!(
                usize::from(header.fragments_offset().byte_offset()),
                data.len()
            );
            assert_eq!(header.more_fragments(), number + 1 < fragments.len());
            data.extend(slice.payload().payload);
        }
        data
    }

    proptest! {
        #[test]
        fn fragments_fit_and_are_the_packet_again_whatever_they_were_cut_to(
            payload in proptest::collection::vec(any::<u8>(), 600..9000),
            mtu_bytes in 68..600usize,
            smaller_bytes in 68..600usize,
            words in 0..10usize,
        ) {
            let packet = datagram(&payload, &vec![1; 4 * words]);
            prop_assert!(is_allowed(&packet));
            let whole = &packet[20 + 4 * words..];
            let parts = fragments(&packet, mtu_bytes);
            prop_assert!(parts.iter().all(|part| part.len() <= mtu_bytes && is_allowed(part)));
            prop_assert_eq!(&reassembled(&parts), whole);
            let again: Vec<_> = parts.iter().flat_map(|part| match part.len() > smaller_bytes {
                true => fragments(part, smaller_bytes),
                false => vec![part.clone()],
            }).collect();
            prop_assert!(again.iter().all(|part| part.len() <= smaller_bytes));
            prop_assert_eq!(&reassembled(&again), whole);
        }

        /// Whatever the rest of a header says that may be fragmented, and whatever its options are.
        #[test]
        fn no_packet_makes_it_panic_or_lose_data(
            mut packet in proptest::collection::vec(any::<u8>(), 100..3000),
            words in 5..16u8,
            mtu_bytes in 68..1500usize,
        ) {
            packet[0] = 0x40 | words;
            packet[ip::IPV4_FRAGMENT] &= !0x40;
            let len_bytes = packet.len() as u16;
            set_be_u16(&mut packet, ip::IPV4_TOTAL_LEN, len_bytes);
            prop_assert!(is_allowed(&packet));
            let header_bytes = usize::from(words) * 4;
            let parts = fragments(&packet, mtu_bytes);
            let data: Vec<u8> = parts.iter().flat_map(|part| &part[header_bytes..]).copied().collect();
            prop_assert_eq!(data, &packet[header_bytes..]);
            prop_assert!(parts.len() == 1 || parts.iter().all(|part| part.len() <= mtu_bytes));
            packet.push(0);
            prop_assert!(!is_allowed(&packet));
        }
    }

    #[test]
    fn options_are_in_later_fragments_only_if_they_are_to_be_copied() {
        // Record route, not copied; a router alert, copied; the end.
        let options = [7, 7, 4, 0, 0, 0, 0, 0x94, 4, 0, 0, 0];
        let parts = fragments(&datagram(&[5; 1000], &options), 500);
        assert_eq!(parts[0][20..32], options);
        assert_eq!(parts[1][20..32], [1, 1, 1, 1, 1, 1, 1, 0x94, 4, 0, 0, 0]);
    }

    #[test]
    fn what_must_not_be_fragmented_is_not() {
        let mut packet = datagram(&[0; 1000], &[]);
        ip::set_ipv4_field(&mut packet, ip::IPV4_FRAGMENT, DONT_FRAGMENT);
        assert!(!is_allowed(&packet));
        let builder = PacketBuilder::ipv6([1; 16], [2; 16], 64).udp(1, 2);
        let mut packet = Vec::new();
        builder.write(&mut packet, &[0; 1000]).unwrap();
        assert!(!is_allowed(&packet));
    }
}

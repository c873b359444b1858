// SPDX-License-Identifier: MIT OR Apache-2.0
//! The messages that a packet is longer than the path allows: ICMP type 3 code 4 (RFC 792, RFC 1191)
//! and ICMPv6 type 2 (RFC 4443). Pure. No other message, no rate limit: that is a router's.

use std::net::IpAddr;

use crate::bytes::set_be_u16;
use crate::checksum;
use crate::ip::{self, Family, Fragment, Parts};

/// A message over IPv4 is at most as long as every host must accept (RFC 1812, section 4.3.2.3).
const LONGEST_V4: usize = 576;
/// A message over IPv6 is at most as long as every path carries (RFC 4443, section 2.4(c)).
const LONGEST_V6: usize = 1280;
const ICMP_HEADER_BYTES: usize = 8;
const ICMP_CHECKSUM: usize = 2;
/// As Linux sends: the net is not asked to hurry it, but "internetwork control" it is.
const TOS_INTERNET_CONTROL: u8 = 0xc0;
const HOP_LIMIT: u8 = 64;

/// The message to the sender of `packet`, one segment, that it is longer than `mtu_bytes`: an IP
/// packet with complete checksums, which quotes as much of `packet` as may be. It comes from the
/// destination of `packet`, since a link has no address of its own.
///
/// `None` about what RFC 1122, section 3.2.2, and RFC 4443, section 2.4(e), forbid: ICMP errors,
/// fragments but the first, destinations or sources that are not one host. So there is none about
/// IPv6 multicast, which RFC 4443 would allow: no address would be left to send it from. Directed
/// broadcasts are not known as such here.
pub(crate) fn too_big(packet: &[u8], mtu_bytes: u32) -> Option<Vec<u8>> {
    let parts = Parts::of(packet).filter(|parts| may_be_told(parts, packet))?;
    let mut message = match parts.family {
        Family::V4 => message_v4(packet, mtu_bytes),
        Family::V6 => message_v6(packet, mtu_bytes),
    };
    complete(parts.family, &mut message);
    Some(message)
}

fn may_be_told(parts: &Parts, packet: &[u8]) -> bool {
    parts.fragment != Fragment::Later
        && !is_error(parts, packet)
        && is_one_host(parts.family.source(packet))
        && is_one_host(parts.family.destination(packet))
}

/// Whether it is an ICMP error, a redirect, or an ICMP message of unknown kind.
fn is_error(parts: &Parts, packet: &[u8]) -> bool {
    let kind = parts.transport(packet).first();
    match parts.protocol {
        ip::ICMPV4 => !matches!(kind, Some(0 | 8 | 9 | 10 | 13..=18 | 42 | 43)),
        ip::ICMPV6 => !matches!(kind, Some(128..=136 | 138..)),
        _ => false,
    }
}

fn is_one_host(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(ipv4) => {
            // 0/8, and 240/4 with the limited broadcast.
            !ipv4.is_multicast() && !ipv4.is_loopback() && !matches!(ipv4.octets()[0], 0 | 240..)
        }
        IpAddr::V6(ipv6) => !ipv6.is_multicast() && !ipv6.is_loopback() && !ipv6.is_unspecified(),
    }
}

fn message_v4(packet: &[u8], mtu_bytes: u32) -> Vec<u8> {
    const UNREACHABLE: u8 = 3;
    const FRAGMENTATION_NEEDED: u8 = 4;
    const DONT_FRAGMENT: u8 = 0x40;
    let headers = ip::IPV4_HEADER_BYTES + ICMP_HEADER_BYTES;
    let quote = &packet[..packet.len().min(LONGEST_V4 - headers)];
    let total_len = (headers + quote.len()) as u16;
    let mtu = u16::try_from(mtu_bytes).unwrap_or(u16::MAX).to_be_bytes();
    let mut message = vec![0x45, TOS_INTERNET_CONTROL];
    message.extend(total_len.to_be_bytes());
    message.extend([0, 0, DONT_FRAGMENT, 0, HOP_LIMIT, ip::ICMPV4, 0, 0]);
    extend_with_addresses(&mut message, Family::V4.addresses(packet));
    message.extend([UNREACHABLE, FRAGMENTATION_NEEDED, 0, 0, 0, 0]);
    message.extend(mtu);
    message.extend(quote);
    message
}

fn message_v6(packet: &[u8], mtu_bytes: u32) -> Vec<u8> {
    const PACKET_TOO_BIG: u8 = 2;
    let headers = ip::IPV6_HEADER_BYTES + ICMP_HEADER_BYTES;
    let quote = &packet[..packet.len().min(LONGEST_V6 - headers)];
    let payload_len = (ICMP_HEADER_BYTES + quote.len()) as u16;
    let mut message = vec![0x60, 0, 0, 0];
    message.extend(payload_len.to_be_bytes());
    message.extend([ip::ICMPV6, HOP_LIMIT]);
    extend_with_addresses(&mut message, Family::V6.addresses(packet));
    message.extend([PACKET_TOO_BIG, 0, 0, 0]);
    message.extend(mtu_bytes.to_be_bytes());
    message.extend(quote);
    message
}

/// Back to the sender: the destination becomes the source.
fn extend_with_addresses(message: &mut Vec<u8>, addresses: &[u8]) {
    let (source, destination) = addresses.split_at(addresses.len() / 2);
    message.extend(destination);
    message.extend(source);
}

fn complete(family: Family, message: &mut [u8]) {
    let (start, pseudo) = match family {
        Family::V4 => {
            let field = checksum::field(checksum::sum(&message[..ip::IPV4_HEADER_BYTES]));
            set_be_u16(message, ip::IPV4_CHECKSUM, field);
            (ip::IPV4_HEADER_BYTES, 0)
        }
        Family::V6 => {
            let len_bytes = (message.len() - ip::IPV6_HEADER_BYTES) as u16;
            let pseudo = family.pseudo_sum(message, ip::ICMPV6, len_bytes);
            (ip::IPV6_HEADER_BYTES, pseudo)
        }
    };
    let sum = checksum::plus(pseudo, checksum::sum(&message[start..]));
    set_be_u16(message, start + ICMP_CHECKSUM, checksum::field(sum));
}

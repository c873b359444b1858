// SPDX-License-Identifier: MIT OR Apache-2.0
//! IPv4 and IPv6 headers: where things lie, the ECN field, addresses and ports. Reads no more of the
//! transport header than ports and lengths.
//!
//! Pure functions of a packet (IP header on), safe on any bytes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use fatpath_link::{Ecn, Flow};

use crate::bytes::{be_u16, set_be_u16};
use crate::checksum;

/// Protocol numbers (IANA).
pub(crate) const ICMPV4: u8 = 1;
pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;
pub(crate) const ICMPV6: u8 = 58;

pub(crate) const IPV4_HEADER_BYTES: usize = 20;
pub(crate) const IPV4_TOTAL_LEN: usize = 2;
pub(crate) const IPV4_ID: usize = 4;
pub(crate) const IPV4_FRAGMENT: usize = 6;
pub(crate) const IPV4_PROTOCOL: usize = 9;
pub(crate) const IPV4_CHECKSUM: usize = 10;
pub(crate) const IPV6_HEADER_BYTES: usize = 40;
pub(crate) const IPV6_PAYLOAD_LEN: usize = 4;
pub(crate) const IPV6_NEXT_HEADER: usize = 6;
const IPV4_ADDRESSES: usize = 12;
const IPV6_ADDRESSES: usize = 8;

const TCP_DATA_OFFSET: usize = 12;
const UDP_HEADER_BYTES: usize = 8;

/// ECN of "congestion experienced"; 0 is "not capable" (RFC 3168, section 5).
const ECN_BITS: u8 = 0x03;

/// The version of IP.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Family {
    V4,
    V6,
}

/// Which part of a datagram a packet is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fragment {
    /// All of it.
    Whole,
    /// The first fragment, with the transport header.
    First,
    /// A fragment without it.
    Later,
}

/// Where the parts of a packet lie whose IP header is sound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Parts {
    pub(crate) family: Family,
    pub(crate) fragment: Fragment,
    /// What follows the IP headers, IPv6 extension headers included.
    pub(crate) protocol: u8,
    /// Where that begins.
    pub(crate) transport: usize,
    /// Where it ends, by the length in the IP header.
    pub(crate) end: usize,
}

impl Family {
    /// By the version field; the packet is at least as long as a header of that version.
    pub(crate) fn of(packet: &[u8]) -> Option<Family> {
        match packet.first()? >> 4 {
            4 if packet.len() >= IPV4_HEADER_BYTES => Some(Family::V4),
            6 if packet.len() >= IPV6_HEADER_BYTES => Some(Family::V6),
            _ => None,
        }
    }

    /// Length of the whole packet, by its header.
    pub(crate) fn len_bytes(self, packet: &[u8]) -> usize {
        match self {
            Family::V4 => be_u16(packet, IPV4_TOTAL_LEN).into(),
            Family::V6 => usize::from(be_u16(packet, IPV6_PAYLOAD_LEN)) + IPV6_HEADER_BYTES,
        }
    }

    /// Sets the length of the whole packet, at most 65,535 bytes.
    pub(crate) fn set_len(self, packet: &mut [u8], len_bytes: u16) {
        match self {
            Family::V4 => set_ipv4_field(packet, IPV4_TOTAL_LEN, len_bytes),
            Family::V6 => set_be_u16(
                packet,
                IPV6_PAYLOAD_LEN,
                len_bytes - IPV6_HEADER_BYTES as u16,
            ),
        }
    }

    /// Source and destination, one behind the other.
    pub(crate) fn addresses(self, packet: &[u8]) -> &[u8] {
        match self {
            Family::V4 => &packet[IPV4_ADDRESSES..IPV4_HEADER_BYTES],
            Family::V6 => &packet[IPV6_ADDRESSES..IPV6_HEADER_BYTES],
        }
    }

    pub(crate) fn source(self, packet: &[u8]) -> IpAddr {
        let addresses = self.addresses(packet);
        address(&addresses[..addresses.len() / 2])
    }

    pub(crate) fn destination(self, packet: &[u8]) -> IpAddr {
        let addresses = self.addresses(packet);
        address(&addresses[addresses.len() / 2..])
    }

    /// Sum of the pseudo-header of a transport segment (RFC 9293, section 3.1; RFC 8200, section 8.1).
    pub(crate) fn pseudo_sum(self, packet: &[u8], protocol: u8, len_bytes: u16) -> u16 {
        let addresses = checksum::sum(self.addresses(packet));
        let rest = checksum::plus(protocol.into(), len_bytes);
        checksum::plus(addresses, rest)
    }
}

impl Parts {
    /// `None` where the IP header is not sound: no router would forward it.
    pub(crate) fn of(packet: &[u8]) -> Option<Parts> {
        let family = Family::of(packet)?;
        let parts = match family {
            Family::V4 => ipv4_parts(packet),
            Family::V6 => ipv6_parts(packet)?,
        };
        let least = match family {
            Family::V4 => IPV4_HEADER_BYTES,
            Family::V6 => IPV6_HEADER_BYTES,
        };
        let is_sound =
            parts.transport >= least && parts.transport <= parts.end && parts.end <= packet.len();
        is_sound.then_some(parts)
    }

    /// What follows the IP headers.
    pub(crate) fn transport<'a>(&self, packet: &'a [u8]) -> &'a [u8] {
        &packet[self.transport..self.end]
    }

    /// The flow, if there are ports.
    pub(crate) fn flow(&self, packet: &[u8]) -> Option<Flow> {
        let has_ports = matches!(self.protocol, TCP | UDP) && self.fragment != Fragment::Later;
        let transport = self.transport(packet);
        if !has_ports || transport.len() < 4 {
            return None;
        }
        let source = (self.family.source(packet), be_u16(transport, 0));
        let destination = (self.family.destination(packet), be_u16(transport, 2));
        Some(Flow {
            source: SocketAddr::from(source),
            destination: SocketAddr::from(destination),
            protocol: self.protocol,
        })
    }

    /// Whether there is payload of TCP or UDP. Later fragments are all payload.
    pub(crate) fn has_data(&self, packet: &[u8]) -> bool {
        let transport = self.transport(packet);
        let header_bytes = match (self.protocol, self.fragment) {
            (TCP | UDP, Fragment::Later) => 0,
            (TCP, _) => match transport.get(TCP_DATA_OFFSET) {
                Some(offset) => usize::from(offset >> 4) * 4,
                None => return false,
            },
            (UDP, _) => UDP_HEADER_BYTES,
            _ => return false,
        };
        transport.len() > header_bytes
    }
}

/// The ECN field.
pub(crate) fn ecn(packet: &[u8]) -> Ecn {
    let bits = match Family::of(packet) {
        Some(Family::V4) => packet[1] & ECN_BITS,
        Some(Family::V6) => packet[1] >> 4 & ECN_BITS,
        None => 0,
    };
    match bits {
        0 => Ecn::NotCapable,
        ECN_BITS => Ecn::Marked,
        _ => Ecn::Capable,
    }
}

/// Sets the ECN field to congestion experienced. No checksum but IPv4's own covers it.
pub(crate) fn mark(packet: &mut [u8]) {
    match Family::of(packet) {
        Some(Family::V4) => {
            let version_and_tos = be_u16(packet, 0) | u16::from(ECN_BITS);
            set_ipv4_field(packet, 0, version_and_tos);
        }
        Some(Family::V6) => packet[1] |= ECN_BITS << 4,
        None => {}
    }
}

/// Sets the DSCP, 0 to 63: the upper six bits of the traffic class (RFC 2474, section 3).
pub(crate) fn set_dscp(packet: &mut [u8], dscp: u8) {
    match Family::of(packet) {
        Some(Family::V4) => {
            let without = be_u16(packet, 0) & !0x00fc;
            set_ipv4_field(packet, 0, without | u16::from(dscp) << 2);
        }
        Some(Family::V6) => {
            let without = be_u16(packet, 0) & !0x0fc0;
            set_be_u16(packet, 0, without | u16::from(dscp) << 6);
        }
        None => {}
    }
}

/// Sets a 16-bit field and corrects the header checksum for it.
pub(crate) fn set_ipv4_field(packet: &mut [u8], offset: usize, value: u16) {
    let sum = !be_u16(packet, IPV4_CHECKSUM);
    let sum = checksum::replacing(sum, be_u16(packet, offset), value);
    set_be_u16(packet, offset, value);
    set_be_u16(packet, IPV4_CHECKSUM, !sum);
}

fn ipv4_parts(packet: &[u8]) -> Parts {
    Parts {
        family: Family::V4,
        fragment: fragment(be_u16(packet, IPV4_FRAGMENT), 0x1fff, 0x2000),
        protocol: packet[IPV4_PROTOCOL],
        transport: usize::from(packet[0] & 0x0f) * 4,
        end: Family::V4.len_bytes(packet),
    }
}

/// Walks the extension headers (RFC 8200, section 4; RFC 4302 for AH). `None` if they do not fit.
fn ipv6_parts(packet: &[u8]) -> Option<Parts> {
    const FRAGMENT: u8 = 44;
    const AUTHENTICATION: u8 = 51;
    /// Each may come once, destination options twice.
    const MOST_EXTENSIONS: usize = 6;
    let mut parts = Parts {
        family: Family::V6,
        fragment: Fragment::Whole,
        protocol: packet[IPV6_NEXT_HEADER],
        transport: IPV6_HEADER_BYTES,
        end: Family::V6.len_bytes(packet),
    };
    for _ in 0..MOST_EXTENSIONS {
        let is_extension = matches!(parts.protocol, 0 | 43 | 60 | FRAGMENT | AUTHENTICATION);
        // What follows the header of a later fragment is no header.
        if !is_extension || parts.fragment == Fragment::Later {
            break;
        }
        let extension = packet.get(parts.transport..parts.transport + 8)?;
        let len_bytes = match parts.protocol {
            FRAGMENT => 8,
            AUTHENTICATION => (usize::from(extension[1]) + 2) * 4,
            _ => (usize::from(extension[1]) + 1) * 8,
        };
        if parts.protocol == FRAGMENT {
            parts.fragment = fragment(be_u16(extension, 2), 0xfff8, 1);
        }
        parts.protocol = extension[0];
        parts.transport += len_bytes;
    }
    Some(parts)
}

fn fragment(field: u16, offset_bits: u16, more_bit: u16) -> Fragment {
    match (field & offset_bits, field & more_bit) {
        (0, 0) => Fragment::Whole,
        (0, _) => Fragment::First,
        _ => Fragment::Later,
    }
}

fn address(bytes: &[u8]) -> IpAddr {
    match <[u8; 4]>::try_from(bytes) {
        Ok(ipv4) => Ipv4Addr::from(ipv4).into(),
        Err(_) => {
            Ipv6Addr::from(<[u8; 16]>::try_from(bytes).expect("an address has 4 or 16 bytes"))
                .into()
        }
    }
}

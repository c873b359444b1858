// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a frame to its TCP segment: link layers, IPv4 and IPv6 with extension headers, tunnels, TCP.

mod tunnel;

use crate::options::Options;
use crate::reader::Frame;
use crate::segment::{Ecn, End, Segment, flag};
use etherparse::{IpNumber, LaxIpSlice};
use serde::Serialize;
use std::net::Ipv4Addr;

/// `LINKTYPE_…` of <https://www.tcpdump.org/linktypes.html>.
mod link_type {
    pub const NULL: i32 = 0;
    pub const ETHERNET: i32 = 1;
    /// DLT_RAW as some systems wrote it.
    pub const RAW_BSD: i32 = 12;
    pub const RAW_OPENBSD: i32 = 14;
    pub const RAW: i32 = 101;
    pub const LOOP: i32 = 108;
    pub const LINUX_SLL: i32 = 113;
    pub const IPV4: i32 = 228;
    pub const IPV6: i32 = 229;
    pub const LINUX_SLL2: i32 = 276;
}

/// IEEE 802 EtherTypes.
mod ether_type {
    pub const IPV4: u16 = 0x0800;
    pub const IPV6: u16 = 0x86dd;
    pub const VLAN: u16 = 0x8100;
    pub const QINQ: u16 = 0x88a8;
    /// Of QinQ before 802.1ad.
    pub const QINQ_OLD: u16 = 0x9100;
}

/// Tunnels within one another; more are nothing that a network carries.
const MAX_TUNNELS: usize = 4;

/// More tags than this are nothing that a network carries.
const MAX_TAGS: usize = 4;

const TCP_HEADER_BYTES: usize = 20;

/// RFC 791, section 3.1: without options; version and length of such a header; more fragments, and the fragment's offset.
const IPV4_HEADER_BYTES: usize = 20;
const IPV4_NO_OPTIONS: u8 = 0x45;
const IPV4_FRAGMENT: u16 = 0x3fff;

/// Why a frame is no segment of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NoSegment {
    /// A link layer that is not read here.
    UnknownLink,
    /// ARP and others.
    NotIp,
    /// UDP and others.
    NotTcp,
    /// Another packet within this one: GRE, VXLAN, IP in IP.
    Tunnel,
    /// WireGuard: what is within, only its ends can read.
    Encrypted,
    /// A fragment of an IP packet.
    Fragment,
    /// So little was captured that a header is not whole.
    CutShort,
    /// A header that contradicts itself.
    Malformed,
}

/// The segment of a frame.
///
/// # Errors
/// Why it has none.
pub fn decode(frame: &Frame<'_>) -> Result<Segment, NoSegment> {
    segment(frame, network_layer(frame)?)
}

/// The same, also of one in a tunnel.
///
/// # Errors
/// Why it has none.
pub fn decode_in_tunnels(frame: &Frame<'_>) -> Result<Segment, NoSegment> {
    let mut packet = network_layer(frame)?;
    for _ in 0..=MAX_TUNNELS {
        match segment(frame, packet) {
            Err(NoSegment::Tunnel) => packet = tunnel::inner(ip_packet(packet)?.payload())?,
            other => return other,
        }
    }
    Err(NoSegment::Malformed)
}

fn ip_packet(packet: &[u8]) -> Result<LaxIpSlice<'_>, NoSegment> {
    let read = LaxIpSlice::from_slice(packet).map_err(|error| match error {
        etherparse::err::ip::LaxHeaderSliceError::Len(_) => NoSegment::CutShort,
        _ => NoSegment::Malformed,
    });
    Ok(read?.0)
}

/// A segment in its IP packet.
#[derive(Debug, PartialEq, Eq)]
struct Carried<'b> {
    /// Source and destination; those of IPv4 as [`End`] has them.
    addresses: [u128; 2],
    ecn: Ecn,
    ip_id: Option<u16>,
    /// As much of the segment as was captured.
    tcp: &'b [u8],
    /// How long it was on the wire.
    wire_bytes: usize,
}

/// `packet` lies in the frame.
fn segment(frame: &Frame<'_>, packet: &[u8]) -> Result<Segment, NoSegment> {
    match &plain(packet) {
        Some(carried) => tcp(frame.time_ns, carried),
        None => tcp(frame.time_ns, &carried_by_any(frame, packet)?),
    }
}

/// What nearly all segments are carried in: IPv4 without options, not fragmented. Of anything else, nothing is said.
fn plain(packet: &[u8]) -> Option<Carried<'_>> {
    let (header, rest) = packet.split_first_chunk::<IPV4_HEADER_BYTES>()?;
    let be_u16 = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let is_fragment = be_u16(6) & IPV4_FRAGMENT != 0;
    if header[0] != IPV4_NO_OPTIONS || is_fragment || header[9] != IpNumber::TCP.0 {
        return None;
    }
    let wire_bytes = usize::from(be_u16(2)).checked_sub(IPV4_HEADER_BYTES)?;
    let address = |at: usize| mapped([0, 1, 2, 3].map(|i| header[at + i]));
    Some(Carried {
        addresses: [address(12), address(16)],
        ecn: Ecn::of(header[1]),
        ip_id: Some(be_u16(4)),
        tcp: &rest[..wire_bytes.min(rest.len())],
        wire_bytes,
    })
}

/// In any IP packet.
fn carried_by_any<'b>(frame: &Frame<'_>, packet: &'b [u8]) -> Result<Carried<'b>, NoSegment> {
    // What lies between the frame's beginning and the packet is not the packet's.
    let before_bytes = packet.as_ptr().addr() - frame.data.as_ptr().addr();
    let packet_wire_bytes = (frame.wire_bytes as usize).saturating_sub(before_bytes);
    let ip = ip_packet(packet)?;
    if ip.is_fragmenting_payload() {
        return Err(NoSegment::Fragment);
    }
    let payload = ip.payload();
    match payload.ip_number {
        IpNumber::TCP => {}
        other if is_extension(other) => return Err(NoSegment::CutShort),
        _ => return Err(tunnel::why_none(payload)),
    }
    let header_bytes = payload.payload.as_ptr().addr() - packet.as_ptr().addr();
    let wire_bytes = packet_bytes(&ip, packet_wire_bytes).checked_sub(header_bytes);
    let (addresses, ecn, ip_id) = of_ip(&ip);
    Ok(Carried {
        addresses,
        ecn,
        ip_id,
        tcp: payload.payload,
        wire_bytes: wire_bytes.ok_or(NoSegment::Malformed)?,
    })
}

/// Where parsing of extension headers stopped.
fn is_extension(number: IpNumber) -> bool {
    number == IpNumber::AUTHENTICATION_HEADER || number.is_ipv6_ext_header_value()
}

fn network_layer<'b>(frame: &Frame<'b>) -> Result<&'b [u8], NoSegment> {
    let data = frame.data;
    match frame.link_type {
        link_type::ETHERNET => tagged(data, 12),
        link_type::LINUX_SLL => tagged(data, 14),
        // The protocol comes first, then 18 bytes more of header.
        link_type::LINUX_SLL2 => typed(be_u16(data, 0)?, data, 20),
        // The address family, whose number differs between systems: the version tells.
        link_type::NULL | link_type::LOOP => after(data, 4),
        link_type::RAW | link_type::RAW_BSD | link_type::RAW_OPENBSD => Ok(data),
        link_type::IPV4 | link_type::IPV6 => Ok(data),
        _ => Err(NoSegment::UnknownLink),
    }
}

/// Behind the EtherType at `at`, and behind VLAN tags.
fn tagged(data: &[u8], mut at: usize) -> Result<&[u8], NoSegment> {
    for _ in 0..=MAX_TAGS {
        match be_u16(data, at)? {
            ether_type::VLAN | ether_type::QINQ | ether_type::QINQ_OLD => at += 4,
            other => return typed(other, data, at + 2),
        }
    }
    Err(NoSegment::Malformed)
}

fn typed(ether_type: u16, data: &[u8], at: usize) -> Result<&[u8], NoSegment> {
    match ether_type {
        ether_type::IPV4 | ether_type::IPV6 => after(data, at),
        // Linux's cooked header of version 2 is followed by the tags themselves.
        ether_type::VLAN | ether_type::QINQ => tagged(data, at + 2),
        _ => Err(NoSegment::NotIp),
    }
}

fn after(data: &[u8], at: usize) -> Result<&[u8], NoSegment> {
    data.get(at..).ok_or(NoSegment::CutShort)
}

fn be_u16(data: &[u8], at: usize) -> Result<u16, NoSegment> {
    match data.get(at..at + 2) {
        Some(&[high, low]) => Ok(u16::from_be_bytes([high, low])),
        _ => Err(NoSegment::CutShort),
    }
}

/// Of the whole IP packet. A packet of more than 65,535 bytes (BIG TCP), and one that an interface with offload was
/// yet to fill in, has 0 for its length: then it is as long as its frame.
fn packet_bytes(ip: &LaxIpSlice<'_>, wire_bytes: usize) -> usize {
    let length = match ip {
        LaxIpSlice::Ipv4(v4) => usize::from(v4.header().total_len()),
        LaxIpSlice::Ipv6(v6) => match v6.header().payload_length() {
            0 => 0,
            length => usize::from(length) + 40,
        },
    };
    match length {
        0 => wire_bytes,
        length => length,
    }
}

fn of_ip(ip: &LaxIpSlice<'_>) -> ([u128; 2], Ecn, Option<u16>) {
    match ip {
        LaxIpSlice::Ipv4(v4) => {
            let header = v4.header();
            (
                [header.source(), header.destination()].map(mapped),
                Ecn::of(header.ecn().value()),
                Some(header.identification()),
            )
        }
        LaxIpSlice::Ipv6(v6) => {
            let header = v6.header();
            (
                [header.source(), header.destination()].map(u128::from_be_bytes),
                Ecn::of(header.traffic_class()),
                None,
            )
        }
    }
}

fn mapped(address: [u8; 4]) -> u128 {
    Ipv4Addr::from(address).to_ipv6_mapped().to_bits()
}

fn tcp(time_ns: i64, carried: &Carried<'_>) -> Result<Segment, NoSegment> {
    let (header, wire_bytes) = (carried.tcp, carried.wire_bytes);
    let fixed = header.first_chunk::<TCP_HEADER_BYTES>();
    let fixed = fixed.ok_or(NoSegment::CutShort)?;
    let be_u32 = |at: usize| u32::from_be_bytes([0, 1, 2, 3].map(|i| fixed[at + i]));
    let be_u16 = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
    let header_bytes = usize::from(fixed[12] >> 4) * 4;
    if header_bytes < TCP_HEADER_BYTES || header_bytes > wire_bytes {
        return Err(NoSegment::Malformed);
    }
    let options_end = header_bytes.min(header.len());
    let flags = fixed[13];
    let [source, destination] = carried.addresses;
    Ok(Segment {
        time_ns,
        source: End::at(source, be_u16(0)),
        destination: End::at(destination, be_u16(2)),
        seq: be_u32(4),
        ack: if flags & flag::ACK != 0 { be_u32(8) } else { 0 },
        flags,
        window: be_u16(14),
        // The length of a frame is a u32, that of a packet a u16.
        payload_bytes: (wire_bytes - header_bytes) as u32,
        ip_id: carried.ip_id,
        ecn: carried.ecn,
        options: Options::read(
            &header[TCP_HEADER_BYTES..options_end],
            options_end < header_bytes,
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Bytes that decide what a packet is are often those of a plain one.
        #[test]
        fn a_plain_packet_is_read_as_any_other(
            mut packet in prop::collection::vec(any::<u8>(), 0..80),
            first in prop_oneof![4 => Just(IPV4_NO_OPTIONS), 1 => any::<u8>()],
            length in prop_oneof![4 => 0_u16..90, 1 => any::<u16>()],
            fragment in prop_oneof![4 => Just(0x4000_u16), 1 => any::<u16>()],
            protocol in prop_oneof![4 => Just(6_u8), 1 => any::<u8>()],
        ) {
            if let Some(header) = packet.first_chunk_mut::<IPV4_HEADER_BYTES>() {
                header[0] = first;
                header[2..4].copy_from_slice(&length.to_be_bytes());
                header[6..8].copy_from_slice(&fragment.to_be_bytes());
                header[9] = protocol;
            }
            let frame = Frame {
                time_ns: 0,
                link_type: link_type::RAW,
                wire_bytes: packet.len() as u32,
                data: &packet,
            };
            let any = carried_by_any(&frame, &packet);
            let is_plain = (first, fragment & 0x3fff, protocol) == (IPV4_NO_OPTIONS, 0, 6)
                && packet.len() >= IPV4_HEADER_BYTES
                && length >= 20;
            match plain(&packet) {
                Some(plain) => prop_assert_eq!(any, Ok(plain)),
                None => prop_assert!(!is_plain),
            }
        }
    }
}

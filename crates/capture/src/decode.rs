// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a frame to its TCP segment: link layers, IPv4 and IPv6 with extension headers, tunnels, TCP.

mod tunnel;

use crate::options::Options;
use crate::reader::Frame;
use crate::segment::{Ecn, End, Segment, flag};
use etherparse::{IpNumber, LaxIpSlice};
use serde::Serialize;

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

/// `packet` lies in the frame.
fn segment(frame: &Frame<'_>, packet: &[u8]) -> Result<Segment, NoSegment> {
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
    let transport_wire_bytes = packet_bytes(&ip, packet_wire_bytes).checked_sub(header_bytes);
    tcp(
        frame.time_ns,
        &ip,
        transport_wire_bytes.ok_or(NoSegment::Malformed)?,
    )
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

fn tcp(time_ns: i64, ip: &LaxIpSlice<'_>, wire_bytes: usize) -> Result<Segment, NoSegment> {
    let header = ip.payload().payload;
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
    let (source, destination, ecn, ip_id) = ends(ip, be_u16(0), be_u16(2));
    Ok(Segment {
        time_ns,
        source,
        destination,
        seq: be_u32(4),
        ack: if flags & flag::ACK != 0 { be_u32(8) } else { 0 },
        flags,
        window: be_u16(14),
        // The length of a frame is a u32, that of a packet a u16.
        payload_bytes: (wire_bytes - header_bytes) as u32,
        ip_id,
        ecn,
        options: Options::read(
            &header[TCP_HEADER_BYTES..options_end],
            options_end < header_bytes,
        ),
    })
}

fn ends(ip: &LaxIpSlice<'_>, from: u16, to: u16) -> (End, End, Ecn, Option<u16>) {
    match ip {
        LaxIpSlice::Ipv4(v4) => {
            let header = v4.header();
            (
                End::v4(header.source(), from),
                End::v4(header.destination(), to),
                Ecn::of(header.ecn().value()),
                Some(header.identification()),
            )
        }
        LaxIpSlice::Ipv6(v6) => {
            let header = v6.header();
            (
                End::v6(header.source(), from),
                End::v6(header.destination(), to),
                Ecn::of(header.traffic_class()),
                None,
            )
        }
    }
}

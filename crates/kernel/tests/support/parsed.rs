// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a parser that is not ours (etherparse) finds in a frame.

use etherparse::err::ipv6_exts::HeaderError;
use etherparse::err::packet::SliceError;
use etherparse::{
    EtherType, IpNumber, IpPayloadSlice, Ipv6ExtensionSlice, LinkExtSlice, LinkSlice, NetSlice,
    SlicedPacket, TcpSlice,
};

/// IPv6 extension headers, and VLAN tags, that packet.h goes past.
const MOST_EXTENSIONS: usize = 6;
const MOST_TAGS: usize = 2;

/// The two bytes after the acknowledgement number, where packet.h should find them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    Tcp(u16),
    NoTcp,
    /// A chain of extension headers against RFC 8200, 4.1, which that parser refuses.
    Open,
}

impl Parsed {
    pub fn of(frame: &[u8]) -> Parsed {
        match SlicedPacket::from_ethernet(frame) {
            Ok(packet) => flags(&packet).map_or(Parsed::NoTcp, Parsed::Tcp),
            Err(SliceError::Ipv6Exts(HeaderError::HopByHopNotAtStart)) => Parsed::Open,
            // Of a first fragment it does not read the TCP header, so no error comes from there.
            Err(_) => Parsed::NoTcp,
        }
    }
}

fn flags(packet: &SlicedPacket<'_>) -> Option<u16> {
    let payload = match packet.net.as_ref()? {
        NetSlice::Ipv4(ip) => {
            let is_first = ip.header().fragments_offset().value() == 0;
            (is_first && ip.extensions().auth.is_none()).then(|| ip.payload())?
        }
        NetSlice::Ipv6(ip) => {
            let extensions: Vec<_> = ip.extensions().clone().into_iter().collect();
            let is_first = extensions.iter().all(is_first_fragment);
            let is_wire = ip.header().payload_length() > 0;
            (is_first && is_wire && extensions.len() <= MOST_EXTENSIONS).then(|| ip.payload())?
        }
        NetSlice::Arp(_) => return None,
    };
    tags_are_known(packet).then(|| tcp_flags(payload))?
}

fn is_first_fragment(extension: &Ipv6ExtensionSlice<'_>) -> bool {
    match extension {
        Ipv6ExtensionSlice::Fragment(fragment) => fragment.fragment_offset().value() == 0,
        _ => true,
    }
}

fn tcp_flags(payload: &IpPayloadSlice<'_>) -> Option<u16> {
    if payload.ip_number != IpNumber::TCP {
        return None;
    }
    let tcp = TcpSlice::from_slice(payload.payload).ok()?;
    Some(u16::from_be_bytes([tcp.slice()[12], tcp.slice()[13]]))
}

/// 802.1Q and 802.1ad, which is what it says of every tag before IP.
fn tags_are_known(packet: &SlicedPacket<'_>) -> bool {
    let Some(LinkSlice::Ethernet2(ethernet)) = &packet.link else {
        return false;
    };
    let mut kind = ethernet.ether_type();
    for tag in &packet.link_exts {
        let LinkExtSlice::Vlan(tag) = tag else {
            return false;
        };
        if ![EtherType::VLAN_TAGGED_FRAME, EtherType::PROVIDER_BRIDGING].contains(&kind) {
            return false;
        }
        kind = tag.ether_type();
    }
    packet.link_exts.len() <= MOST_TAGS
}

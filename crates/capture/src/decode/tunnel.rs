// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a packet that is no TCP carries: another packet, by GRE, VXLAN or IP in IP, or what only its ends can read.

use super::{NoSegment, after, be_u16, tagged, typed};
use etherparse::{IpNumber, LaxIpPayloadSlice};

/// RFC 7348, section 5; IANA's port of VXLAN.
const VXLAN_PORT: u16 = 4789;
const VXLAN_BYTES: usize = 8;
const UDP_BYTES: usize = 8;
/// RFC 7348, section 5: the flag without which there is no VNI.
const VXLAN_HAS_VNI: u8 = 0x08;

/// RFC 2784 and 2890: what of the header is there, and its version.
const GRE_CHECKSUM: u16 = 0x8000;
const GRE_KEY: u16 = 0x2000;
const GRE_SEQUENCE: u16 = 0x1000;
const GRE_VERSION: u16 = 0x0007;
/// RFC 1701's routing, which nobody uses.
const GRE_ROUTING: u16 = 0x4000;
/// An Ethernet frame in GRE.
const BRIDGED: u16 = 0x6558;

/// WireGuard's messages: kind, then three zeros; data is padded to 16 bytes and has 32 bytes more
/// (<https://www.wireguard.com/protocol/>).
const WIREGUARD_LENGTHS: [(u8, usize); 3] = [(1, 148), (2, 92), (3, 64)];
const WIREGUARD_DATA: u8 = 4;

/// Why the payload of an IP packet is no segment.
pub(super) fn why_none(payload: &LaxIpPayloadSlice<'_>) -> NoSegment {
    match payload.ip_number {
        IpNumber::GRE | IpNumber::IPV4 | IpNumber::IPV6 => NoSegment::Tunnel,
        IpNumber::UDP if is_vxlan(payload.payload) => NoSegment::Tunnel,
        IpNumber::UDP if is_wireguard(payload.payload) => NoSegment::Encrypted,
        _ => NoSegment::NotTcp,
    }
}

fn is_vxlan(udp: &[u8]) -> bool {
    let flags = udp.get(UDP_BYTES).copied().unwrap_or_default();
    be_u16(udp, 2) == Ok(VXLAN_PORT) && flags & VXLAN_HAS_VNI != 0
}

fn is_wireguard(udp: &[u8]) -> bool {
    let Some([kind, 0, 0, 0]) = udp.get(UDP_BYTES..UDP_BYTES + 4) else {
        return false;
    };
    let bytes = be_u16(udp, 4)
        .map_or(0, usize::from)
        .saturating_sub(UDP_BYTES);
    match *kind {
        WIREGUARD_DATA => bytes >= 32 && bytes.is_multiple_of(16),
        kind => WIREGUARD_LENGTHS.contains(&(kind, bytes)),
    }
}

/// The IP packet within.
pub(super) fn inner<'b>(payload: &LaxIpPayloadSlice<'b>) -> Result<&'b [u8], NoSegment> {
    match payload.ip_number {
        IpNumber::GRE => gre(payload.payload),
        IpNumber::UDP => tagged(payload.payload, UDP_BYTES + VXLAN_BYTES + 12),
        _ => Ok(payload.payload),
    }
}

fn gre(data: &[u8]) -> Result<&[u8], NoSegment> {
    let (flags, protocol) = (be_u16(data, 0)?, be_u16(data, 2)?);
    if flags & (GRE_VERSION | GRE_ROUTING) != 0 {
        return Err(NoSegment::NotTcp);
    }
    let optional = [GRE_CHECKSUM, GRE_KEY, GRE_SEQUENCE];
    let optional = optional.iter().filter(|flag| flags & **flag != 0).count();
    let at = 4 + 4 * optional;
    match protocol {
        BRIDGED => tagged(after(data, at)?, 12),
        other => typed(other, data, at),
    }
}

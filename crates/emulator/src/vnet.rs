// SPDX-License-Identifier: MIT OR Apache-2.0
//! The virtio-net header before each packet: `struct virtio_net_hdr` of linux/virtio_net.h. Its
//! integers are in host byte order; offsets in them count from the IP header.

use crate::bytes::{host_u16, set_be_u16};
use crate::checksum;
use crate::ip::Parts;
use crate::tun::Tun;

/// Its length, and so where the IP header begins in a frame.
pub(crate) const BYTES: usize = Tun::VNET_BYTES;

const FLAGS: usize = 0;
const GSO_TYPE: usize = 1;
const HDR_LEN: usize = 2;
const GSO_SIZE: usize = 4;
const CSUM_START: usize = 6;
const CSUM_OFFSET: usize = 8;
const FLAG_NEEDS_CSUM: u8 = 1;
const GSO_NONE: u8 = 0;
const GSO_ECN: u8 = 0x80;

/// Segmentation of a TCP packet over IPv4.
pub(crate) const GSO_TCPV4: u8 = 1;
/// Segmentation of a TCP packet over IPv6.
pub(crate) const GSO_TCPV6: u8 = 4;
/// Segmentation of a UDP packet over either.
pub(crate) const GSO_UDP_L4: u8 = 5;

/// How the packet is to be segmented, without the bit that says that only the first segment has CWR.
pub(crate) fn gso_type(vnet: &[u8]) -> u8 {
    vnet[GSO_TYPE] & !GSO_ECN
}

/// Payload of every segment but the last.
pub(crate) fn gso_size(vnet: &[u8]) -> u16 {
    host_u16(vnet, GSO_SIZE)
}

/// Makes the packet one segment.
pub(crate) fn clear_gso(vnet: &mut [u8]) {
    vnet[GSO_TYPE] = GSO_NONE;
    vnet[GSO_SIZE..GSO_SIZE + 2].fill(0);
}

/// Bounds `hdr_len`, the bytes that the kernel is to keep in one piece. Read from a device, it is what the kernel kept so, which
/// may be a whole super-packet; and the kernel refuses a packet that is shorter than its `hdr_len`.
pub(crate) fn bound_header(vnet: &mut [u8], most_bytes: u16) {
    let bytes = host_u16(vnet, HDR_LEN).min(most_bytes);
    vnet[HDR_LEN..HDR_LEN + 2].copy_from_slice(&bytes.to_ne_bytes());
}

/// Takes away what holds for a first segment only.
pub(crate) fn clear_gso_ecn(vnet: &mut [u8]) {
    vnet[GSO_TYPE] &= !GSO_ECN;
}

/// Where a checksum begins and its field lies in it, if the checksum is partial: the field holds the
/// sum of the pseudo-header only.
pub(crate) fn partial_checksum(vnet: &[u8]) -> Option<(usize, usize)> {
    let is_partial = vnet[FLAGS] & FLAG_NEEDS_CSUM != 0;
    let start = host_u16(vnet, CSUM_START).into();
    is_partial.then(|| (start, host_u16(vnet, CSUM_OFFSET).into()))
}

/// Completes a partial checksum of a frame of one segment, and asks the receiver to verify it. What
/// is said of a checksum that would not lie behind a sound IP header, and before the end, stays as it
/// is: no kernel says so.
pub(crate) fn complete_checksum(frame: &mut [u8]) {
    let (vnet, packet) = frame.split_at_mut(BYTES);
    if let Some((start, offset)) = partial_checksum(vnet) {
        let field = start + offset;
        let is_behind = Parts::of(packet).is_some_and(|parts| start >= parts.transport);
        if !is_behind || field + 2 > packet.len() {
            return;
        }
        let sum = checksum::sum(&packet[start..]);
        set_be_u16(packet, field, checksum::field(sum));
    }
    vnet.fill(0);
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a cell must know of a packet: how many segments of what length, and how to split them off.

use std::net::SocketAddr;

/// The segments of a packet as they lie on the wire: all of one length but the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wire {
    /// How many segments, at least 1.
    pub segments: u32,
    /// Length of every segment but the last: IP header, transport header and payload.
    pub segment_bytes: u32,
    /// Length of the last segment, headers included; at most `segment_bytes`.
    pub last_bytes: u32,
}

impl Wire {
    /// A packet of one segment of `len_bytes`.
    #[inline]
    pub const fn single(len_bytes: u32) -> Self {
        Wire {
            segments: 1,
            segment_bytes: len_bytes,
            last_bytes: len_bytes,
        }
    }

    /// Length of the whole packet when each of its segments costs `overhead_bytes` more
    /// (framing, preamble, gap between frames).
    #[inline]
    pub fn len_bytes(&self, overhead_bytes: u32) -> u64 {
        self.front_bytes(self.segments, overhead_bytes)
    }

    /// Length of the first `count` segments, each with `overhead_bytes` more.
    #[inline]
    pub fn front_bytes(&self, count: u32, overhead_bytes: u32) -> u64 {
        let full = u64::from(count.min(self.segments - 1));
        let last = u64::from(count >= self.segments);
        full * u64::from(self.segment_bytes + overhead_bytes)
            + last * u64::from(self.last_bytes + overhead_bytes)
    }
}

/// The ECN field of the IP header (RFC 3168, section 5; RFC 8311 for ECT(1)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ecn {
    /// The sender does not know ECN: such a segment is dropped where others are marked.
    NotCapable,
    /// ECT(0) or ECT(1).
    Capable,
    /// Congestion was met.
    Marked,
}

/// The flow of a packet, in its direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Flow {
    /// Sender.
    pub source: SocketAddr,
    /// Receiver.
    pub destination: SocketAddr,
    /// IP protocol number: 6 is TCP, 17 UDP.
    pub protocol: u8,
}

/// A packet that cells can carry: one segment, or a super-packet of several, which have one flow and
/// one ECN field.
pub trait Packet: Sized {
    /// The segments of this packet.
    fn wire(&self) -> Wire;

    /// Takes the first `count` segments off, `0 < count < segments`, and returns them as a packet;
    /// `self` keeps the rest.
    fn split_front(&mut self, count: u32) -> Self;

    /// The ECN field.
    fn ecn(&self) -> Ecn;

    /// Sets the ECN field of all segments, which must be capable, to congestion met.
    fn mark(&mut self);

    /// Sets the six bits of the DSCP (RFC 2474) of all segments, if they are IP packets.
    fn set_dscp(&mut self, dscp: u8);

    /// The flow; `None` if it has no ports: ICMP, later fragments, what is no IP packet.
    fn flow(&self) -> Option<Flow>;

    /// Whether it carries data of a program, rather than acknowledgements or control only.
    fn has_data(&self) -> bool;

    /// The same packet again.
    fn duplicate(&self) -> Self;

    /// Flips one bit behind the IP header, chosen by `random`, of a packet of one segment, so that a
    /// checksum is wrong which the receiver verifies.
    fn corrupt(&mut self, random: u64);

    /// The message to the sender that this is longer than `mtu_bytes` (ICMP type 3 code 4, RFC 1191;
    /// ICMPv6 type 2, RFC 4443); `None` where none may be sent, as about ICMP errors.
    fn too_big(&self, mtu_bytes: u32) -> Option<Self>;

    /// Whether what is longer than an MTU goes on in fragments: IPv4 packets without the DF flag (RFC 791, section 3.2).
    fn may_be_fragmented(&self) -> bool {
        false
    }

    /// The fragments of this one segment, which is longer than `mtu_bytes` and may be fragmented.
    fn fragments(self, _mtu_bytes: u32) -> Vec<Self> {
        vec![self]
    }
}

/// The first `count` segments of a packet, 1 to all of them, and what is left.
pub(crate) fn split<P: Packet>(mut packet: P, count: u32) -> (P, Option<P>) {
    if count >= packet.wire().segments {
        return (packet, None);
    }
    (packet.split_front(count), Some(packet))
}

/// Hands over the segments of a packet one by one.
pub(crate) fn each_segment<P: Packet>(packet: P, mut take: impl FnMut(P)) {
    let mut rest = Some(packet);
    while let Some(packet) = rest.take() {
        let (segment, behind) = split(packet, 1);
        take(segment);
        rest = behind;
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets that are longer than a link's MTU, in fragments (RFC 791, section 3.2), and whole again at their host. Knows IPv4's
//! header, and nothing of who sends.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use fatpath_link::headers::IPV4_BYTES;
use fatpath_link::{Ecn, Packet};

use super::{Body, SimPacket};

/// The data of all fragments but the last are a multiple of this, bytes.
const UNIT_BYTES: u32 = 8;

/// A packet whose fragments are under way; it is lost with any of them. Copies of fragments count once, so a packet of which
/// all fragments come twice arrives once, where a host would have it twice.
#[derive(Debug)]
pub(crate) struct Whole {
    packet: SimPacket,
    has_arrived: RefCell<Vec<bool>>,
    is_marked: Cell<bool>,
}

impl Whole {
    /// What it was.
    pub(crate) fn packet(&self) -> &SimPacket {
        &self.packet
    }

    /// One of its fragments met congestion, and so has it (RFC 3168, section 5.3).
    pub(crate) fn mark(&self) {
        self.is_marked.set(true);
    }

    /// The packet, if this fragment is the last that it waits for.
    fn arrived(&self, number: u16) -> Option<SimPacket> {
        let mut has_arrived = self.has_arrived.borrow_mut();
        let was_there = std::mem::replace(&mut has_arrived[usize::from(number)], true);
        if was_there || has_arrived.contains(&false) {
            return None;
        }
        let mut packet = self.packet.clone();
        if self.is_marked.get() && packet.ecn() != Ecn::NotCapable {
            packet.mark();
        }
        Some(packet)
    }
}

/// Those of a packet that is longer than `mtu_bytes`, at least 68 bytes.
pub(crate) fn fragments(packet: SimPacket, mtu_bytes: u32) -> Vec<SimPacket> {
    let most_bytes = (mtu_bytes - IPV4_BYTES) / UNIT_BYTES * UNIT_BYTES;
    let bytes = packet.wire().last_bytes.saturating_sub(IPV4_BYTES);
    let count = bytes.div_ceil(most_bytes);
    let SimPacket {
        session,
        connection,
        ..
    } = packet;
    let whole = Rc::new(Whole {
        packet,
        has_arrived: RefCell::new(vec![false; count as usize]),
        is_marked: Cell::new(false),
    });
    let one = |number: u32| SimPacket {
        session,
        connection,
        body: Body::Fragment {
            len_bytes: (IPV4_BYTES + most_bytes.min(bytes - number * most_bytes)) as u16,
            number: number as u16,
            whole: Rc::clone(&whole),
        },
    };
    (0..count).map(one).collect()
}

/// What a host has when `packet` has arrived: that, or what it was the last fragment of, or nothing yet.
pub(crate) fn reassembled(packet: SimPacket) -> Option<SimPacket> {
    match packet.body {
        Body::Fragment { number, whole, .. } => reassembled(whole.arrived(number)?),
        _ => Some(packet),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Label;
    use fatpath_tcp::Segment;

    fn packet(payload_bytes: u32) -> SimPacket {
        let label = Label {
            session: 3,
            connection: 0,
            header_bytes: 82,
            may_be_fragmented: true,
        };
        let segment = Segment {
            number: 7,
            payload_bytes,
            sent_ns: 1,
            echo_ns: 2,
            ecn: Ecn::Capable,
            cwr: false,
        };
        SimPacket::data(label, segment)
    }

    fn lengths(packets: &[SimPacket]) -> Vec<u32> {
        packets.iter().map(|one| one.wire().last_bytes).collect()
    }

    #[test]
    fn fragments_have_the_lengths_that_linux_gives_them() {
        // 5,888 bytes of UDP payload, 8 of UDP's header: three of 1,480 and the rest.
        let whole = packet(5_888 + 28 - 82);
        assert_eq!(whole.wire().last_bytes, 5_916);
        assert_eq!(
            lengths(&fragments(whole, 1_500)),
            [1_500, 1_500, 1_500, 1_476]
        );
        // 1,476 bytes of data behind the header: no multiple of 8 in all but the last.
        assert_eq!(
            lengths(&fragments(packet(1_414), 1_491)),
            [1_484, 20 + 1_476 - 1_464]
        );
    }

    #[test]
    fn the_packet_is_there_when_all_fragments_are_in_any_order_once() {
        let mut parts = fragments(packet(8_000), 1_500);
        parts.rotate_left(2);
        let last = parts.pop().unwrap();
        for part in parts {
            assert!(reassembled(part.duplicate()).is_none());
            assert!(reassembled(part).is_none());
        }
        let whole = reassembled(last.duplicate()).unwrap();
        let segment = whole.body.segment().unwrap();
        assert_eq!((segment.number, segment.payload_bytes), (7, 8_000));
        assert_eq!(segment.ecn, Ecn::Capable);
        assert!(reassembled(last).is_none());
    }

    /// As in the emulator: only the very first has the ports.
    #[test]
    fn one_fragment_of_all_belongs_to_the_flow_also_when_all_are_fragmented_again() {
        let flow = packet(4_000).flow();
        assert!(flow.is_some());
        let parts = fragments(packet(4_000), 1_500);
        let smaller = parts.into_iter().flat_map(|part| fragments(part, 600));
        let flows: Vec<_> = smaller.map(|part| part.flow()).collect();
        assert_eq!(flows.iter().flatten().count(), 1);
        assert_eq!(flows[0], flow);
    }

    #[test]
    fn a_mark_on_one_fragment_is_the_packets_also_when_that_was_fragmented_again() {
        let parts = fragments(packet(4_000), 1_500);
        let mut smaller: Vec<_> = (parts.into_iter())
            .flat_map(|part| match part.wire().last_bytes > 600 {
                true => fragments(part, 600),
                false => vec![part],
            })
            .collect();
        assert!(smaller.len() > 6);
        smaller[4].mark();
        let whole = smaller.into_iter().filter_map(reassembled).last().unwrap();
        assert_eq!(whole.body.segment().unwrap().ecn, Ecn::Marked);
    }
}

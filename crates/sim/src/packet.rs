// SPDX-License-Identifier: MIT OR Apache-2.0
//! What travels through the cells: one segment, acknowledgement, or datagram, in 40 bytes, for windows
//! of tens of thousands lie in them.

mod fragments;

use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;

use fatpath_link::{Ecn, Flow, Packet, Wire};
use fatpath_tcp::{Ack, Block, MAX_BLOCKS, Segment};

pub(crate) use fragments::reassembled;
use fragments::{Whole, fragments};

/// A packet under way.
#[derive(Clone, Debug)]
pub(crate) struct SimPacket {
    /// Whose it is.
    pub(crate) session: u32,
    /// Which of the session's connections; what comes late from an earlier one is not for this.
    pub(crate) connection: u32,
    /// What it carries.
    pub(crate) body: Body,
}

/// One end of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Where the data come from.
    Sender,
    /// Where they go.
    Receiver,
}

impl Side {
    /// The other end.
    pub(crate) fn other(self) -> Side {
        match self {
            Side::Sender => Side::Receiver,
            Side::Receiver => Side::Sender,
        }
    }
}

/// What a handshake packet does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handshake {
    /// Opens a connection.
    Syn,
    /// Answers that.
    SynAck,
    /// Asks for the data. Its own length, some hundred bytes, is left out.
    Request,
}

/// What a packet carries. Lengths are of IP, headers included.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    /// Before there are data.
    Handshake {
        len_bytes: u16,
        toward: Side,
        step: Handshake,
        sent_ns: u64,
        /// `sent_ns` of what it answers.
        echo_ns: u64,
    },
    /// A data segment.
    Data {
        len_bytes: u16,
        payload_bytes: u16,
        number: u64,
        sent_ns: u64,
        echo_ns: u64,
        ecn: Ecn,
        cwr: bool,
        may_be_fragmented: bool,
    },
    /// An acknowledgement of most kinds: no blocks. No window is above 2^30 bytes (RFC 7323, 2.3).
    PlainAck {
        len_bytes: u16,
        ece: bool,
        window_bytes: u32,
        next: u64,
        sent_ns: u64,
        echo_ns: u64,
    },
    /// Any acknowledgement.
    Ack { len_bytes: u16, ack: Box<Ack> },
    /// A UDP datagram.
    Datagram {
        len_bytes: u16,
        number: u64,
        sent_ns: u64,
        /// It counts by being there: see `Datagrams`.
        _under_way: Rc<()>,
    },
    /// Of a packet that was longer than a link's MTU.
    Fragment {
        len_bytes: u16,
        number: u16,
        whole: Rc<Whole>,
    },
    /// Damaged on the way: its checksum is wrong, so no host reads it.
    Damaged {
        len_bytes: u16,
        toward: Side,
        has_data: bool,
    },
}

/// What all packets of one connection have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Label {
    pub(crate) session: u32,
    pub(crate) connection: u32,
    pub(crate) header_bytes: u32,
    /// Its data segments may be.
    pub(crate) may_be_fragmented: bool,
}

impl Label {
    fn on(self, body: Body) -> SimPacket {
        SimPacket {
            session: self.session,
            connection: self.connection,
            body,
        }
    }
}

impl SimPacket {
    pub(crate) fn data(label: Label, segment: Segment) -> SimPacket {
        label.on(Body::Data {
            len_bytes: (segment.payload_bytes + label.header_bytes) as u16,
            payload_bytes: segment.payload_bytes as u16,
            number: segment.number,
            sent_ns: segment.sent_ns,
            echo_ns: segment.echo_ns,
            ecn: segment.ecn,
            cwr: segment.cwr,
            may_be_fragmented: label.may_be_fragmented,
        })
    }

    pub(crate) fn ack(label: Label, ack: Ack) -> SimPacket {
        let header_bytes = label.header_bytes as u16;
        label.on(match ack.block_count {
            0 => Body::PlainAck {
                len_bytes: header_bytes,
                ece: ack.ece,
                window_bytes: u32::try_from(ack.window_bytes).unwrap_or(u32::MAX),
                next: ack.next,
                sent_ns: ack.sent_ns,
                echo_ns: ack.echo_ns,
            },
            count => Body::Ack {
                len_bytes: header_bytes + sack_option_bytes(count),
                ack: Box::new(ack),
            },
        })
    }

    /// The end that it is for.
    pub(crate) fn toward(&self) -> Side {
        match &self.body {
            Body::Data { .. } | Body::Datagram { .. } => Side::Receiver,
            Body::PlainAck { .. } | Body::Ack { .. } => Side::Sender,
            Body::Handshake { toward, .. } | Body::Damaged { toward, .. } => *toward,
            Body::Fragment { whole, .. } => whole.packet().toward(),
        }
    }

    fn len_bytes(&self) -> u16 {
        match self.body {
            Body::Data { len_bytes, .. }
            | Body::Datagram { len_bytes, .. }
            | Body::Fragment { len_bytes, .. }
            | Body::Damaged { len_bytes, .. }
            | Body::Handshake { len_bytes, .. }
            | Body::PlainAck { len_bytes, .. }
            | Body::Ack { len_bytes, .. } => len_bytes,
        }
    }
}

impl Body {
    /// The data segment that it is.
    pub(crate) fn segment(&self) -> Option<Segment> {
        match *self {
            Body::Data {
                payload_bytes,
                number,
                sent_ns,
                echo_ns,
                ecn,
                cwr,
                ..
            } => Some(Segment {
                number,
                payload_bytes: payload_bytes.into(),
                sent_ns,
                echo_ns,
                ecn,
                cwr,
            }),
            _ => None,
        }
    }

    /// The acknowledgement without blocks that it is.
    pub(crate) fn plain_ack(&self) -> Option<Ack> {
        match *self {
            Body::PlainAck {
                ece,
                window_bytes,
                next,
                sent_ns,
                echo_ns,
                ..
            } => Some(Ack {
                next,
                sent_ns,
                echo_ns,
                window_bytes: window_bytes.into(),
                ece,
                tells_duplicate: false,
                block_count: 0,
                blocks: [Block::default(); MAX_BLOCKS],
            }),
            _ => None,
        }
    }
}

/// Two bytes, eight a block, and two of padding (RFC 2018, section 3).
fn sack_option_bytes(blocks: u8) -> u16 {
    4 + 8 * u16::from(blocks)
}

impl Packet for SimPacket {
    fn wire(&self) -> Wire {
        Wire::single(self.len_bytes().into())
    }

    fn split_front(&mut self, _count: u32) -> Self {
        unreachable!("a packet of one segment is never split")
    }

    /// Of data segments; handshakes, acknowledgements and datagrams are not ECN-capable.
    fn ecn(&self) -> Ecn {
        match &self.body {
            Body::Data { ecn, .. } => *ecn,
            Body::Fragment { whole, .. } => whole.packet().ecn(),
            _ => Ecn::NotCapable,
        }
    }

    fn mark(&mut self) {
        match &mut self.body {
            Body::Data { ecn, .. } => *ecn = Ecn::Marked,
            Body::Fragment { whole, .. } => whole.mark(),
            _ => {}
        }
    }

    /// No host here looks at it.
    fn set_dscp(&mut self, _dscp: u8) {}

    /// Of what carries data only: no cell tells the others apart. Of fragments the first, as only it has ports.
    fn flow(&self) -> Option<Flow> {
        if let Body::Fragment { number, whole, .. } = &self.body {
            return (*number == 0).then(|| whole.packet().flow()).flatten();
        }
        let end = |address| SocketAddr::from((Ipv4Addr::from_bits(address), 0));
        self.has_data().then(|| Flow {
            source: end(self.session),
            destination: end(self.connection),
            protocol: 6,
        })
    }

    fn has_data(&self) -> bool {
        match &self.body {
            Body::Data { .. } | Body::Datagram { .. } => true,
            Body::Damaged { has_data, .. } => *has_data,
            Body::Fragment { whole, .. } => whole.packet().has_data(),
            Body::Handshake { .. } | Body::PlainAck { .. } | Body::Ack { .. } => false,
        }
    }

    fn duplicate(&self) -> Self {
        self.clone()
    }

    fn corrupt(&mut self, _random: u64) {
        self.body = Body::Damaged {
            len_bytes: self.len_bytes(),
            toward: self.toward(),
            has_data: self.has_data(),
        };
    }

    /// Hosts here do not discover MTUs: what is too long is lost.
    fn too_big(&self, _mtu_bytes: u32) -> Option<Self> {
        None
    }

    fn may_be_fragmented(&self) -> bool {
        match self.body {
            Body::Data {
                may_be_fragmented, ..
            } => may_be_fragmented,
            Body::Datagram { .. } | Body::Fragment { .. } => true,
            _ => false,
        }
    }

    fn fragments(self, mtu_bytes: u32) -> Vec<Self> {
        fragments(self, mtu_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_and_its_moment_take_less_than_a_cache_line() {
        assert_eq!(size_of::<SimPacket>(), 40);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The receiving end. This first version acknowledges every segment and keeps none beyond a hole.

use super::{Ack, Block, MAX_BLOCKS, ReceiverFigures, Segment};
use crate::{Buffer, TcpSpec};

/// The receiving end of a connection. Its program reads at once.
#[derive(Debug)]
pub struct Receiver {
    next: u64,
    echo_ns: u64,
    window_bytes: u64,
    owes_ack: bool,
    figures: ReceiverFigures,
}

impl Receiver {
    /// Of a connection whose handshake has just ended after `rtt_ns`.
    pub fn new(spec: &TcpSpec, _rtt_ns: u64, _now_ns: u64) -> Receiver {
        let (Buffer::Fixed(window_bytes) | Buffer::Auto(_, window_bytes)) = spec.receive_buffer;
        Receiver {
            next: 0,
            echo_ns: 0,
            window_bytes,
            owes_ack: false,
            figures: ReceiverFigures::default(),
        }
    }

    /// The window it offers now, and offers in the handshake.
    pub fn window_bytes(&self) -> u64 {
        self.window_bytes
    }

    /// A segment arrives.
    pub fn handle_segment(&mut self, _now_ns: u64, segment: &Segment) {
        self.figures.arrived_pkts += 1;
        self.owes_ack = true;
        if segment.number == self.next {
            self.next += 1;
            self.echo_ns = segment.sent_ns;
            self.figures.delivered_bytes += u64::from(segment.payload_bytes);
        }
    }

    /// The next acknowledgement to leave now; to be asked until `None`.
    pub fn poll_ack(&mut self, now_ns: u64) -> Option<Ack> {
        std::mem::take(&mut self.owes_ack).then(|| {
            self.figures.acks += 1;
            Ack {
                next: self.next,
                sent_ns: now_ns,
                echo_ns: self.echo_ns,
                window_bytes: self.window_bytes,
                tells_duplicate: false,
                block_count: 0,
                blocks: [Block::default(); MAX_BLOCKS],
            }
        })
    }

    /// When [`Receiver::handle_timeout`] is to be called.
    pub fn next_timeout_ns(&self) -> Option<u64> {
        None
    }

    /// A time that [`Receiver::next_timeout_ns`] named has come.
    pub fn handle_timeout(&mut self, _now_ns: u64) {}

    /// Handed to the program, in order.
    pub fn delivered_bytes(&self) -> u64 {
        self.figures.delivered_bytes
    }

    /// How it stands.
    pub fn figures(&self) -> ReceiverFigures {
        self.figures
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Both ends of one established connection, and what they carry for its program.

use fatpath_tcp::{Ack, Receiver, Sender, SenderFigures};

use crate::TcpSpec;
use crate::packet::{Body, Label, Side, SimPacket};
use crate::shared_rate::Part;
use crate::wakes::NEVER;

/// A connection.
#[derive(Debug)]
pub(crate) struct Connection {
    sender: Sender,
    receiver: Receiver,
    /// Of a rate that it shares with others.
    part: Option<Part>,
    /// Something happened to it since it was polled last.
    sender_moved: bool,
    receiver_moved: bool,
    sender_due_ns: u64,
    receiver_due_ns: u64,
    /// When the program writes again, if it waits; all that it wrote is through then.
    writes_ns: Option<u64>,
    written_bytes: u64,
}

/// Sums over connections.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) connections: u64,
    pub(crate) delivered_bytes: u64,
    pub(crate) retransmits: u64,
    pub(crate) timeouts: u64,
    pub(crate) congestion_events: u64,
    pub(crate) undone_events: u64,
}

impl Connection {
    /// Of a handshake that ends now.
    pub(crate) fn new(spec: &TcpSpec, part: Option<Part>, rtt_ns: u64, now_ns: u64) -> Connection {
        let receiver = Receiver::new(spec, rtt_ns, now_ns);
        let mut sender = Sender::new(spec, rtt_ns, now_ns);
        sender.set_peer_window(receiver.window_bytes());
        Connection {
            sender,
            receiver,
            part,
            sender_moved: true,
            receiver_moved: true,
            sender_due_ns: NEVER,
            receiver_due_ns: NEVER,
            writes_ns: None,
            written_bytes: 0,
        }
    }

    /// When [`Connection::handle_timeout`] is to be called, or the program writes; the greatest time if
    /// neither is.
    pub(crate) fn next_due_ns(&self) -> u64 {
        let ends_ns = self.sender_due_ns.min(self.receiver_due_ns);
        ends_ns.min(self.writes_ns.unwrap_or(NEVER))
    }

    /// A time that [`Connection::next_due_ns`] named has come.
    pub(crate) fn handle_timeout(&mut self, now_ns: u64) {
        if self.sender_due_ns <= now_ns {
            self.sender.handle_timeout(now_ns);
            self.sender_moved = true;
        }
        if self.receiver_due_ns <= now_ns {
            self.receiver.handle_timeout(now_ns);
            self.receiver_moved = true;
        }
    }

    /// A packet arrives at its end. Whether it was a data segment.
    pub(crate) fn handle_body(&mut self, now_ns: u64, body: Body) -> bool {
        if let Some(segment) = body.segment() {
            self.receiver.handle_segment(now_ns, &segment);
            self.receiver_moved = true;
            return true;
        }
        match body {
            Body::Ack { ack, .. } => self.handle_ack(now_ns, &ack),
            body => body
                .plain_ack()
                .iter()
                .for_each(|ack| self.handle_ack(now_ns, ack)),
        }
        false
    }

    fn handle_ack(&mut self, now_ns: u64, ack: &Ack) {
        self.sender.handle_ack(now_ns, ack);
        self.sender_moved = true;
        self.follow_shared_rate(now_ns);
    }

    /// As the kernel half: at acknowledgements, and when a transmission begins.
    fn follow_shared_rate(&mut self, now_ns: u64) {
        let Some(part) = &mut self.part else {
            return;
        };
        if let Some(rate_bps) = part.note(now_ns, self.sender.figures().srtt_us) {
            self.sender.set_pacing_rate(rate_bps);
        }
    }

    /// The next packet to leave now, and the end from which it does; to be asked until `None`.
    pub(crate) fn poll_transmit(&mut self, now_ns: u64, label: Label) -> Option<(Side, SimPacket)> {
        if self.sender_moved {
            if self.sender.is_to_begin_transmission() {
                self.follow_shared_rate(now_ns);
            }
            if let Some(segment) = self.sender.poll_transmit(now_ns) {
                return Some((Side::Sender, SimPacket::data(label, segment)));
            }
            self.sender_moved = false;
            self.sender_due_ns = self.sender.next_timeout_ns().unwrap_or(NEVER);
        }
        if self.receiver_moved {
            if let Some(ack) = self.receiver.poll_ack(now_ns) {
                return Some((Side::Receiver, SimPacket::ack(label, ack)));
            }
            self.receiver_moved = false;
            self.receiver_due_ns = self.receiver.next_timeout_ns().unwrap_or(NEVER);
        }
        None
    }

    /// The program writes.
    pub(crate) fn write(&mut self, bytes: u64) {
        self.writes_ns = None;
        self.written_bytes += bytes;
        self.sender.write(bytes);
        self.sender_moved = true;
    }

    /// The program is to write at `at_ns`.
    pub(crate) fn wait(&mut self, at_ns: u64) {
        self.writes_ns = Some(at_ns);
    }

    /// Whether it waits no longer than until now.
    pub(crate) fn is_to_write(&self, now_ns: u64) -> bool {
        self.writes_ns.is_some_and(|at_ns| at_ns <= now_ns)
    }

    /// Whether what was written last has just got through: to the receiver if it asked for it, else
    /// acknowledged.
    pub(crate) fn is_through(&self, is_asked_for: bool) -> bool {
        self.writes_ns.is_none()
            && match is_asked_for {
                true => self.receiver.delivered_bytes() == self.written_bytes,
                false => self.sender.is_done(),
            }
    }

    /// Of its sender.
    pub(crate) fn sender_figures(&self) -> SenderFigures {
        self.sender.figures()
    }
}

impl Totals {
    pub(crate) fn with(self, open: &Connection) -> Totals {
        let sender = open.sender.figures();
        Totals {
            connections: self.connections,
            delivered_bytes: self.delivered_bytes + open.receiver.delivered_bytes(),
            retransmits: self.retransmits + sender.retransmits,
            timeouts: self.timeouts + sender.timeouts,
            congestion_events: self.congestion_events + sender.congestion_events,
            undone_events: self.undone_events + sender.undone_events,
        }
    }
}

impl std::ops::AddAssign for Totals {
    fn add_assign(&mut self, other: Totals) {
        self.connections += other.connections;
        self.delivered_bytes += other.delivered_bytes;
        self.retransmits += other.retransmits;
        self.timeouts += other.timeouts;
        self.congestion_events += other.congestion_events;
        self.undone_events += other.undone_events;
    }
}

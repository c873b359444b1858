// SPDX-License-Identifier: MIT OR Apache-2.0
//! A program and its connections, one after the other, both ends: what arrives goes in by `handle_*`,
//! what leaves comes out by `poll_transmit`, times by `next_due_ns`.

use fatpath_tcp::SenderFigures;

use crate::connection::{Connection, Totals};
use crate::outcome::Completion;
use crate::packet::{Body, Handshake, Label, Side, SimPacket};
use crate::program::{Next, Program};
use crate::shared_rate::Shared;
use crate::wakes::NEVER;
use crate::{FlowSpec, TcpSpec};

/// The first timeout of a SYN, doubled each time (RFC 6298, section 2.1 and 5.5).
const SYN_TIMEOUT_NS: u64 = 1_000_000_000;
/// RFC 6298, section 2.5.
const MAX_SYN_TIMEOUT_NS: u64 = 60_000_000_000;

/// A program and its connections.
#[derive(Debug)]
pub(crate) struct Connections<'a> {
    tcp: &'a TcpSpec,
    may_be_fragmented: bool,
    shared: Option<Shared>,
    /// Of this session, in packets.
    index: u32,
    /// Which connection this is, from 1.
    number: u32,
    program: Program,
    phase: Phase,
    /// A handshake packet to leave.
    sends: Option<(Side, SimPacket)>,
    /// When the transfer under way began.
    began_ns: u64,
    transfer_bytes: u64,
    stop_ns: u64,
    /// How long the program sends from `established_ns` on.
    lasts_ns: u64,
    /// When the first connection was.
    established_ns: Option<u64>,
    completed: Option<Completion>,
    closed: Totals,
}

#[derive(Debug)]
enum Phase {
    /// No connection until then.
    Pause { until_ns: u64 },
    /// The opener repeats this step of the handshake.
    Opening {
        step: Handshake,
        echo_ns: u64,
        retry_ns: u64,
        timeout_ns: u64,
    },
    /// Both ends know the connection.
    Open(Box<Connection>),
    /// Over, since then.
    Ended { at_ns: u64 },
}

impl<'a> Connections<'a> {
    pub(crate) fn new(
        spec: &'a FlowSpec,
        index: u32,
        mut program: Program,
        shared: Option<Shared>,
    ) -> Connections<'a> {
        let until_ns = spec.start_ns + program.first_pause_ns();
        let stop_ns = match program.is_asked_for() {
            true => spec.last_ns(),
            false => spec.stop_ns.unwrap_or(NEVER),
        };
        Connections {
            tcp: &spec.tcp,
            may_be_fragmented: spec.may_be_fragmented,
            shared,
            index,
            number: 0,
            program,
            phase: Phase::Pause { until_ns },
            sends: None,
            began_ns: 0,
            transfer_bytes: 0,
            stop_ns,
            lasts_ns: spec.lasts_ns.unwrap_or(NEVER),
            established_ns: None,
            completed: None,
            closed: Totals::default(),
        }
    }

    /// When [`Connections::handle_timeout`] is to be called.
    pub(crate) fn next_due_ns(&self) -> Option<u64> {
        let due_ns = match &self.phase {
            Phase::Pause { until_ns } => *until_ns,
            Phase::Opening { retry_ns, .. } => *retry_ns,
            Phase::Open(open) => open.next_due_ns(),
            Phase::Ended { .. } => return None,
        };
        Some(due_ns.min(self.stop_ns)).filter(|due_ns| *due_ns < NEVER)
    }

    /// A time that [`Connections::next_due_ns`] named has come.
    pub(crate) fn handle_timeout(&mut self, now_ns: u64) {
        if now_ns >= self.stop_ns {
            return self.close(Phase::Ended { at_ns: now_ns });
        }
        match &mut self.phase {
            Phase::Pause { until_ns } if *until_ns <= now_ns => self.connect(now_ns),
            Phase::Opening { retry_ns, .. } if *retry_ns <= now_ns => self.repeat(now_ns),
            Phase::Open(open) => {
                open.handle_timeout(now_ns);
                if open.is_to_write(now_ns) {
                    self.write(now_ns);
                }
            }
            Phase::Pause { .. } | Phase::Opening { .. } | Phase::Ended { .. } => {}
        }
        self.settle(now_ns);
    }

    /// A packet arrives at its end. Whether it was a data segment of this connection.
    pub(crate) fn handle_packet(&mut self, now_ns: u64, connection: u32, body: Body) -> bool {
        if connection != self.number {
            return false;
        }
        let is_data = match (&mut self.phase, body) {
            (Phase::Open(open), body) => open.handle_body(now_ns, body),
            (
                Phase::Opening { .. },
                Body::Handshake {
                    step,
                    sent_ns,
                    echo_ns,
                    ..
                },
            ) => {
                self.shake_hands(now_ns, step, sent_ns, echo_ns);
                false
            }
            (Phase::Opening { .. } | Phase::Pause { .. } | Phase::Ended { .. }, _) => false,
        };
        self.settle(now_ns);
        is_data
    }

    /// The next packet to leave now, and the end from which it does; to be asked until `None`.
    pub(crate) fn poll_transmit(&mut self, now_ns: u64) -> Option<(Side, SimPacket)> {
        if let Some(sends) = self.sends.take() {
            return Some(sends);
        }
        let Phase::Open(open) = &mut self.phase else {
            return None;
        };
        let label = Label {
            session: self.index,
            connection: self.number,
            header_bytes: self.tcp.header_bytes,
            may_be_fragmented: self.may_be_fragmented,
        };
        open.poll_transmit(now_ns, label)
    }

    /// The transfer that has been completed since this was asked.
    pub(crate) fn take_completed(&mut self) -> Option<Completion> {
        self.completed.take()
    }

    /// When it was over, if it is by now.
    pub(crate) fn ended_ns(&self, now_ns: u64) -> Option<u64> {
        match self.phase {
            Phase::Ended { at_ns } => Some(at_ns),
            _ => (self.stop_ns <= now_ns).then_some(self.stop_ns),
        }
    }

    /// When its first connection was established.
    pub(crate) fn established_ns(&self) -> Option<u64> {
        self.established_ns
    }

    /// Over all its connections.
    pub(crate) fn totals(&self) -> Totals {
        match &self.phase {
            Phase::Open(open) => self.closed.with(open),
            _ => self.closed,
        }
    }

    /// Of its sender; none without a connection.
    pub(crate) fn sender_figures(&self) -> Option<SenderFigures> {
        match &self.phase {
            Phase::Open(open) => Some(open.sender_figures()),
            _ => None,
        }
    }

    fn connect(&mut self, now_ns: u64) {
        self.number += 1;
        self.began_ns = now_ns;
        self.phase = Phase::Opening {
            step: Handshake::Syn,
            echo_ns: 0,
            retry_ns: now_ns + SYN_TIMEOUT_NS,
            timeout_ns: SYN_TIMEOUT_NS,
        };
        self.shake(self.opener(), Handshake::Syn, now_ns, 0);
    }

    fn repeat(&mut self, now_ns: u64) {
        let opener = self.opener();
        let Phase::Opening {
            step,
            echo_ns,
            retry_ns,
            timeout_ns,
        } = &mut self.phase
        else {
            return;
        };
        *timeout_ns = (2 * *timeout_ns).min(MAX_SYN_TIMEOUT_NS);
        *retry_ns = now_ns + *timeout_ns;
        let (step, echo_ns) = (*step, *echo_ns);
        self.shake(opener, step, now_ns, echo_ns);
    }

    /// A step of the handshake reaches its end.
    fn shake_hands(&mut self, now_ns: u64, step: Handshake, sent_ns: u64, echo_ns: u64) {
        let opener = self.opener();
        match (step, &self.phase) {
            (Handshake::Syn, _) => self.shake(opener.other(), Handshake::SynAck, now_ns, sent_ns),
            (
                Handshake::SynAck,
                Phase::Opening {
                    step: Handshake::Syn,
                    ..
                },
            ) => match opener {
                Side::Sender => self.open(now_ns, now_ns - echo_ns),
                Side::Receiver => self.ask(now_ns, sent_ns),
            },
            (Handshake::SynAck, _) => {}
            (Handshake::Request, _) => self.open(now_ns, now_ns - echo_ns),
        }
    }

    fn ask(&mut self, now_ns: u64, echo_ns: u64) {
        self.phase = Phase::Opening {
            step: Handshake::Request,
            echo_ns,
            retry_ns: now_ns + SYN_TIMEOUT_NS,
            timeout_ns: SYN_TIMEOUT_NS,
        };
        self.shake(self.opener(), Handshake::Request, now_ns, echo_ns);
    }

    fn opener(&self) -> Side {
        match self.program.is_asked_for() {
            true => Side::Receiver,
            false => Side::Sender,
        }
    }

    fn shake(&mut self, from: Side, step: Handshake, sent_ns: u64, echo_ns: u64) {
        let body = Body::Handshake {
            len_bytes: self.tcp.header_bytes as u16,
            toward: from.other(),
            step,
            sent_ns,
            echo_ns,
        };
        let packet = SimPacket {
            session: self.index,
            connection: self.number,
            body,
        };
        self.sends = Some((from, packet));
    }

    fn open(&mut self, now_ns: u64, rtt_ns: u64) {
        self.closed.connections += 1;
        self.establish(now_ns);
        let part = self.shared.as_ref().map(Shared::part);
        self.phase = Phase::Open(Box::new(Connection::new(self.tcp, part, rtt_ns, now_ns)));
        let connected_ns = self.began_ns;
        self.write(now_ns);
        if self.program.counts_handshake() {
            self.began_ns = connected_ns;
        }
    }

    /// From the first connection on the program's time counts.
    fn establish(&mut self, now_ns: u64) {
        if self.established_ns.is_none() {
            self.established_ns = Some(now_ns);
            self.stop_ns = self.stop_ns.min(now_ns.saturating_add(self.lasts_ns));
        }
    }

    /// The program writes the next transfer.
    fn write(&mut self, now_ns: u64) {
        let Phase::Open(open) = &mut self.phase else {
            return;
        };
        self.began_ns = now_ns;
        self.transfer_bytes = self.program.next_bytes();
        open.write(self.transfer_bytes);
    }

    /// Lets the program go on if its transfer is over.
    fn settle(&mut self, now_ns: u64) {
        let Phase::Open(open) = &mut self.phase else {
            return;
        };
        if !open.is_through(self.program.is_asked_for()) {
            return;
        }
        self.completed = Some(Completion {
            at_ns: now_ns,
            bytes: self.transfer_bytes,
            took_ns: now_ns - self.began_ns,
        });
        match self.program.after(self.began_ns, now_ns) {
            Next::Write { at_ns } => open.wait(at_ns),
            Next::Connect { at_ns } => self.close(Phase::Pause { until_ns: at_ns }),
            Next::End => self.close(Phase::Ended { at_ns: now_ns }),
        }
    }

    fn close(&mut self, next: Phase) {
        self.closed = self.totals();
        self.phase = next;
    }
}

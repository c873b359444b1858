// SPDX-License-Identifier: MIT OR Apache-2.0
//! The flows of a spec as sessions: one program, or one user of many, over TCP or UDP, at both its hosts.

use std::ops::Range;

use fatpath_link::Random;
use fatpath_tcp::SenderFigures;

use crate::connection::Totals;
use crate::connections::Connections;
use crate::datagrams::Datagrams;
use crate::outcome::Completion;
use crate::packet::{Body, Side, SimPacket};
use crate::program::Program;
use crate::shared_rate::{Groups, Shared};
use crate::{FlowSpec, Source, Spec};

/// A program, or a user.
#[derive(Debug)]
pub(crate) struct Session<'a> {
    /// Of which flow.
    pub(crate) flow: usize,
    from: u32,
    to: u32,
    transport: Transport<'a>,
}

#[derive(Debug)]
enum Transport<'a> {
    Tcp(Connections<'a>),
    Udp(Datagrams),
}

/// The sessions of all flows, and where those of each flow stand.
pub(crate) fn sessions(spec: &Spec) -> (Vec<Session<'_>>, Vec<Range<usize>>) {
    let mut sessions = Vec::new();
    let mut groups = Groups::default();
    let mut of_flows = Vec::with_capacity(spec.flows.len());
    for (flow, flow_spec) in spec.flows.iter().enumerate() {
        let first = sessions.len();
        let shared = groups.shared(flow_spec);
        for user in 0..flow_spec.users() {
            // One more flow, or one more user, changes nothing for the others.
            let random = Random::stream(spec.seed, (flow as u64) << 32 | u64::from(user));
            let index = sessions.len() as u32;
            sessions.push(Session::new(flow, flow_spec, index, random, shared.clone()));
        }
        of_flows.push(first..sessions.len());
    }
    (sessions, of_flows)
}

impl FlowSpec {
    /// How many programs it stands for.
    pub(crate) fn users(&self) -> u32 {
        match self.source {
            Source::Web { users, .. } => users,
            _ => 1,
        }
    }

    /// When it stops at the latest if its time counts from its start.
    pub(crate) fn last_ns(&self) -> u64 {
        let lasts_until_ns = self
            .start_ns
            .saturating_add(self.lasts_ns.unwrap_or(u64::MAX));
        self.stop_ns.unwrap_or(u64::MAX).min(lasts_until_ns)
    }
}

impl<'a> Session<'a> {
    fn new(
        flow: usize,
        spec: &'a FlowSpec,
        index: u32,
        random: Random,
        shared: Option<Shared>,
    ) -> Session<'a> {
        let transport = match spec.source {
            Source::ConstantRate { .. } => Transport::Udp(Datagrams::new(spec, index)),
            _ => {
                let program = Program::new(&spec.source, random);
                Transport::Tcp(Connections::new(spec, index, program, shared))
            }
        };
        Session {
            flow,
            from: spec.from as u32,
            to: spec.to as u32,
            transport,
        }
    }

    /// The host at one end.
    pub(crate) fn host(&self, side: Side) -> u32 {
        match side {
            Side::Sender => self.from,
            Side::Receiver => self.to,
        }
    }

    /// When [`Session::handle_timeout`] is to be called.
    pub(crate) fn next_due_ns(&self) -> Option<u64> {
        match &self.transport {
            Transport::Tcp(connections) => connections.next_due_ns(),
            Transport::Udp(datagrams) => datagrams.next_due_ns(),
        }
    }

    /// A time that [`Session::next_due_ns`] named has come.
    pub(crate) fn handle_timeout(&mut self, now_ns: u64) {
        match &mut self.transport {
            Transport::Tcp(connections) => connections.handle_timeout(now_ns),
            Transport::Udp(datagrams) => datagrams.handle_timeout(now_ns),
        }
    }

    /// A packet arrives at its end. Whether it brought data.
    pub(crate) fn handle_packet(&mut self, now_ns: u64, packet: SimPacket) -> bool {
        match (&mut self.transport, packet.body) {
            (Transport::Tcp(connections), body) => {
                connections.handle_packet(now_ns, packet.connection, body)
            }
            (
                Transport::Udp(datagrams),
                Body::Datagram {
                    number, sent_ns, ..
                },
            ) => {
                datagrams.receive(now_ns, number, sent_ns);
                true
            }
            (Transport::Udp(_), _) => false,
        }
    }

    /// The next packet to leave now, and the end from which it does; to be asked until `None`.
    pub(crate) fn poll_transmit(&mut self, now_ns: u64) -> Option<(Side, SimPacket)> {
        match &mut self.transport {
            Transport::Tcp(connections) => connections.poll_transmit(now_ns),
            Transport::Udp(datagrams) => Some((Side::Sender, datagrams.poll_transmit(now_ns)?)),
        }
    }

    /// The transfer that has been completed since this was asked.
    pub(crate) fn take_completed(&mut self) -> Option<Completion> {
        match &mut self.transport {
            Transport::Tcp(connections) => connections.take_completed(),
            Transport::Udp(_) => None,
        }
    }

    /// When its program stopped, or was through with all, if it is by now.
    pub(crate) fn ended_ns(&self, now_ns: u64) -> Option<u64> {
        match &self.transport {
            Transport::Tcp(connections) => connections.ended_ns(now_ns),
            Transport::Udp(datagrams) => datagrams.ended_ns(now_ns),
        }
    }

    /// When its first connection was established; of datagrams, their start.
    pub(crate) fn established_ns(&self) -> Option<u64> {
        match &self.transport {
            Transport::Tcp(connections) => connections.established_ns(),
            Transport::Udp(datagrams) => Some(datagrams.start_ns()),
        }
    }

    /// Since it began.
    pub(crate) fn totals(&self) -> Totals {
        match &self.transport {
            Transport::Tcp(connections) => connections.totals(),
            Transport::Udp(datagrams) => Totals {
                delivered_bytes: datagrams.delivered_bytes(),
                ..Totals::default()
            },
        }
    }

    /// Of its sender; none without a connection.
    pub(crate) fn sender_figures(&self) -> Option<SenderFigures> {
        match &self.transport {
            Transport::Tcp(connections) => connections.sender_figures(),
            Transport::Udp(_) => None,
        }
    }

    /// What became of its datagrams; `None` over TCP.
    pub(crate) fn datagrams(&self) -> Option<&Datagrams> {
        match &self.transport {
            Transport::Tcp(_) => None,
            Transport::Udp(datagrams) => Some(datagrams),
        }
    }
}

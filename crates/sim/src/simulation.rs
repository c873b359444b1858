// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engine: whatever is due first, happens, until the end.
//!
//! What is due at the same moment happens in a fixed order: changes of links, samples, packets that leave
//! links, timers; each by its number. So a spec has one outcome.

use std::ops::{ControlFlow, Range};

use crate::connection::Totals;
use crate::network::Network;
use crate::outcome::{FlowOutcome, Outcome, Sample};
use crate::packet::{SimPacket, reassembled};
use crate::session::{Session, sessions};
use crate::wakes::{NEVER, Wakes};
use crate::{Spec, SpecError};

/// How far a simulation is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Simulated time so far.
    pub now_ns: u64,
    /// When it ends at the latest.
    pub end_ns: u64,
    /// Data segments and datagrams that reached their host so far.
    pub delivered_packets: u64,
}

/// Events between two reports of progress: some hundredths of a second.
const EVENTS_A_REPORT: u64 = 1 << 16;

/// Simulates all of `spec`, or until `on_progress` breaks; that is called often, and costs nothing if it
/// returns at once. Fails on a spec that asks for the impossible.
pub fn run(
    spec: &Spec,
    mut on_progress: impl FnMut(Progress) -> ControlFlow<()>,
) -> Result<Outcome, SpecError> {
    spec.check()?;
    let mut simulation = Simulation::new(spec);
    let mut stopped = false;
    while !stopped && simulation.step() {
        if simulation.events.is_multiple_of(EVENTS_A_REPORT) {
            stopped = on_progress(simulation.progress()).is_break();
        }
    }
    Ok(simulation.outcome(stopped))
}

struct Simulation<'a> {
    spec: &'a Spec,
    now_ns: u64,
    network: Network,
    sessions: Vec<Session<'a>>,
    wakes: Wakes,
    /// The sessions of each flow.
    of_flows: Vec<Range<usize>>,
    flows: Vec<FlowOutcome>,
    /// Changes that have been made.
    changed: usize,
    next_sample_ns: u64,
    events: u64,
    delivered_packets: u64,
}

impl<'a> Simulation<'a> {
    /// Of a spec that was checked.
    fn new(spec: &'a Spec) -> Simulation<'a> {
        let (sessions, of_flows) = sessions(spec);
        let mut wakes = Wakes::new(sessions.len());
        for (index, session) in sessions.iter().enumerate() {
            wakes.set(index, session.next_due_ns());
        }
        Simulation {
            spec,
            now_ns: 0,
            network: Network::new(spec),
            sessions,
            wakes,
            of_flows,
            flows: vec![FlowOutcome::default(); spec.flows.len()],
            changed: 0,
            next_sample_ns: spec.sample_every_ns.unwrap_or(NEVER),
            events: 0,
            delivered_packets: 0,
        }
    }

    /// Lets happen what is due first; false at the end, or when all flows are over.
    fn step(&mut self) -> bool {
        let (network_ns, timers_ns) = (self.network.next_due_ns(), self.wakes.first_ns());
        let traffic_ns = network_ns.min(timers_ns);
        if timers_ns == NEVER {
            return false; // nobody waits for anything
        }
        let (change_ns, sample_ns) = (self.next_change_ns(), self.next_sample_ns);
        let due_ns = traffic_ns.min(change_ns).min(sample_ns);
        if due_ns > self.spec.end_ns {
            self.now_ns = self.spec.end_ns;
            return false;
        }
        self.now_ns = due_ns;
        self.events += 1;
        match due_ns {
            due_ns if due_ns == change_ns => self.change(),
            due_ns if due_ns == sample_ns => self.sample(),
            due_ns if due_ns == network_ns => self.receive(),
            _ => self.time_out(),
        }
        true
    }

    fn next_change_ns(&self) -> u64 {
        let next = self.spec.changes.get(self.changed);
        next.map_or(NEVER, |change| change.at_ns)
    }

    fn change(&mut self) {
        self.network.change(&self.spec.changes[self.changed]);
        self.changed += 1;
    }

    /// All that leaves one link at this moment.
    fn receive(&mut self) {
        let direction = self.network.next_direction();
        while let Some((host, packet)) = self.network.pop(self.now_ns, direction) {
            self.arrive(host, packet);
        }
    }

    /// A packet is at a host: its own, or one on the way.
    fn arrive(&mut self, host: u32, packet: SimPacket) {
        let index = packet.session as usize;
        let session = &mut self.sessions[index];
        let destination = session.host(packet.toward());
        if host != destination {
            return self.network.send(self.now_ns, host, destination, packet);
        }
        let Some(packet) = reassembled(packet) else {
            return;
        };
        if session.handle_packet(self.now_ns, packet) {
            self.delivered_packets += 1;
        }
        self.serve(index);
    }

    fn time_out(&mut self) {
        let index = self.wakes.first();
        self.sessions[index].handle_timeout(self.now_ns);
        self.serve(index);
    }

    /// Sends what a session has to send, and notes what it has completed.
    fn serve(&mut self, index: usize) {
        let session = &mut self.sessions[index];
        while let Some((side, packet)) = session.poll_transmit(self.now_ns) {
            let (from, to) = (session.host(side), session.host(side.other()));
            self.network.send(self.now_ns, from, to, packet);
        }
        if let Some(completion) = session.take_completed() {
            self.flows[session.flow].completions.add(completion);
        }
        self.wakes.set(index, session.next_due_ns());
    }

    fn sample(&mut self) {
        self.network.sample(self.now_ns);
        for flow in 0..self.flows.len() {
            let spec = &self.spec.flows[flow];
            let runs = spec.start_ns <= self.now_ns
                && self.end_of(flow).is_none_or(|end_ns| end_ns > self.now_ns);
            if runs {
                let sample = self.sample_of(flow);
                self.flows[flow].samples.push(sample);
            }
        }
        let every_ns = self.spec.sample_every_ns.unwrap_or(NEVER);
        self.next_sample_ns = self.next_sample_ns.saturating_add(every_ns);
    }

    fn sample_of(&self, flow: usize) -> Sample {
        let totals = self.totals(flow);
        let mut sample = Sample {
            at_ns: self.now_ns,
            delivered_bytes: totals.delivered_bytes,
            retransmits: totals.retransmits,
            ..Sample::default()
        };
        let sessions = &self.sessions[self.of_flows[flow].clone()];
        for figures in sessions.iter().filter_map(Session::sender_figures) {
            sample.in_flight_pkts += u64::from(figures.in_flight_pkts);
            if sessions.len() == 1 {
                sample.cwnd_pkts = figures.cwnd_pkts;
                sample.ssthresh_pkts = figures.ssthresh_pkts;
                sample.srtt_us = figures.srtt_us;
                sample.fair_pkts = figures.fair_pkts;
            }
        }
        sample
    }

    fn totals(&self, flow: usize) -> Totals {
        let mut totals = Totals::default();
        let sessions = &self.sessions[self.of_flows[flow].clone()];
        sessions
            .iter()
            .for_each(|session| totals += session.totals());
        totals
    }

    /// When a flow's programs stopped, or were through with all; `None`: it goes on.
    fn end_of(&self, flow: usize) -> Option<u64> {
        let sessions = &self.sessions[self.of_flows[flow].clone()];
        let mut ends = sessions.iter().map(|session| session.ended_ns(self.now_ns));
        ends.try_fold(0, |last_ns, end_ns| Some(end_ns?.max(last_ns)))
    }

    fn progress(&self) -> Progress {
        Progress {
            now_ns: self.now_ns,
            end_ns: self.spec.end_ns,
            delivered_packets: self.delivered_packets,
        }
    }

    fn outcome(mut self, stopped: bool) -> Outcome {
        for flow in 0..self.flows.len() {
            self.conclude(flow);
        }
        Outcome {
            flows: self.flows,
            links: self.network.outcome(self.now_ns),
            ended_ns: self.now_ns,
            stopped,
            delivered_packets: self.delivered_packets,
            events: self.events,
        }
    }

    fn conclude(&mut self, flow: usize) {
        let totals = self.totals(flow);
        let end_ns = self.end_of(flow).unwrap_or(self.now_ns);
        let sessions = &self.sessions[self.of_flows[flow].clone()];
        let established_ns = sessions.iter().filter_map(Session::established_ns).min();
        let datagrams = sessions[0].datagrams();
        let datagrams = datagrams.map(|datagrams| datagrams.outcome());
        let outcome = &mut self.flows[flow];
        outcome.delivered_bytes = totals.delivered_bytes;
        outcome.duration_ns = end_ns.saturating_sub(self.spec.flows[flow].start_ns);
        outcome.established_ns = established_ns;
        outcome.connections = totals.connections;
        outcome.retransmits = totals.retransmits;
        outcome.timeouts = totals.timeouts;
        outcome.congestion_events = totals.congestion_events;
        outcome.undone_events = totals.undone_events;
        outcome.datagrams = datagrams;
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! One direction of a link: reads packets from the device at its beginning, hands them through its
//! chain, and writes them to the device at its end when they are due.
//!
//! Whatever happens to the chain happens in the order of virtual time, however late the machine is:
//! departures, changes of the link, ends of intervals of the observation, arrivals.

use std::collections::VecDeque;
use std::io;

use fatpath_link::{Cell, Chain, ChainSpec, Departure, Packet};
use fatpath_observation::{Header, Tally};

use crate::buffer::Pool;
use crate::clock::Clock;
use crate::error::ForwardError;
use crate::frame::Frame;
use crate::lateness::LatenessCounter;
use crate::link::Link;
use crate::observer::Observer;
use crate::poller::NEVER;
use crate::stats::DirectionStats;
use crate::tun::Tun;
use crate::waiting::{Ring, Rounds};

/// Packets read from the device before other directions get their turn. A super-packet costs some
/// 30 µs, so this bounds how late the packets of another direction leave.
const READS_A_TURN: usize = 4;

/// Packets written before other directions get their turn, and devices are read again. A packet of
/// one segment costs some 3 µs.
const WRITES_A_TURN: usize = 32;

/// With more packets to write than this, none are read: what comes then waits in the device, which drops
/// and counts what is too much for it. Where one read makes more packets than are written before the
/// next, the outbox would grow for as long as the sender sends.
const OUTBOX_PACKETS: usize = 4_096;

/// How long intervals that are not empty may come together before they are recorded. Some queues stay
/// full for minutes and nothing happens, in an outage; all their intervals at once would hold up every link.
const CATCH_UP_NS: u64 = 100_000_000;

/// What all directions use.
pub(crate) struct Tools {
    pub(crate) clock: Clock,
    pub(crate) pool: Pool,
    pub(crate) lateness: LatenessCounter,
    pub(crate) waiting: LatenessCounter,
    pub(crate) rounds: Rounds,
    pub(crate) observer: Option<Observer>,
}

/// One direction of a link, with the devices at its two ends.
pub(crate) struct Direction<'a> {
    link: &'a Link,
    from: usize,
    /// Of the device at its beginning.
    ring: Ring,
    chain: Chain<Frame>,
    /// Changes of the link that are to come, in order of time.
    changes: VecDeque<(u64, ChainSpec)>,
    tally: Option<Tally>,
    /// Whether something is, or may be, in the running interval of the tally.
    recording: bool,
    /// Left the chain, not yet written.
    outbox: VecDeque<Departure<Frame>>,
    /// The virtual time of the chain.
    reached_ns: u64,
    refused_packets: u64,
}

impl<'a> Direction<'a> {
    /// The direction from `link.ends[from]`, the `index`-th of `observed`.
    pub(crate) fn new(
        link: &'a Link,
        from: usize,
        index: usize,
        observed: Option<&Header>,
    ) -> Direction<'a> {
        let chain = link.spec.directions[from].build();
        Direction {
            link,
            from,
            ring: Ring::default(),
            chain: chain.expect("`Topology::check` found every direction in range"),
            changes: VecDeque::new(),
            tally: observed.map(|header| Tally::new(index, header)),
            recording: false,
            outbox: VecDeque::new(),
            reached_ns: 0,
            refused_packets: 0,
        }
    }

    pub(crate) fn link(&self) -> &'a Link {
        self.link
    }

    pub(crate) fn source(&self) -> &'a Tun {
        &self.link.tuns[self.from]
    }

    fn sink(&self) -> &'a Tun {
        &self.link.tuns[1 - self.from]
    }

    /// When there is something to do; [`NEVER`] when nothing is on the way.
    pub(crate) fn due_ns(&self) -> u64 {
        if !self.outbox.is_empty() {
            return 0;
        }
        let chain_ns = self.chain.next_due_ns().unwrap_or(NEVER);
        let change_ns = self.change_ns().unwrap_or(NEVER);
        chain_ns.min(change_ns).min(self.record_ns())
    }

    /// When the intervals that have ended are to be recorded, whatever else happens.
    fn record_ns(&self) -> u64 {
        match &self.tally {
            Some(tally) if self.recording => tally.end_ns().saturating_add(CATCH_UP_NS),
            _ => NEVER,
        }
    }

    fn change_ns(&self) -> Option<u64> {
        // One that was asked for late, or for a moment that has passed, is made now.
        Some(self.changes.front()?.0.max(self.reached_ns))
    }

    /// Takes a change that comes at `at_ns`, or at once if that has passed.
    pub(crate) fn change_at(&mut self, at_ns: u64, spec: ChainSpec) {
        let after = self.changes.partition_point(|(other, _)| *other <= at_ns);
        self.changes.insert(after, (at_ns, spec));
    }

    /// Reads some packets; each that is due at once leaves before the next one is read.
    pub(crate) fn receive(&mut self, tools: &mut Tools) -> Result<(), ForwardError> {
        self.ring.found_filled(&tools.rounds);
        if self.outbox.len() > OUTBOX_PACKETS {
            return Ok(());
        }
        for _ in 0..READS_A_TURN {
            let begun_ns = tools.clock.now_ns();
            let read = self.read(&tools.pool).map_err(|error| self.gone(error))?;
            let Some(frame) = read else {
                self.ring.found_empty(begun_ns, &tools.rounds);
                break;
            };
            let now_ns = tools.clock.now_ns();
            let waited_ns = self.ring.waited_ns(now_ns, &tools.rounds);
            tools.waiting.record(waited_ns);
            self.bring_to(now_ns, tools);
            self.enter(now_ns, frame);
            self.depart(now_ns);
            self.write(tools);
            if !self.outbox.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// Lets happen what is due, and writes what has left.
    pub(crate) fn send(&mut self, tools: &mut Tools) {
        self.bring_to(tools.clock.now_ns(), tools);
        self.write(tools);
    }

    /// Everything up to now, and the rest of the last interval.
    pub(crate) fn finish(&mut self, tools: &mut Tools) {
        self.bring_to(tools.clock.now_ns(), tools);
        self.end_interval(self.reached_ns, tools);
        while !self.outbox.is_empty() {
            self.write(tools);
        }
    }

    fn read(&self, pool: &Pool) -> io::Result<Option<Frame>> {
        let mut buffer = pool.take(Pool::LARGEST_BYTES);
        let len_bytes = self.source().read(&mut buffer)?;
        // Less than a virtio-net header never comes; were it to, it would be no packet.
        let len_bytes = len_bytes.filter(|len_bytes| *len_bytes >= Tun::VNET_BYTES);
        Ok(len_bytes.map(|len_bytes| Frame::new(buffer, len_bytes)))
    }

    fn enter(&mut self, now_ns: u64, mut frame: Frame) {
        if let Some(tally) = &mut self.tally {
            tally.arrived(&frame);
            self.recording = true;
        }
        if self.link.spec.exact {
            for _ in 1..frame.wire().segments {
                self.chain.push(now_ns, frame.split_front(1));
            }
        }
        self.chain.push(now_ns, frame);
    }

    /// Lets happen all that is due by `now_ns`, in order of virtual time.
    fn bring_to(&mut self, now_ns: u64, tools: &mut Tools) {
        loop {
            let change_ns = self.change_ns().unwrap_or(NEVER);
            let end_ns = self.tally.as_ref().map_or(NEVER, Tally::end_ns);
            if end_ns.min(change_ns) > now_ns {
                break;
            }
            if change_ns < end_ns {
                self.change(change_ns);
            } else if !self.end_interval(end_ns - 1, tools) {
                self.skip_to(now_ns);
            }
        }
        self.depart(now_ns);
    }

    fn change(&mut self, at_ns: u64) {
        self.depart(at_ns);
        if let Some((_, spec)) = self.changes.pop_front() {
            let adopted = self.chain.adopt(at_ns, &spec);
            adopted.expect("`Control::change` found it in range");
        }
    }

    /// Ends the interval of the observation, whose last moment is `last_ns`; says whether anything
    /// was in it.
    fn end_interval(&mut self, last_ns: u64, tools: &mut Tools) -> bool {
        self.depart(last_ns);
        let peak_bytes = self.chain.take_peak_bytes(last_ns);
        let counters = self.chain.counters();
        let ended = self.tally.as_mut();
        let record = ended.and_then(|tally| tally.end(&counters, peak_bytes));
        if let (Some(record), Some(observer)) = (&record, &mut tools.observer) {
            observer.record(record);
        }
        self.recording = record.is_some();
        self.recording
    }

    /// Leaves out the intervals in which nothing happens.
    fn skip_to(&mut self, now_ns: u64) {
        let chain_ns = self.chain.next_due_ns().unwrap_or(NEVER);
        let change_ns = self.change_ns().unwrap_or(NEVER);
        if let Some(tally) = &mut self.tally {
            tally.skip_to(now_ns.min(chain_ns).min(change_ns));
        }
    }

    /// Takes from the chain what has left it by `now_ns`.
    fn depart(&mut self, now_ns: u64) {
        self.reached_ns = now_ns;
        while let Some(departure) = self.chain.pop(now_ns) {
            if let Some(tally) = &mut self.tally {
                tally.left(&departure.packet);
                self.recording = true;
            }
            self.outbox.push_back(departure);
        }
        while let Some(reply) = self.chain.pop_reply() {
            let written = self.source().write(reply.bytes());
            self.refused_packets += u64::from(written.is_err());
        }
    }

    /// Writes some of what has left.
    fn write(&mut self, tools: &mut Tools) {
        for _ in 0..WRITES_A_TURN {
            let Some(departure) = self.outbox.pop_front() else {
                break;
            };
            let late_ns = tools.clock.now_ns() - departure.at_ns;
            tools.lateness.record(late_ns);
            let written = self.sink().write(departure.packet.bytes());
            self.refused_packets += u64::from(written.is_err());
        }
    }

    fn gone(&self, error: io::Error) -> ForwardError {
        let spec = &self.link.spec;
        ForwardError::device(spec, &spec.ends[self.from], error)
    }

    pub(crate) fn stats(&self) -> DirectionStats {
        DirectionStats {
            total: self.chain.counters(),
            cells: self.chain.cell_counters().collect(),
            held: self.chain.held(),
            refused_packets: self.refused_packets,
            missed_packets: 0,
        }
    }
}

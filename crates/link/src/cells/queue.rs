// SPDX-License-Identifier: MIT OR Apache-2.0
//! What waits for a bottleneck, and what is dropped or marked instead.
//!
//! A super-packet fares exactly as if its segments came one after the other in an instant, and is split
//! only where they fare differently. The server, and when it takes what waits, are the bottleneck's.

mod codel;
pub(super) mod line;
mod red;

use std::fmt;

use fatpath_units::show_bytes;
use serde::{Deserialize, Serialize};

use crate::cells::queue::codel::Codel;
use crate::cells::queue::line::{Depth, Line, Waiting};
use crate::cells::queue::red::{Red, Verdict};
use crate::packet::split;
use crate::random::Random;
use crate::{ChainSpec, Count, Counters, DropCause, Ecn, Packet, SpecError, Wire};

/// What waits for a bottleneck.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QueueSpec {
    /// Most bytes, those in service included; `None` for no limit. When it becomes smaller while
    /// packets wait, these stay, and nothing is admitted until it fits (drop-head makes room for the
    /// next that comes).
    pub limit_bytes: Option<u64>,
    /// Most segments, those in service included; `None` for no limit.
    pub limit_packets: Option<u64>,
    /// What is dropped, and when.
    pub discipline: Discipline,
    /// ECN-capable segments that arrive at a depth above this are marked (the step of DCTCP, RFC 8257,
    /// section 3.1); `None`: none.
    pub mark_above_bytes: Option<u64>,
}

/// What a queue drops, and when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Discipline {
    /// What arrives and does not fit.
    #[default]
    DropTail,
    /// The oldest that waits, to make room for what arrives. What is being sent is not dropped.
    DropHead,
    /// By sojourn time, RFC 8289.
    Codel {
        /// Acceptable standing delay; 5 ms in the RFC.
        target_ns: u64,
        /// Time in which a good queue drains; 100 ms in the RFC.
        interval_ns: u64,
        /// Marks ECN-capable segments instead.
        ecn: bool,
    },
    /// By averaged depth, Floyd and Jacobson 1993. A small segment is as likely dropped as a large one.
    Red {
        /// Average below which nothing is dropped.
        min_bytes: u64,
        /// Average from which on everything is dropped; above `min_bytes`.
        max_bytes: u64,
        /// Probability of a drop just below `max_bytes`.
        max_probability: f64,
        /// Weight of the newest depth in the average, above 0 to 1; 0.002 in the paper.
        weight: f64,
        /// Marks ECN-capable segments instead, below `max_bytes`.
        ecn: bool,
    },
}

impl QueueSpec {
    pub(crate) fn check(&self) -> Result<(), SpecError> {
        let refuse = |message: &str| Err(SpecError::Other(message.to_owned()));
        match self.discipline {
            Discipline::DropTail | Discipline::DropHead => Ok(()),
            Discipline::Codel {
                target_ns,
                interval_ns,
                ..
            } => {
                let times = 1..=ChainSpec::MAX_DELAY_NS;
                match times.contains(&target_ns) && times.contains(&interval_ns) {
                    true => Ok(()),
                    false => refuse("target and interval of CoDel: give 1 ns to one hour"),
                }
            }
            Discipline::Red {
                min_bytes,
                max_bytes,
                max_probability,
                weight,
                ..
            } => {
                SpecError::unless_probability("RED's probability", max_probability)?;
                if min_bytes >= max_bytes {
                    return refuse("thresholds of RED: give a maximum above the minimum");
                }
                match weight > 0.0 && weight <= 1.0 {
                    true => Ok(()),
                    false => refuse("weight of RED: give more than 0, up to 1"),
                }
            }
        }
    }
}

impl fmt::Display for QueueSpec {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let limits = [
            self.limit_bytes.map(show_bytes),
            self.limit_packets.map(|packets| format!("{packets} pkts")),
        ];
        let limits: Vec<String> = limits.into_iter().flatten().collect();
        let limit = match limits.is_empty() {
            true => "no limit".to_owned(),
            false => limits.join(" and "),
        };
        write!(f, "queue {limit} ({})", self.discipline.name())?;
        match self.mark_above_bytes {
            Some(bytes) => write!(f, ", marks above {}", show_bytes(bytes)),
            None => Ok(()),
        }
    }
}

impl Discipline {
    const fn name(&self) -> &'static str {
        match self {
            Discipline::DropTail => "drop-tail",
            Discipline::DropHead => "drop-head",
            Discipline::Codel { .. } => "codel",
            Discipline::Red { .. } => "red",
        }
    }
}

/// A line with a limit and a discipline.
#[derive(Debug)]
pub(crate) struct Queue<P> {
    line: Line<P>,
    limit: Depth,
    mark_above_bytes: Option<u64>,
    rule: Rule,
    random: Random,
}

/// A [`Discipline`] with what it remembers.
#[derive(Debug)]
enum Rule {
    DropTail,
    DropHead,
    Codel(Codel),
    Red(Red),
}

/// The buffer and the server at the moment of an arrival.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) now_ns: u64,
    /// Of the segments that are being sent.
    pub(crate) in_service: Depth,
    /// What the server could have sent since it was idle.
    pub(crate) idle_bytes: u64,
}

/// What becomes of a segment that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Admit,
    Mark,
    Drop(DropCause),
}

impl<P: Packet> Queue<P> {
    pub(crate) fn new(spec: &QueueSpec, overhead_bytes: u32, mut random: Random) -> Self {
        Queue {
            line: Line::new(overhead_bytes),
            limit: spec.limit(),
            mark_above_bytes: spec.mark_above_bytes,
            rule: Rule::new(spec.discipline, &mut random),
            random,
        }
    }

    /// Takes on other parameters; what waits stays in line.
    pub(crate) fn change(&mut self, spec: &QueueSpec, overhead_bytes: u32) {
        self.limit = spec.limit();
        self.mark_above_bytes = spec.mark_above_bytes;
        self.line.set_overhead(overhead_bytes);
        self.rule.change(spec.discipline, &mut self.random);
    }

    /// What waits, without what is in service.
    pub(crate) fn depth(&self) -> Depth {
        self.line.depth()
    }

    pub(crate) fn held(&self) -> Count {
        self.line.held()
    }

    /// Whether the arrival of `packet` costs others their place.
    pub(crate) fn displaces(&self, packet: &P, in_service: Depth) -> bool {
        let arriving = Depth::of(packet.wire(), self.line.overhead_bytes());
        let depth = self.depth().plus(in_service).plus(arriving);
        matches!(self.rule, Rule::DropHead) && depth.beyond(self.limit) != Depth::default()
    }

    /// Whether `packet` may be marked as it arrives, according to the depth.
    pub(crate) fn may_mark(&self, packet: &P) -> bool {
        self.mark_above_bytes.is_some() && packet.ecn() == Ecn::Capable
    }

    /// Takes a packet that arrives, or drops all or part of it.
    pub(crate) fn enqueue(&mut self, packet: P, arrival: Arrival, counters: &mut Counters) {
        let mut rest = Some(packet);
        while let Some(packet) = rest.take() {
            let (fate, count) = self.fate(&packet, arrival);
            let (front, behind) = split(packet, count);
            self.meet(fate, front, arrival.now_ns, counters);
            if matches!(self.rule, Rule::DropHead) && !matches!(fate, Fate::Drop(_)) {
                self.drop_oldest(arrival.in_service, counters);
            }
            rest = behind;
        }
    }

    /// Puts back in front what was taken and not sent.
    pub(crate) fn give_back(&mut self, waiting: Waiting<P>) {
        self.line.push_front(waiting);
    }

    /// The segments to send from `now_ns` on, back to back: `begins_ns` says when the one is sent that
    /// so many bytes precede.
    pub(crate) fn dequeue(
        &mut self,
        now_ns: u64,
        begins_ns: impl Fn(u64) -> Option<u64>,
        counters: &mut Counters,
    ) -> Option<Waiting<P>> {
        match &mut self.rule {
            Rule::Codel(codel) => codel.dequeue(&mut self.line, now_ns, begins_ns, counters),
            Rule::DropTail | Rule::DropHead | Rule::Red(_) => self.line.pop_front(),
        }
    }

    /// The next packet in line, whatever the discipline.
    pub(crate) fn release(&mut self) -> Option<P> {
        self.line.pop_front().map(|waiting| waiting.packet)
    }

    /// What becomes of the first segments of `packet`, and how many fare so.
    fn fate(&mut self, packet: &P, arrival: Arrival) -> (Fate, u32) {
        let (wire, ecn) = (packet.wire(), packet.ecn());
        let depth = arrival.in_service.plus(self.line.depth());
        match &mut self.rule {
            Rule::DropTail | Rule::Codel(_) => {
                let room = self.limit.beyond(depth);
                self.fate_by_room(wire, ecn, depth, room)
            }
            // What waits makes room, what is in service does not.
            Rule::DropHead => {
                let room = self.limit.beyond(arrival.in_service);
                self.fate_by_room(wire, ecn, depth, room)
            }
            Rule::Red(_) => self.fate_by_red(wire, ecn, depth, arrival.idle_bytes),
        }
    }

    fn fate_by_room(&self, wire: Wire, ecn: Ecn, depth: Depth, room: Depth) -> (Fate, u32) {
        let overhead_bytes = self.line.overhead_bytes();
        let full = Fate::Drop(DropCause::QueueFull);
        let fits = fitting(wire, overhead_bytes, room);
        if fits > 0 {
            return self.fate_by_mark(wire, ecn, depth, fits);
        }
        // A short last segment may still fit when the full ones before it did not.
        match fitting(Wire::single(wire.last_bytes), overhead_bytes, room) {
            0 => (full, wire.segments),
            _ => (full, wire.segments - 1),
        }
    }

    /// Of `count` segments that are admitted, those that arrive up to the threshold, or above it.
    fn fate_by_mark(&self, wire: Wire, ecn: Ecn, depth: Depth, count: u32) -> (Fate, u32) {
        let Some(above_bytes) = self.mark_above_bytes.filter(|_| ecn == Ecn::Capable) else {
            return (Fate::Admit, count);
        };
        let Some(below_bytes) = above_bytes.checked_sub(depth.bytes) else {
            return (Fate::Mark, count);
        };
        let segment_bytes = u64::from(wire.segment_bytes + self.line.overhead_bytes()).max(1);
        let unmarked = below_bytes / segment_bytes + 1;
        (Fate::Admit, unmarked.min(u64::from(count)) as u32)
    }

    fn fate_by_red(&mut self, wire: Wire, ecn: Ecn, depth: Depth, idle_bytes: u64) -> (Fate, u32) {
        let Rule::Red(red) = &self.rule else {
            return (Fate::Admit, wire.segments);
        };
        let mut red = red.clone();
        let fate = self.fate_of_one(&mut red, segment(wire, 0), ecn, depth, idle_bytes);
        let mut depth = depth;
        let mut count = 1;
        while count < wire.segments {
            if !matches!(fate, Fate::Drop(_)) {
                let arrived = segment(wire, count - 1);
                depth.add(Depth::of(arrived, self.line.overhead_bytes()));
            }
            let mut next = red.clone();
            let arriving = segment(wire, count);
            if self.fate_of_one(&mut next, arriving, ecn, depth, idle_bytes) != fate {
                break;
            }
            red = next;
            count += 1;
        }
        self.rule = Rule::Red(red);
        (fate, count)
    }

    fn fate_of_one(
        &self,
        red: &mut Red,
        wire: Wire,
        ecn: Ecn,
        depth: Depth,
        idle_bytes: u64,
    ) -> Fate {
        let verdict = red.arrive(depth.bytes, idle_bytes);
        let spared = verdict == Verdict::Pass || (verdict == Verdict::Early && red.marks(ecn));
        if !spared {
            return Fate::Drop(DropCause::Early);
        }
        match self.fate_by_room(wire, ecn, depth, self.limit.beyond(depth)) {
            (Fate::Admit, _) if verdict == Verdict::Early && ecn == Ecn::Capable => Fate::Mark,
            (fate, _) => fate,
        }
    }

    fn meet(&mut self, fate: Fate, mut packet: P, arrived_ns: u64, counters: &mut Counters) {
        if let Fate::Drop(cause) = fate {
            return counters.drop(cause, packet.wire());
        }
        if fate == Fate::Mark {
            packet.mark();
            counters.marked.add(packet.wire());
        }
        self.line.push_back(Waiting { arrived_ns, packet });
    }

    fn drop_oldest(&mut self, in_service: Depth, counters: &mut Counters) {
        loop {
            let excess = self.depth().plus(in_service).beyond(self.limit);
            if excess == Depth::default() {
                return;
            }
            match self.line.take_excess(excess) {
                Some(dropped) => counters.drop(DropCause::QueueFull, dropped.wire()),
                None => return,
            }
        }
    }
}

impl QueueSpec {
    fn limit(&self) -> Depth {
        Depth {
            bytes: self.limit_bytes.unwrap_or(NO_LIMIT.bytes),
            packets: self.limit_packets.unwrap_or(NO_LIMIT.packets),
        }
    }
}

const NO_LIMIT: Depth = Depth {
    bytes: u64::MAX,
    packets: u64::MAX,
};

impl Rule {
    fn new(discipline: Discipline, random: &mut Random) -> Rule {
        match discipline {
            Discipline::DropTail => Rule::DropTail,
            Discipline::DropHead => Rule::DropHead,
            Discipline::Codel {
                target_ns,
                interval_ns,
                ecn,
            } => Rule::Codel(Codel::new(target_ns, interval_ns, ecn)),
            Discipline::Red { .. } => Rule::Red(Red::new(discipline, random.fork())),
        }
    }

    /// The same discipline goes on with what it remembers; another begins anew.
    fn change(&mut self, discipline: Discipline, random: &mut Random) {
        match (self, discipline) {
            (
                Rule::Codel(codel),
                Discipline::Codel {
                    target_ns,
                    interval_ns,
                    ecn,
                },
            ) => codel.change(target_ns, interval_ns, ecn),
            (Rule::Red(red), Discipline::Red { .. }) => red.change(discipline),
            (rule, discipline) => *rule = Rule::new(discipline, random),
        }
    }
}

/// How many segments at the front of a packet fit into `room`.
fn fitting(wire: Wire, overhead_bytes: u32, room: Depth) -> u32 {
    let depth = Depth::of(wire, overhead_bytes);
    if depth.beyond(room) == Depth::default() {
        return wire.segments;
    }
    let segment_bytes = u64::from(wire.segment_bytes + overhead_bytes).max(1);
    let full = (room.bytes / segment_bytes).min(u64::from(wire.segments - 1));
    full.min(room.packets) as u32
}

/// The segment of a packet that `index` others precede.
fn segment(wire: Wire, index: u32) -> Wire {
    match index + 1 == wire.segments {
        true => Wire::single(wire.last_bytes),
        false => Wire::single(wire.segment_bytes),
    }
}

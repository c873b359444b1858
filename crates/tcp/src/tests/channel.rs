// SPDX-License-Identifier: MIT OR Apache-2.0
//! A sender and a receiver, and a way between them that does to each packet what the test says.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fatpath_link::Ecn;

use super::super::{Ack, Receiver, Segment, Sender, SenderFigures};
use crate::TcpSpec;

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It arrives.
    Arrives,
    /// It is lost.
    Lost,
    /// A queue marks it if it is ECN-capable.
    Marked,
    /// It arrives twice.
    Doubled,
    /// It arrives so much later, ns.
    Late(u64),
}

#[derive(Clone, Debug)]
enum Packet {
    Data(Segment),
    Ack(Box<Ack>),
}

/// What becomes of the nth packet that is sent.
pub type FateOf<'a, P> = Box<dyn FnMut(u64, &P) -> Fate + 'a>;

/// Looks at the two ends.
pub type Look<'a> = Box<dyn FnMut(&Sender, &Receiver) + 'a>;

/// The two ends and the way between them.
pub struct Channel<'a> {
    pub now_ns: u64,
    pub sender: Sender,
    pub receiver: Receiver,
    one_way_ns: u64,
    /// Time that a segment occupies the way, and how many may wait for it.
    pub segment_ns: u64,
    pub queue_pkts: u64,
    free_at_ns: u64,
    on_way: BinaryHeap<Reverse<(u64, u64)>>,
    packets: Vec<Option<Packet>>,
    pub sent: u64,
    pub acked: u64,
    /// New data sent, and where the widest window ended that was offered, bytes.
    new_bytes: u64,
    offered_end: u64,
    next_new: u64,
    /// Of the nth segment, and of the nth acknowledgement.
    pub segment_fate: FateOf<'a, Segment>,
    pub ack_fate: FateOf<'a, Ack>,
    /// Looks at the two after every event.
    pub check: Look<'a>,
    /// Every segment that was sent, with its time.
    pub log: Option<Vec<(u64, Segment)>>,
}

impl<'a> Channel<'a> {
    pub fn new(spec: &TcpSpec, rtt_ns: u64) -> Channel<'a> {
        let mut sender = Sender::new(spec, rtt_ns, 0);
        let receiver = Receiver::new(spec, rtt_ns, 0);
        sender.set_peer_window(receiver.window_bytes());
        let offered_end = receiver.window_bytes();
        Channel {
            now_ns: 0,
            sender,
            receiver,
            one_way_ns: rtt_ns / 2,
            segment_ns: 0,
            queue_pkts: u64::MAX,
            free_at_ns: 0,
            on_way: BinaryHeap::new(),
            packets: Vec::new(),
            sent: 0,
            acked: 0,
            new_bytes: 0,
            offered_end,
            next_new: 0,
            segment_fate: Box::new(|_, _| Fate::Arrives),
            ack_fate: Box::new(|_, _| Fate::Arrives),
            check: Box::new(|_, _| ()),
            log: None,
        }
    }

    /// The receiver's window is this wide from the beginning.
    pub fn offer(&mut self, bytes: u64) {
        self.sender.set_peer_window(bytes);
        self.offered_end = self.offered_end.max(bytes);
    }

    pub fn write(&mut self, bytes: u64) {
        self.sender.write(bytes);
        self.transmit();
    }

    /// Until all is acknowledged and nothing is on its way, or `end_ns`.
    pub fn run(&mut self, end_ns: u64) {
        while let Some(at_ns) = self.next_event_ns().filter(|at| *at <= end_ns) {
            assert!(at_ns >= self.now_ns, "time runs backward");
            self.now_ns = at_ns;
            self.step();
            (self.check)(&self.sender, &self.receiver);
        }
        if end_ns < u64::MAX {
            self.now_ns = end_ns;
        }
    }

    fn next_event_ns(&self) -> Option<u64> {
        let arrival = self.on_way.peek().map(|Reverse((at, _))| *at);
        [
            arrival,
            self.sender.next_timeout_ns(),
            self.receiver.next_timeout_ns(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    fn step(&mut self) {
        let now_ns = self.now_ns;
        if self
            .on_way
            .peek()
            .is_some_and(|Reverse((at, _))| *at <= now_ns)
        {
            let Some(Reverse((_, index))) = self.on_way.pop() else {
                return;
            };
            match self.packets[index as usize].take() {
                Some(Packet::Data(segment)) => drop(self.receiver.handle_segment(now_ns, &segment)),
                Some(Packet::Ack(ack)) => self.sender.handle_ack(now_ns, &ack),
                None => (),
            }
        } else if self.sender.next_timeout_ns().is_some_and(|at| at <= now_ns) {
            self.sender.handle_timeout(now_ns);
        } else {
            self.receiver.handle_timeout(now_ns);
        }
        self.acknowledge();
        self.transmit();
    }

    fn transmit(&mut self) {
        let mut before = self.sender.figures();
        while let Some(segment) = self.sender.poll_transmit(self.now_ns) {
            self.check_bounds(&segment, &before);
            before = self.sender.figures();
            if let Some(log) = &mut self.log {
                log.push((self.now_ns, segment));
            }
            let fate = (self.segment_fate)(self.sent, &segment);
            let segment = marked(segment, fate);
            self.sent += 1;
            if let Some(at_ns) = self.pass_queue() {
                self.put(at_ns, Packet::Data(segment), fate);
            }
        }
    }

    /// The peer's window holds for all new data, the congestion window for all but probes.
    fn check_bounds(&mut self, segment: &Segment, before: &SenderFigures) {
        if segment.number >= self.next_new && segment.payload_bytes > 0 {
            self.next_new = segment.number + 1;
            self.new_bytes += u64::from(segment.payload_bytes);
        }
        assert!(
            self.new_bytes <= self.offered_end,
            "beyond the peer's window"
        );
        let is_probe = self.sender.figures().tail_probes > before.tail_probes;
        let fits =
            before.in_flight_pkts < before.cwnd_pkts || is_probe || segment.payload_bytes == 0;
        assert!(fits, "beyond the congestion window: {before:?}");
    }

    /// When the segment has left the queue; `None`: the queue was full.
    fn pass_queue(&mut self) -> Option<u64> {
        if self.segment_ns == 0 {
            return Some(self.now_ns);
        }
        let waiting_ns = self.free_at_ns.saturating_sub(self.now_ns);
        if waiting_ns / self.segment_ns >= self.queue_pkts {
            return None;
        }
        self.free_at_ns = self.free_at_ns.max(self.now_ns) + self.segment_ns;
        Some(self.free_at_ns)
    }

    fn acknowledge(&mut self) {
        while let Some(ack) = self.receiver.poll_ack(self.now_ns) {
            let end = self.receiver.delivered_bytes() + ack.window_bytes;
            self.offered_end = self.offered_end.max(end);
            let fate = (self.ack_fate)(self.acked, &ack);
            self.acked += 1;
            self.put(self.now_ns, Packet::Ack(Box::new(ack)), fate);
        }
    }

    fn put(&mut self, left_ns: u64, packet: Packet, fate: Fate) {
        let at_ns = left_ns + self.one_way_ns;
        match fate {
            Fate::Lost => (),
            Fate::Arrives | Fate::Marked => self.put_at(at_ns, packet),
            Fate::Late(by_ns) => self.put_at(at_ns + by_ns, packet),
            Fate::Doubled => {
                self.put_at(at_ns, packet.clone());
                self.put_at(at_ns, packet);
            }
        }
    }

    fn put_at(&mut self, at_ns: u64, packet: Packet) {
        self.on_way
            .push(Reverse((at_ns, self.packets.len() as u64)));
        self.packets.push(Some(packet));
    }
}

fn marked(segment: Segment, fate: Fate) -> Segment {
    match (segment.ecn, fate) {
        (Ecn::Capable, Fate::Marked) => Segment {
            ecn: Ecn::Marked,
            ..segment
        },
        _ => segment,
    }
}

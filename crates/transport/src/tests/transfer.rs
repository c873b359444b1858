// SPDX-License-Identifier: MIT OR Apache-2.0
//! A transfer of objects over a link, and what the receiver wrote of them.

use std::convert::Infallible;

use fatpath_link::{Cell, Chain, ChainSpec, Ecn, Flow, Packet, Wire};

use super::super::{Extent, FlowSecret, Receiver, Refused, Run, Secret, Sender, Spec};

pub const MS: u64 = 1_000_000;
pub const RTT: u64 = 20 * MS;

/// A UDP datagram on the way.
#[derive(Clone, Debug, PartialEq)]
pub struct Datagram {
    pub payload: Vec<u8>,
    pub has_data: bool,
    pub ecn: Ecn,
}

impl Packet for Datagram {
    fn wire(&self) -> Wire {
        Wire::single(self.payload.len() as u32 + 48)
    }

    fn split_front(&mut self, _count: u32) -> Self {
        unreachable!("a datagram is one segment")
    }

    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn mark(&mut self) {
        self.ecn = Ecn::Marked;
    }

    fn set_dscp(&mut self, _dscp: u8) {}

    fn flow(&self) -> Option<Flow> {
        None
    }

    fn has_data(&self) -> bool {
        self.has_data
    }

    fn duplicate(&self) -> Self {
        self.clone()
    }

    fn corrupt(&mut self, random: u64) {
        let bit = random as usize % (8 * self.payload.len());
        self.payload[bit / 8] ^= 1 << (bit % 8);
    }

    fn too_big(&self, _mtu_bytes: u32) -> Option<Self> {
        None
    }
}

/// What somebody else does when a datagram is about to arrive.
pub type Attack = Box<dyn FnMut(u64, &Datagram, &mut Sender, &mut Receiver)>;

pub struct Transfer {
    pub now_ns: u64,
    pub sender: Sender,
    pub receiver: Receiver,
    ways: [Chain<Datagram>; 2],
    objects: Vec<Vec<u8>>,
    /// How often each byte was written.
    pub written: Vec<Vec<u8>>,
    /// Where in their objects the stretches began that were written, in their order.
    pub order: Vec<usize>,
    /// What is to leave last is taken from the sender, and given again when it has nothing else.
    pub takes_lost: bool,
    taken: Vec<Extent>,
    /// All that was sent, data and acknowledgements.
    pub log: Vec<Datagram>,
    pub refused: Vec<Refused>,
    pub attack: Attack,
    /// What the path makes of the ECN field at its end.
    pub mangle: fn(Ecn) -> Ecn,
    /// What is ECN-capable does not pass.
    pub loses_capable: bool,
    /// Nor what is longer than this.
    pub passes_bytes: usize,
}

/// The first flow of one transfer, for one of its ends.
pub fn secret() -> FlowSecret {
    let mut secret = Secret::agree(&[0x5a; 32], &[0xa5; 32]);
    secret.next_flow().unwrap()
}

/// Bytes that differ from object to object and from place to place.
fn content(object: usize, bytes: usize) -> Vec<u8> {
    let byte = |place: usize| (place.wrapping_mul(0x9e37_79b1) >> 7) as u8 ^ object as u8;
    (0..bytes).map(byte).collect()
}

impl Transfer {
    /// Objects of these sizes over these two ways.
    pub fn new(spec: &Spec, sizes: &[usize], ways: [ChainSpec; 2]) -> Transfer {
        let mut sender = Sender::new(spec, secret(), RTT, 0).unwrap();
        for (object, bytes) in sizes.iter().enumerate() {
            sender.send(Extent {
                object: object as u32,
                offset: 0,
                bytes: *bytes as u64,
            });
        }
        let numbered = sizes.iter().enumerate();
        Transfer {
            now_ns: 0,
            sender,
            receiver: Receiver::new(spec, secret(), RTT, 0).unwrap(),
            ways: ways.map(|way| way.build().unwrap()),
            objects: numbered
                .map(|(object, bytes)| content(object, *bytes))
                .collect(),
            written: sizes.iter().map(|bytes| vec![0; *bytes]).collect(),
            order: Vec::new(),
            takes_lost: false,
            taken: Vec::new(),
            log: Vec::new(),
            refused: Vec::new(),
            attack: Box::new(|_, _, _, _| ()),
            mangle: |ecn| ecn,
            loses_capable: false,
            passes_bytes: usize::MAX,
        }
    }

    /// Until nothing more happens, or `end_ns`.
    pub fn run(&mut self, end_ns: u64) {
        self.transmit();
        while let Some(at_ns) = self.next_ns().filter(|at_ns| *at_ns <= end_ns) {
            assert!(at_ns >= self.now_ns, "time runs backward");
            let is_abandoned =
                self.sender.is_abandoned(self.now_ns) || self.receiver.is_abandoned(self.now_ns);
            assert!(!is_abandoned, "an end gave up at {} ns", self.now_ns);
            self.now_ns = at_ns;
            self.arrive();
            if self
                .sender
                .poll_timeout()
                .is_some_and(|at_ns| at_ns <= self.now_ns)
            {
                self.sender.handle_timeout(self.now_ns);
            }
            if self
                .receiver
                .poll_timeout()
                .is_some_and(|at_ns| at_ns <= self.now_ns)
            {
                self.receiver.handle_timeout(self.now_ns);
            }
            self.transmit();
        }
    }

    fn next_ns(&self) -> Option<u64> {
        let ways = self.ways.iter().map(|way| way.next_due_ns());
        let ends = [self.sender.poll_timeout(), self.receiver.poll_timeout()];
        ways.chain(ends).flatten().min()
    }

    fn arrive(&mut self) {
        while let Some(mut arrived) = self.ways[0].pop(self.now_ns) {
            (self.attack)(
                self.now_ns,
                &arrived.packet,
                &mut self.sender,
                &mut self.receiver,
            );
            let is_lost = self.loses_capable && arrived.packet.ecn == Ecn::Capable;
            if is_lost || arrived.packet.payload.len() > self.passes_bytes {
                continue;
            }
            let ecn = (self.mangle)(arrived.packet.ecn);
            let payload = &mut arrived.packet.payload;
            match self.receiver.handle_datagram(self.now_ns, ecn, payload) {
                Ok(received) => {
                    for write in received.writes {
                        let (object, begin) = (write.object as usize, write.offset as usize);
                        let end = begin + write.bytes.len();
                        self.order.push(begin);
                        assert_eq!(self.objects[object][begin..end], *write.bytes);
                        self.written[object][begin..end]
                            .iter_mut()
                            .for_each(|count| *count += 1);
                    }
                }
                Err(why) => self.refused.push(why),
            }
        }
        while let Some(mut arrived) = self.ways[1].pop(self.now_ns) {
            (self.attack)(
                self.now_ns,
                &arrived.packet,
                &mut self.sender,
                &mut self.receiver,
            );
            let handled = self
                .sender
                .handle_datagram(self.now_ns, &mut arrived.packet.payload);
            self.refused.extend(handled.err());
        }
    }

    fn transmit(&mut self) {
        self.poll();
        if self.takes_lost {
            self.taken.extend(self.sender.take_lost());
        }
        if self.sender.unsent_bytes() == 0 && !self.taken.is_empty() {
            let taken = std::mem::take(&mut self.taken).into_iter();
            taken.for_each(|extent| self.sender.send(extent));
            self.poll();
        }
    }

    fn poll(&mut self) {
        let mut payload = Vec::new();
        let objects = &self.objects;
        let mut read = |run: &Run, into: &mut [u8]| {
            let begin = run.offset as usize;
            into.copy_from_slice(&objects[run.object as usize][begin..begin + into.len()]);
            Ok::<(), Infallible>(())
        };
        while self
            .sender
            .poll_transmit(self.now_ns, &mut payload, &mut read)
            .unwrap()
        {
            put(
                &mut self.log,
                &mut self.ways[0],
                self.now_ns,
                &payload,
                Some(self.sender.ecn()),
            );
            payload.clear();
        }
        while self
            .receiver
            .poll_transmit(self.now_ns, &mut payload)
            .unwrap()
        {
            put(
                &mut self.log,
                &mut self.ways[1],
                self.now_ns,
                &payload,
                None,
            );
            payload.clear();
        }
    }

    /// Every byte was written, perhaps more than once, and the sender knows it.
    pub fn check_all_there(&self) {
        assert!(self.sender.is_done(), "{:?}", self.sender.figures());
        for (object, counts) in self.written.iter().enumerate() {
            assert!(counts.iter().all(|count| *count > 0), "object {object}");
        }
    }

    /// Every byte was written once, and the sender knows it.
    pub fn check_complete(&self) {
        assert!(self.sender.is_done(), "{:?}", self.sender.figures());
        for (object, counts) in self.written.iter().enumerate() {
            assert!(counts.iter().all(|count| *count == 1), "object {object}");
        }
    }
}

fn put(
    log: &mut Vec<Datagram>,
    way: &mut Chain<Datagram>,
    now_ns: u64,
    payload: &[u8],
    of_data: Option<Ecn>,
) {
    let datagram = Datagram {
        payload: payload.to_vec(),
        has_data: of_data.is_some(),
        ecn: of_data.unwrap_or(Ecn::NotCapable),
    };
    log.push(datagram.clone());
    way.push(now_ns, datagram);
}

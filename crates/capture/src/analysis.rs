// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames come in, connections go out.

use crate::connection::State;
use crate::decode::{NoSegment, decode, decode_in_tunnels};
use crate::half::Room;
use crate::history::{History, Watched};
use crate::prefetch::prefetch;
use crate::reader::Frame;
use crate::report::Connection;
use crate::segment::{End, Segment};
use crate::verdict::Verdict;
use foldhash::fast::FixedState;
use hashbrown::HashTable;
use serde::Serialize;
use std::collections::VecDeque;
use std::hash::BuildHasher;

/// Of segments that are not acknowledged, each direction of n connections remembers an n-th of this (32 bytes each), and of
/// retransmissions a quarter of it; what it remembers stays when more connections come.
const SEGMENTS: usize = 4 << 20;

/// A connection alone remembers at most so many in each direction: 64 BDPs of 1 MB in segments of 1448 bytes.
const MAX_SEGMENTS: usize = 32_768;

/// With so many connections their states are in no cache when a segment comes.
const MANY: usize = 1_000;

/// Segments that wait while what they touch is fetched from memory: half of them for the state of their connection, the
/// others for what that points to.
const AHEAD: usize = 8;

/// Bounds on memory, and the seed of the hash by which connections are found.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections that are followed at once; beyond them the longest silent are taken as ended.
    pub connections: usize,
    /// Memory for all connections that are followed, bytes; beyond it, too, the longest silent are taken as ended.
    pub bytes: usize,
    /// Whoever knows it can choose addresses that are slow to find. Any number that an attacker does not know.
    pub seed: u64,
}

impl Default for Limits {
    /// 65,536 connections, 1 GiB, seed 0.
    fn default() -> Limits {
        Limits {
            connections: 65_536,
            bytes: 1 << 30,
            seed: 0,
        }
    }
}

/// What was in the capture, all connections together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Frames.
    pub frames: u64,
    /// Segments of TCP.
    pub segments: u64,
    /// Connections.
    pub connections: u64,
    /// Of a link layer that is not read here.
    pub unknown_link: u64,
    /// ARP and others.
    pub not_ip: u64,
    /// UDP and others.
    pub not_tcp: u64,
    /// Packets within packets (GRE, VXLAN, IP in IP) that were not looked into.
    pub tunnelled: u64,
    /// Packets of WireGuard.
    pub encrypted: u64,
    /// Fragments of IP packets, which are not put together.
    pub fragments: u64,
    /// Headers that were not captured whole.
    pub cut_short: u64,
    /// Headers that contradict themselves.
    pub malformed: u64,
    /// Frames with an earlier time than the frame before.
    pub backward_times: u64,
    /// Connections that were taken as ended because there were too many, or memory was short.
    pub evicted: u64,
    /// Time of the first frame, since 1970.
    pub first_ns: i64,
    /// Greatest time of a frame.
    pub last_ns: i64,
}

/// Both ends, the lesser one first.
type Key = (End, End);

/// Follows all connections of a capture.
pub struct Analysis {
    limits: Limits,
    counts: Counts,
    hasher: FixedState,
    /// Of slots, by their keys, which are beside what a segment touches anyway: so the table itself stays in a cache.
    places: HashTable<usize>,
    slots: Vec<Option<Slot>>,
    /// What the states of all slots hold.
    held_bytes: usize,
    /// By how many are followed.
    room: Room,
    /// Where the search for a connection to end goes on.
    hand: usize,
    free: Vec<usize>,
    last: Option<(Key, usize)>,
    last_ns: i64,
    ended: Vec<Connection>,
    watched: Watched,
    looks_into_tunnels: bool,
    /// Segments that wait, and where the states of their connections probably are.
    ahead: VecDeque<(Segment, Option<usize>)>,
}

struct Slot {
    key: Key,
    state: State,
    /// Since the hand passed.
    is_active: bool,
    /// Counted in `held_bytes`.
    held_bytes: usize,
}

impl Analysis {
    /// Of an empty capture.
    pub fn new(limits: Limits) -> Analysis {
        Analysis {
            limits,
            counts: Counts::default(),
            hasher: FixedState::with_seed(limits.seed),
            places: HashTable::new(),
            slots: Vec::new(),
            held_bytes: 0,
            room: room(0),
            hand: 0,
            free: Vec::new(),
            last: None,
            last_ns: 0,
            ended: Vec::new(),
            watched: Watched::default(),
            looks_into_tunnels: false,
            ahead: VecDeque::new(),
        }
    }

    /// Follows connections within tunnels, too.
    #[must_use]
    pub fn in_tunnels(mut self, looks: bool) -> Analysis {
        self.looks_into_tunnels = looks;
        self
    }

    /// Keeps the history of these connections, too, by their numbers.
    #[must_use]
    pub fn watching(mut self, flows: &[u64]) -> Analysis {
        self.watched = Watched::new(flows);
        self
    }

    /// Takes a frame; answers what its segment was, none when it has none.
    pub fn take(&mut self, frame: &Frame<'_>) -> Option<Verdict> {
        self.settle();
        // By reference: to move a segment that has just been written costs a tenth of all.
        match &self.decode(frame) {
            Ok(segment) => Some(self.follow(segment)),
            Err(none) => {
                self.count(none);
                None
            }
        }
    }

    /// Takes a frame of which nobody asks what its segment was: faster where there are many connections.
    pub fn take_ahead(&mut self, frame: &Frame<'_>) {
        match &self.decode(frame) {
            Ok(segment) if self.places.len() < MANY && self.ahead.is_empty() => {
                self.follow(segment);
            }
            Ok(segment) => self.wait(segment),
            Err(none) => self.count(none),
        }
    }

    /// Has what the segment touches fetched, and follows the one that waits longest.
    fn wait(&mut self, segment: &Segment) {
        let place = self.probable_place_of(segment);
        if let Some(place) = place {
            prefetch(&self.slots[place]);
        }
        self.ahead.push_back((segment.clone(), place));
        if self.ahead.len() <= AHEAD {
            return;
        }
        if let Some(place) = self.ahead[AHEAD / 2].1
            && let Some(slot) = &self.slots[place]
        {
            slot.state.prefetch();
        }
        if let Some((segment, _)) = self.ahead.pop_front() {
            self.follow(&segment);
        }
    }

    /// By a part of its hash, without a look at the key.
    fn probable_place_of(&self, segment: &Segment) -> Option<usize> {
        let hash = self.hasher.hash_one(key_of(segment));
        self.places.find(hash, |_| true).copied()
    }

    /// Nothing waits any more.
    fn settle(&mut self) {
        while let Some((segment, _)) = self.ahead.pop_front() {
            self.follow(&segment);
        }
    }

    fn decode(&mut self, frame: &Frame<'_>) -> Result<Segment, NoSegment> {
        self.count_time(frame.time_ns);
        match self.looks_into_tunnels {
            true => decode_in_tunnels(frame),
            false => decode(frame),
        }
    }

    fn count(&mut self, none: &NoSegment) {
        let count = match none {
            NoSegment::UnknownLink => &mut self.counts.unknown_link,
            NoSegment::NotIp => &mut self.counts.not_ip,
            NoSegment::NotTcp => &mut self.counts.not_tcp,
            NoSegment::Tunnel => &mut self.counts.tunnelled,
            NoSegment::Encrypted => &mut self.counts.encrypted,
            NoSegment::Fragment => &mut self.counts.fragments,
            NoSegment::CutShort => &mut self.counts.cut_short,
            NoSegment::Malformed => &mut self.counts.malformed,
        };
        *count += 1;
    }

    fn count_time(&mut self, time_ns: i64) {
        let counts = &mut self.counts;
        if counts.frames == 0 {
            counts.first_ns = time_ns;
            counts.last_ns = time_ns;
        }
        counts.frames += 1;
        counts.backward_times += u64::from(counts.frames > 1 && time_ns < self.last_ns);
        counts.last_ns = counts.last_ns.max(time_ns);
        self.last_ns = time_ns;
    }

    /// Takes a segment.
    pub fn take_segment(&mut self, segment: &Segment) -> Verdict {
        self.settle();
        self.follow(segment)
    }

    fn follow(&mut self, segment: &Segment) -> Verdict {
        self.counts.segments += 1;
        let key = key_of(segment);
        let known = self.last.filter(|(last, _)| *last == key);
        let known = known.map(|(_, place)| place);
        let known = known.or_else(|| self.place_of(&key));
        let place = known.unwrap_or_else(|| self.begin(key, segment));
        self.last = Some((key, place));
        let room = self.room;
        let slot = self.slots[place].as_mut().expect("found by its place");
        if known.is_some() && slot.state.is_succeeded_by(segment) {
            self.counts.connections += 1;
            let next = State::new(self.counts.connections, segment);
            let mut before = std::mem::replace(&mut slot.state, next);
            self.ended.push(before.finish());
        }
        slot.is_active |= known.is_some();
        let verdict = slot.state.take(segment, room);
        if !self.watched.is_empty() {
            self.watched.take(&slot.state, segment, &verdict);
        }
        let bytes = slot.state.bytes();
        self.held_bytes = self.held_bytes + bytes - slot.held_bytes;
        slot.held_bytes = bytes;
        while self.held_bytes > self.limits.bytes && self.places.len() > 1 {
            self.evict();
        }
        verdict
    }

    fn place_of(&self, key: &Key) -> Option<usize> {
        let is_its = |place: &usize| {
            self.slots[*place]
                .as_ref()
                .is_some_and(|slot| slot.key == *key)
        };
        let hash = self.hasher.hash_one(key);
        self.places.find(hash, is_its).copied()
    }

    fn begin(&mut self, key: Key, segment: &Segment) -> usize {
        if self.places.len() >= self.limits.connections.max(1) {
            self.evict();
        }
        self.counts.connections += 1;
        let slot = Some(Slot {
            key,
            state: State::new(self.counts.connections, segment),
            // A connection of one segment, as of a scan, makes room before one that goes on.
            is_active: false,
            held_bytes: 0,
        });
        let place = match self.free.pop() {
            Some(place) => {
                self.slots[place] = slot;
                place
            }
            None => {
                self.slots.push(slot);
                self.slots.len() - 1
            }
        };
        let (hasher, slots) = (&self.hasher, &self.slots);
        let slot = |place: &usize| slots[*place].as_ref().expect("each place has its slot");
        let hash_of = |place: &usize| hasher.hash_one(slot(place).key);
        self.places.insert_unique(hash_of(&place), place, hash_of);
        self.room = room(self.places.len());
        place
    }

    /// Ends one connection: that the hand finds over, or silent since it passed before. It passes each at most twice.
    fn evict(&mut self) {
        loop {
            self.hand = (self.hand + 1) % self.slots.len();
            let Some(slot) = &mut self.slots[self.hand] else {
                continue;
            };
            if slot.is_active && !slot.state.is_over() {
                slot.is_active = false;
                continue;
            }
            let hash = self.hasher.hash_one(slot.key);
            let found = self.places.find_entry(hash, |place| *place == self.hand);
            found.expect("each slot has its place").remove();
            self.room = room(self.places.len());
            self.ended.push(slot.state.finish());
            self.held_bytes -= slot.held_bytes;
            self.slots[self.hand] = None;
            self.free.push(self.hand);
            self.counts.evicted += 1;
            self.last = None;
            return;
        }
    }

    /// Memory that the connections which are followed hold now, never above [`Limits::bytes`] between two frames (unless
    /// one connection alone needs more).
    pub fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Whether [`Analysis::take_ended`] has any.
    pub fn has_ended(&self) -> bool {
        !self.ended.is_empty()
    }

    /// Connections that have ended since the last call.
    pub fn take_ended(&mut self) -> Vec<Connection> {
        std::mem::take(&mut self.ended)
    }

    /// Of the connections that were watched, so far; none of those that the capture does not have.
    pub fn take_histories(&mut self) -> Vec<History> {
        self.settle();
        std::mem::take(&mut self.watched).into_histories()
    }

    /// Counts so far, without the last few segments of [`Analysis::take_ahead`].
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// All connections that are left, and the counts: the capture is at its end.
    pub fn finish(mut self) -> (Vec<Connection>, Counts) {
        self.settle();
        let mut ended = std::mem::take(&mut self.ended);
        let left = self.slots.iter_mut().flatten();
        ended.extend(left.map(|slot| slot.state.finish()));
        ended.sort_by_key(|connection| connection.flow);
        (ended, self.counts)
    }
}

fn key_of(segment: &Segment) -> Key {
    let (source, destination) = (segment.source, segment.destination);
    (source.min(destination), source.max(destination))
}

/// What is remembered of each of so many connections.
fn room(connections: usize) -> Room {
    let each = SEGMENTS / connections.max(1);
    Room {
        segments: each.clamp(16, MAX_SEGMENTS),
        retransmissions: (each / 4).clamp(16, 1024),
    }
}

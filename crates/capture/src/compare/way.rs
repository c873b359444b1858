// SPDX-License-Identifier: MIT OR Apache-2.0
//! What one end sent, in two captures.

use super::delays::Delays;
use super::lost::Lost;
use super::pieces::{Key, Piece, Pieces};
use super::{Capture, Places, WINDOW_NS};
use crate::half::unwrapped;
use crate::segment::{Segment, flag};
use foldhash::fast::FixedState;
use std::collections::{HashMap, VecDeque};

/// Of each direction and capture, what waits for the other capture; up to about 100 bytes each.
const MOST_WAITING: usize = 1 << 18;

/// Losses that are listed one by one.
const MOST_LISTED: usize = 10_000;

/// Of a segment without data, all that tells it from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Bare {
    seq: u32,
    ack: u32,
    flags: u8,
    window: u16,
    timestamps: Option<(u32, u32)>,
    sack: Option<(u32, u32)>,
}

#[derive(Clone, Copy, Debug)]
enum Waiting {
    Data(Key),
    Bare(Bare),
}

/// One capture's part.
#[derive(Clone, Debug)]
struct Seen {
    highest: i64,
    pieces: Pieces,
    bare: HashMap<Bare, VecDeque<i64>, FixedState>,
    bare_waiting: usize,
    /// Oldest first; some of it waits no more.
    queue: VecDeque<(i64, Waiting)>,
    counts: Counts,
}

/// Of what one capture has seen.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub data_bytes: u64,
    /// Segments without data.
    pub bare: u64,
    /// What the other capture has not, though it was there.
    pub only_bytes: u64,
    pub only_segments: u64,
    /// Of them, sent again.
    pub only_again_segments: u64,
    pub only_bare: u64,
    /// When the other capture had not begun, or had ended.
    pub not_judged: u64,
    /// Given up before [`WINDOW_NS`], because too much waited.
    pub given_up: u64,
}

pub(crate) struct Way {
    segment_bytes: i64,
    /// Sequence number that counts as 0.
    base: Option<u32>,
    seen: [Seen; 2],
    pub delays: Delays,
    /// By capture.
    lost: [Vec<Lost>; 2],
}

impl Way {
    pub fn new(segment_bytes: i64, middle_ns: i64, seed: u64) -> Way {
        let seen = || Seen {
            highest: 0,
            pieces: Pieces::default(),
            bare: HashMap::with_hasher(FixedState::with_seed(seed)),
            bare_waiting: 0,
            queue: VecDeque::new(),
            counts: Counts::default(),
        };
        Way {
            segment_bytes,
            base: None,
            seen: [seen(), seen()],
            delays: Delays::new(middle_ns),
            lost: [Vec::new(), Vec::new()],
        }
    }

    pub fn counts(&self, capture: Capture) -> &Counts {
        &self.seen[capture.place()].counts
    }

    /// What only this capture has of data, in the order of time.
    pub fn lost(&self, capture: Capture) -> &[Lost] {
        &self.lost[capture.place()]
    }

    pub fn take(&mut self, capture: Capture, segment: &Segment, places: &Places) {
        self.give_up(capture, segment.time_ns, places);
        match segment.payload_bytes {
            0 => self.take_bare(capture, segment),
            _ => self.take_data(capture, segment),
        }
    }

    fn take_bare(&mut self, capture: Capture, segment: &Segment) {
        let bare = Bare {
            seq: segment.seq,
            ack: segment.ack,
            flags: segment.flags,
            window: segment.window,
            timestamps: segment.options.timestamps,
            sack: segment.options.sack().first().copied(),
        };
        let time_ns = segment.time_ns;
        self.seen[capture.place()].counts.bare += 1;
        let other = &mut self.seen[capture.other().place()];
        match other.take_bare(&bare) {
            Some(other_ns) => self.matched(capture, time_ns, other_ns),
            None => self.seen[capture.place()].wait_bare(bare, time_ns),
        }
    }

    fn take_data(&mut self, capture: Capture, segment: &Segment) {
        let first = segment.seq.wrapping_add(u32::from(segment.has(flag::SYN)));
        let base = *self.base.get_or_insert(first);
        let own = &mut self.seen[capture.place()];
        let start = unwrapped(base, own.highest, first);
        let end = start + i64::from(segment.payload_bytes);
        let whole = Piece {
            start,
            end,
            time_ns: segment.time_ns,
            tsval: segment.options.timestamps.map(|(tsval, _)| tsval),
            ip_id: segment.ip_id.unwrap_or(0),
            is_again: start < own.highest,
        };
        own.highest = own.highest.max(end);
        own.counts.data_bytes += u64::from(segment.payload_bytes);
        let mut open = vec![whole];
        while let Some(piece) = open.pop() {
            let other = &mut self.seen[capture.other().place()];
            let found = other.pieces.like(&piece, self.segment_bytes);
            let Some(found) = found.and_then(|key| other.pieces.remove(key)) else {
                self.seen[capture.place()].wait(piece);
                continue;
            };
            let (from, to) = (piece.start.max(found.start), piece.end.min(found.end));
            for part in [(found.start, from), (to, found.end)] {
                let rest = found.part(part.0, part.1, self.segment_bytes);
                rest.into_iter().for_each(|rest| other.wait(rest));
            }
            for part in [(piece.start, from), (to, piece.end)] {
                open.extend(piece.part(part.0, part.1, self.segment_bytes));
            }
            self.matched(capture, segment.time_ns, found.time_ns);
        }
    }

    fn matched(&mut self, capture: Capture, time_ns: i64, other_ns: i64) {
        self.delays.add(match capture {
            Capture::First => [time_ns, other_ns],
            Capture::Second => [other_ns, time_ns],
        });
    }

    /// Time has come to `now_ns`, by the clock of this capture: what has waited too long waits no more.
    fn give_up(&mut self, capture: Capture, now_ns: i64, places: &Places) {
        let offset_ns = places.offset_ns;
        let by_first_ns = match capture {
            Capture::First => now_ns,
            Capture::Second => now_ns.saturating_sub(offset_ns),
        };
        let now_ns = [by_first_ns, by_first_ns.saturating_add(offset_ns)];
        for capture in [Capture::First, Capture::Second] {
            let since_ns = now_ns[capture.place()].saturating_sub(WINDOW_NS);
            while self.seen[capture.place()].is_due(since_ns) {
                self.conclude(capture, places);
            }
        }
    }

    /// Nothing more is to come.
    pub fn finish(&mut self, places: &Places) {
        for capture in [Capture::First, Capture::Second] {
            while !self.seen[capture.place()].queue.is_empty() {
                self.conclude(capture, places);
            }
            self.lost[capture.place()].sort_by_key(|lost| lost.time_ns);
        }
    }

    /// The oldest that waits does so no more.
    fn conclude(&mut self, capture: Capture, places: &Places) {
        let segment_bytes = self.segment_bytes;
        let seen = &mut self.seen[capture.place()];
        let is_many = seen.waiting() > MOST_WAITING;
        let Some((time_ns, waiting)) = seen.queue.pop_front() else {
            return;
        };
        let data = match waiting {
            Waiting::Data(key) => seen.pieces.remove(key).map(Some),
            Waiting::Bare(bare) => seen.is_bare_left(&bare, time_ns).then_some(None),
        };
        let Some(data) = data else { return };
        if !places.is_judged(capture, time_ns) {
            seen.counts.not_judged += 1;
            return;
        }
        seen.counts.given_up += u64::from(is_many);
        let Some(piece) = data else {
            seen.counts.only_bare += 1;
            return;
        };
        let bytes = (piece.end - piece.start) as u64;
        let segments = bytes.div_ceil(segment_bytes as u64);
        seen.counts.only_bytes += bytes;
        seen.counts.only_segments += segments;
        seen.counts.only_again_segments += if piece.is_again { segments } else { 0 };
        let lost = &mut self.lost[capture.place()];
        if lost.len() < MOST_LISTED {
            lost.push(Lost {
                time_ns,
                offset_bytes: piece.start,
                bytes,
                is_retransmission: piece.is_again,
            });
        }
    }
}

impl Seen {
    fn waiting(&self) -> usize {
        self.pieces.len() + self.bare_waiting
    }

    fn wait(&mut self, piece: Piece) {
        let key = self.pieces.add(piece);
        self.queue.push_back((piece.time_ns, Waiting::Data(key)));
        self.compact();
    }

    fn wait_bare(&mut self, bare: Bare, time_ns: i64) {
        self.bare.entry(bare).or_default().push_back(time_ns);
        self.bare_waiting += 1;
        self.queue.push_back((time_ns, Waiting::Bare(bare)));
        self.compact();
    }

    /// The time of the oldest that is the same.
    fn take_bare(&mut self, bare: &Bare) -> Option<i64> {
        let times = self.bare.get_mut(bare)?;
        let time_ns = times.pop_front();
        if times.is_empty() {
            self.bare.remove(bare);
        }
        self.bare_waiting -= usize::from(time_ns.is_some());
        time_ns
    }

    fn is_bare_left(&mut self, bare: &Bare, time_ns: i64) -> bool {
        let oldest = self.bare.get(bare).and_then(|times| times.front());
        oldest.is_some_and(|oldest| *oldest <= time_ns) && self.take_bare(bare).is_some()
    }

    /// Whether the oldest has waited since this time, waits no more, or there are too many.
    fn is_due(&self, since_ns: i64) -> bool {
        let Some((time_ns, waiting)) = self.queue.front() else {
            return false;
        };
        let is_gone = match waiting {
            Waiting::Data(key) => !self.pieces.has(*key),
            Waiting::Bare(bare) => !self.bare.contains_key(bare),
        };
        is_gone || *time_ns < since_ns || self.waiting() > MOST_WAITING
    }

    /// What waits no more goes from the queue, when it is most of it.
    fn compact(&mut self) {
        if self.queue.len() < 2 * self.waiting() + 1024 {
            return;
        }
        let (pieces, bare) = (&self.pieces, &self.bare);
        self.queue.retain(|(time_ns, waiting)| match waiting {
            Waiting::Data(key) => pieces.has(*key),
            Waiting::Bare(one) => bare
                .get(one)
                .and_then(|times| times.front())
                .is_some_and(|oldest| oldest <= time_ns),
        });
    }
}

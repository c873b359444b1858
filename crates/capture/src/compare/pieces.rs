// SPDX-License-Identifier: MIT OR Apache-2.0
//! Data that one capture has seen and the other one has not yet.

use std::collections::BTreeMap;

/// Pieces that are looked at for one segment; a hostile capture may have any number of the same bytes.
const MOST_LOOKED_AT: usize = 512;

/// One transmission of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub start: i64,
    pub end: i64,
    pub time_ns: i64,
    pub tsval: Option<u32>,
    /// Identification of IPv4 of its first byte; 0 where there is none.
    pub ip_id: u16,
    /// Some of it had been sent before.
    pub is_again: bool,
}

/// Whether two are the same transmission.
enum Likeness {
    Same,
    Maybe,
    Other,
}

impl Piece {
    /// The part between two places. An interface that cuts a segment counts the identification up.
    pub fn part(&self, start: i64, end: i64, segment_bytes: i64) -> Option<Piece> {
        (start < end).then(|| Piece {
            start,
            end,
            ip_id: self.id_at(start, segment_bytes),
            ..*self
        })
    }

    fn id_at(&self, place: i64, segment_bytes: i64) -> u16 {
        match self.ip_id {
            0 => 0,
            id => id.wrapping_add(((place - self.start) / segment_bytes) as u16),
        }
    }

    fn likeness(&self, other: &Piece, segment_bytes: i64) -> Likeness {
        let has_times = self.tsval.is_some() && other.tsval.is_some();
        if has_times && self.tsval != other.tsval {
            return Likeness::Other;
        }
        let place = self.start.max(other.start);
        let ids = [self, other].map(|one| one.id_at(place, segment_bytes));
        match ids {
            [a, b] if a != 0 && a == b => Likeness::Same,
            // A router may have changed the identification: the timestamp decides.
            [0, _] | [_, 0] => Likeness::Maybe,
            _ if has_times => Likeness::Maybe,
            _ => Likeness::Other,
        }
    }
}

/// Where a piece is kept.
pub(crate) type Key = (i64, u64);

#[derive(Clone, Debug, Default)]
pub(crate) struct Pieces {
    kept: BTreeMap<Key, Piece>,
    longest_bytes: i64,
    next: u64,
}

impl Pieces {
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    pub fn add(&mut self, piece: Piece) -> Key {
        let key = (piece.start, self.next);
        self.next += 1;
        self.longest_bytes = self.longest_bytes.max(piece.end - piece.start);
        self.kept.insert(key, piece);
        key
    }

    pub fn remove(&mut self, key: Key) -> Option<Piece> {
        self.kept.remove(&key)
    }

    pub fn has(&self, key: Key) -> bool {
        self.kept.contains_key(&key)
    }

    /// The piece that shares bytes with this one and is the same transmission; of several that may be, the oldest.
    pub fn like(&self, one: &Piece, segment_bytes: i64) -> Option<Key> {
        let from = (one.start.saturating_sub(self.longest_bytes), 0);
        let near = self.kept.range(from..(one.end, 0)).rev();
        let near = near.take(MOST_LOOKED_AT);
        let mut found = None;
        for (key, piece) in near.filter(|(_, piece)| piece.end > one.start) {
            match piece.likeness(one, segment_bytes) {
                Likeness::Same => return Some(*key),
                Likeness::Maybe => found = Some(*key),
                Likeness::Other => {}
            }
        }
        found
    }
}

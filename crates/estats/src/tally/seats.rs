// SPDX-License-Identifier: MIT OR Apache-2.0
//! Series for the few that matter, and one for the rest.
//!
//! A series only grows while it is there, and what once was counted is never counted again elsewhere: who
//! loses his seat takes his sums with him, and begins at 0 if he comes back. To Prometheus that is a series
//! that ended and one that was reset, and both leave rates right.

use super::group::Group;
use super::{OTHERS, OneSeries};
use std::collections::HashMap;
use std::hash::Hash;

/// Others than the seated that are weighed at once.
const MAX_STANDING: usize = 4096;

/// A seat changes hands for this many times the bytes: two that are alike do not take turns.
const CLEARLY_MORE: u64 = 2;

/// Groups by key, with so many seats.
#[derive(Clone, Debug)]
pub(super) struct Seats<K> {
    seats: usize,
    seated: HashMap<K, Seat>,
    others: Group,
    began_ns: u64,
    /// Bytes since the last seating, of those without a seat.
    standing: HashMap<K, u64>,
}

#[derive(Clone, Debug)]
struct Seat {
    group: Group,
    since_ns: u64,
    /// Since the last seating.
    bytes: u64,
}

impl Seat {
    fn at(now_ns: u64, bytes: u64) -> Seat {
        Seat {
            since_ns: now_ns,
            bytes,
            group: Group::default(),
        }
    }
}

impl<K: Clone + Eq + Hash> Seats<K> {
    pub(super) fn new(seats: usize, now_ns: u64) -> Seats<K> {
        Seats {
            seats,
            seated: HashMap::new(),
            others: Group::default(),
            began_ns: now_ns,
            standing: HashMap::new(),
        }
    }

    /// Where `key` is counted, for something that moved so many bytes.
    pub(super) fn of(&mut self, key: &K, bytes: u64, now_ns: u64) -> &mut Group {
        if self.seated.len() < self.seats && !self.seated.contains_key(key) {
            self.seated.insert(key.clone(), Seat::at(now_ns, 0));
        }
        match self.seated.get_mut(key) {
            Some(seat) => {
                seat.bytes += bytes;
                &mut seat.group
            }
            None => {
                if self.standing.len() < MAX_STANDING || self.standing.contains_key(key) {
                    *self.standing.entry(key.clone()).or_default() += bytes;
                }
                &mut self.others
            }
        }
    }

    /// `key` if it has a series of its own.
    pub(super) fn name_of(&self, key: &K) -> Option<K> {
        self.seated.contains_key(key).then(|| key.clone())
    }

    /// Those who move most take the seats.
    pub(super) fn seat_anew(&mut self, now_ns: u64) {
        let mut standing: Vec<(K, u64)> = self.standing.drain().collect();
        standing.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        for (key, bytes) in standing {
            let least = self.seated.iter().min_by_key(|(_, seat)| seat.bytes);
            let Some((leaves, seat)) = least.map(|(key, seat)| (key.clone(), seat.bytes)) else {
                break;
            };
            if bytes == 0 || bytes < seat.saturating_mul(CLEARLY_MORE) {
                break;
            }
            self.seated.remove(&leaves);
            self.seated.insert(key, Seat::at(now_ns, bytes));
        }
        self.seated.values_mut().for_each(|seat| seat.bytes = 0);
    }

    /// Every series by its label, that of the rest last.
    pub(super) fn series(
        &self,
        label: impl Fn(&K) -> String,
        live: &HashMap<Option<K>, u64>,
    ) -> Vec<OneSeries> {
        let live = |key: Option<K>| live.get(&key).copied().unwrap_or_default();
        let seated = self.seated.iter().map(|(key, seat)| OneSeries {
            label: label(key),
            since_ns: seat.since_ns,
            live: live(Some(key.clone())),
            group: seat.group.clone(),
        });
        let mut series: Vec<OneSeries> = seated.collect();
        series.sort_by(|a, b| a.label.cmp(&b.label));
        series.push(OneSeries {
            label: OTHERS.to_owned(),
            since_ns: self.began_ns,
            live: live(None),
            group: self.others.clone(),
        });
        series
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A series for each of the groups that move most, and one for all others.
//!
//! A series only grows while it exists, and bytes that were counted in one series are never counted in another: a
//! group that is replaced loses its sums, and begins at 0 if it comes back. To Prometheus this is a series that ended
//! and one that was reset, and both leave rates right.

use super::group::Group;
use super::{OTHERS, OneSeries};
use std::collections::HashMap;
use std::hash::Hash;

/// Candidates whose bytes are counted at a time.
const MAX_CANDIDATES: usize = 4096;

/// A group is replaced by one with this many times its bytes, so that two alike do not take turns.
const CLEARLY_MORE: u64 = 2;

/// Groups by key, so many of which have a series of their own.
#[derive(Clone, Debug)]
pub(super) struct TopGroups<K> {
    most: usize,
    top: HashMap<K, TopGroup>,
    others: Group,
    began_ns: u64,
    /// Bytes since the last ranking, of groups without a series of their own.
    candidates: HashMap<K, u64>,
}

#[derive(Clone, Debug)]
struct TopGroup {
    sums: Group,
    since_ns: u64,
    /// Since the last ranking.
    bytes: u64,
}

impl TopGroup {
    fn at(now_ns: u64, bytes: u64) -> TopGroup {
        TopGroup {
            since_ns: now_ns,
            bytes,
            sums: Group::default(),
        }
    }
}

impl<K: Clone + Eq + Hash> TopGroups<K> {
    pub(super) fn new(most: usize, now_ns: u64) -> TopGroups<K> {
        TopGroups {
            most,
            top: HashMap::new(),
            others: Group::default(),
            began_ns: now_ns,
            candidates: HashMap::new(),
        }
    }

    /// Where `key` is counted, for something that moved so many bytes.
    pub(super) fn of(&mut self, key: &K, bytes: u64, now_ns: u64) -> &mut Group {
        if self.top.len() < self.most && !self.top.contains_key(key) {
            self.top.insert(key.clone(), TopGroup::at(now_ns, 0));
        }
        match self.top.get_mut(key) {
            Some(group) => {
                group.bytes += bytes;
                &mut group.sums
            }
            None => {
                if self.candidates.len() < MAX_CANDIDATES || self.candidates.contains_key(key) {
                    *self.candidates.entry(key.clone()).or_default() += bytes;
                }
                &mut self.others
            }
        }
    }

    /// `key` if it has a series of its own.
    pub(super) fn name_of(&self, key: &K) -> Option<K> {
        self.top.contains_key(key).then(|| key.clone())
    }

    /// The groups that moved most since the last ranking get the series.
    pub(super) fn rank(&mut self, now_ns: u64) {
        let mut candidates: Vec<(K, u64)> = self.candidates.drain().collect();
        candidates.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        for (key, bytes) in candidates {
            let least = self.top.iter().min_by_key(|(_, group)| group.bytes);
            let Some((leaves, least_bytes)) = least.map(|(key, group)| (key.clone(), group.bytes))
            else {
                break;
            };
            if bytes == 0 || bytes < least_bytes.saturating_mul(CLEARLY_MORE) {
                break;
            }
            self.top.remove(&leaves);
            self.top.insert(key, TopGroup::at(now_ns, bytes));
        }
        self.top.values_mut().for_each(|group| group.bytes = 0);
    }

    /// Every series by its label, that of the rest last.
    pub(super) fn series(
        &self,
        label: impl Fn(&K) -> String,
        live: &HashMap<Option<K>, u64>,
    ) -> Vec<OneSeries> {
        let live = |key: Option<K>| live.get(&key).copied().unwrap_or_default();
        let top = self.top.iter().map(|(key, group)| OneSeries {
            label: label(key),
            since_ns: group.since_ns,
            live: live(Some(key.clone())),
            group: group.sums.clone(),
        });
        let mut series: Vec<OneSeries> = top.collect();
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

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is known outlives the daemon: as events of the archive, of which the newest of each path is read at the start.

use crate::archive::{Archive, event_now};
use anyhow::{Context, Result};
use fatpath_archive::store::Query;
use fatpath_archive::{Event, Kind};
use fatpath_path::{Path, PathKey, Paths};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// A path that flows tell of all the time is stored again so long after the first time, and then after twice as long each
/// time, up to the longest: its first flow shows most of what is known of it, and within seconds.
const FIRST_INTERVAL: Duration = Duration::from_secs(5);
const LONGEST_INTERVAL: Duration = Duration::from_secs(600);

/// At the start the newest so many events are read, of so many days.
const MOST_READ: usize = 200_000;
const DAYS_READ: i64 = 30;
const DAY_US: i64 = 86_400_000_000;

/// Learning does not wait longer for a server.
const DEADLINE: Duration = Duration::from_secs(3);

#[derive(Serialize, Deserialize)]
struct Known<P> {
    #[serde(flatten)]
    key: PathKey,
    path: P,
}

/// When each path was stored last, how long the next time is to wait, and those that wait for it.
#[derive(Default)]
pub(crate) struct Memory {
    stored: HashMap<PathKey, (Instant, Duration)>,
    waiting: HashMap<PathKey, Instant>,
}

impl Memory {
    /// Something was learned of a path.
    pub(crate) fn note(&mut self, key: PathKey, now: Instant) {
        let last = self.stored.get(&key);
        let due = last.map_or(now, |(last, interval)| *last + *interval);
        self.waiting.entry(key).or_insert(due);
    }

    /// Puts those that are due into the archive; at the end all that wait.
    pub(super) fn store(&mut self, paths: &Paths, archive: &Archive, now: Option<Instant>) {
        let is_due = |due: &Instant| now.is_none_or(|now| *due <= now);
        let due: Vec<PathKey> = self
            .waiting
            .extract_if(|_, due| is_due(due))
            .map(|(key, _)| key)
            .collect();
        for key in due {
            if let Some(path) = paths.get(key) {
                archive.put(Kind::Path, path_event(key, path));
                self.note_stored(key, Instant::now());
            }
        }
        self.stored.retain(|key, _| paths.get(*key).is_some());
    }

    fn note_stored(&mut self, key: PathKey, now: Instant) {
        let before = self.stored.get(&key);
        let next = before.map_or(FIRST_INTERVAL, |(_, interval)| {
            (2 * *interval).min(LONGEST_INTERVAL)
        });
        self.stored.insert(key, (now, next));
    }
}

fn path_event(key: PathKey, path: &Path) -> Event {
    let mut event = event_now("path.estimate", &Known { key, path });
    event.peer = Some(key.prefix.network());
    let estimate = path.estimate();
    event.value = estimate.and_then(|known| Some(known.rate?.bps.value));
    event
}

/// What was known when the daemon last ran, of each path the newest first.
///
/// # Errors
/// When the archive cannot be read.
pub(super) fn known(archive: &Archive, now_us: i64) -> Result<Vec<(PathKey, Path)>> {
    let location = archive.location().map_err(anyhow::Error::msg)?;
    if !location.may_exist() {
        return Ok(Vec::new());
    }
    let query = Query {
        host: location.is_shared().then(Archive::own_host),
        kinds: vec![Kind::Path],
        limit: MOST_READ,
        ..Query::between(now_us - DAYS_READ * DAY_US, now_us.saturating_add(DAY_US))
    };
    let store = location.open_within(DEADLINE);
    let events = store.and_then(|store| store.query(&query));
    let events = events.context("what is known of paths")?;
    let newest_first = events.iter().rev();
    // An event of another version of fatpath is passed over.
    let known = newest_first.filter_map(|event| serde_json::from_str(&event.event.body).ok());
    Ok(known.map(|Known { key, path }| (key, path)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_stored_less_often_the_longer_it_is_known() {
        let key = PathKey::new([10, 0, 0, 1].into(), [10, 0, 1, 1].into());
        let mut memory = Memory::default();
        let mut now = Instant::now();
        let mut waits = Vec::new();
        for _ in 0..10 {
            memory.note(key, now);
            let due = memory.waiting.remove(&key).unwrap();
            waits.push((due - now).as_secs());
            now = due;
            memory.note_stored(key, now);
        }
        assert_eq!(waits, [0, 5, 10, 20, 40, 80, 160, 320, 600, 600]);
    }
}

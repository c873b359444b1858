// SPDX-License-Identifier: MIT OR Apache-2.0
//! Segments that are durable and grow no more. One thread moves them into a store, oldest first, while the spool
//! drops some of them when it is full.

use crate::Kind;
use parking_lot::Mutex;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One of them.
#[derive(Clone, Debug)]
pub(crate) struct Sealed {
    pub(crate) path: PathBuf,
    pub(crate) kind: Kind,
    pub(crate) first_sequence: u64,
    /// Date of its first event, µs since 1970.
    pub(crate) begun_us: i64,
    pub(crate) bytes: u64,
    pub(crate) events: u64,
    pub(crate) is_claimed: bool,
}

/// All of them.
#[derive(Debug, Default)]
pub struct SealedSegments(Mutex<Vec<Sealed>>);

impl SealedSegments {
    pub(crate) fn push(&self, segment: Sealed) {
        self.0.lock().push(segment);
    }

    /// None waits.
    pub fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    /// The oldest segment that nobody has claimed; it is not dropped meanwhile.
    pub fn claim_oldest(self: &Arc<Self>) -> Option<Claimed> {
        let mut all = self.0.lock();
        let free = all.iter_mut().filter(|segment| !segment.is_claimed);
        let oldest = free.min_by_key(|segment| segment.first_sequence)?;
        oldest.is_claimed = true;
        Some(Claimed {
            path: oldest.path.clone(),
            all: Arc::clone(self),
        })
    }

    /// Removes the oldest unclaimed segment of the kind that is given up first, but of none after `last`. Answers the
    /// kind, and how many events it had.
    pub(crate) fn drop_one(&self, last: Kind) -> Option<(Kind, u64)> {
        let mut all = self.0.lock();
        let droppable = all.iter().enumerate();
        let droppable = droppable.filter(|(_, s)| !s.is_claimed && s.kind <= last);
        let (index, _) = droppable.min_by_key(|(_, s)| (s.kind, s.first_sequence))?;
        let dropped = all.remove(index);
        // What cannot be removed is read again at the next start: late, but not lost.
        let _ = std::fs::remove_file(&dropped.path);
        Some((dropped.kind, dropped.events))
    }

    pub(crate) fn sum(&self, of: impl Fn(&Sealed) -> u64) -> u64 {
        self.0.lock().iter().map(of).sum()
    }

    pub(crate) fn oldest_us(&self) -> Option<i64> {
        self.0.lock().iter().map(|segment| segment.begun_us).min()
    }

    /// Takes the segment out of the list.
    fn forget(&self, path: &Path) {
        self.0.lock().retain(|segment| segment.path != path);
    }

    fn release(&self, path: &Path) {
        let mut all = self.0.lock();
        if let Some(segment) = all.iter_mut().find(|segment| segment.path == path) {
            segment.is_claimed = false;
        }
    }
}

/// A segment that one thread moves. Dropped without [`Claimed::remove`], it is free to be claimed again.
#[derive(Debug)]
pub struct Claimed {
    path: PathBuf,
    all: Arc<SealedSegments>,
}

impl Claimed {
    /// Its bytes, for [`segment::read`](crate::segment::read).
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read(&self) -> io::Result<Vec<u8>> {
        std::fs::read(&self.path)
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it: the store has its events.
    ///
    /// # Errors
    /// When the file cannot be removed: the segment is moved again later, and its events are known then.
    pub fn remove(self) -> io::Result<()> {
        match std::fs::remove_file(&self.path) {
            // Another writer had taken the spool over, and its segments were moved from there too.
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        self.all.forget(&self.path);
        Ok(())
    }

    /// Renames it to `.damaged`: it cannot be read.
    pub(crate) fn set_aside(self) -> io::Result<()> {
        std::fs::rename(&self.path, self.path.with_extension("damaged"))?;
        self.all.forget(&self.path);
        Ok(())
    }
}

impl Drop for Claimed {
    fn drop(&mut self) {
        self.all.release(&self.path);
    }
}

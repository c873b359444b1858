// SPDX-License-Identifier: MIT OR Apache-2.0
//! The spool: a folder of segments, one growing segment for each kind of event.
//!
//! An event is accepted in memory, and durable after the next [`Spool::sync`] that succeeds. A segment that is large or
//! old enough is sealed by a sync; sealed segments wait for a store ([`SealedSegments`]). The folder is bounded: when it
//! is full, the oldest segment of the kind that matters least is dropped, but never for an event that matters less.

mod active;

use crate::sealed::Sealed;
use crate::segment::{self, Header, TooLong};
use crate::{Event, Kind, Origin, SealedSegments};
use active::Active;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How much a spool keeps, and when a segment is sealed.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// All segments together.
    pub total_bytes: u64,
    /// A segment is sealed at this size.
    pub segment_bytes: u64,
    /// Or when its first event is this old, µs.
    pub segment_us: i64,
}

impl Bounds {
    /// Segments of at most 4 MiB and 2 s, in so many bytes.
    pub fn of(total_bytes: u64) -> Bounds {
        Bounds {
            total_bytes,
            segment_bytes: (total_bytes / 16).min(4 << 20),
            segment_us: 2_000_000,
        }
    }
}

/// Why an event is not in the spool, or the spool not durable.
#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    /// Of the folder or a segment.
    #[error("{0}")]
    File(String, #[source] io::Error),
    /// Another process writes to the folder.
    #[error("{0}: another process uses this spool")]
    InUse(String),
    /// The bound is reached, and everything in the spool matters more.
    #[error("the spool is full")]
    Full,
    /// Of the event.
    #[error(transparent)]
    TooLong(#[from] TooLong),
}

/// How a spool fares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpoolStatus {
    /// Of all segments.
    pub bytes: u64,
    /// Events that wait for the store.
    pub events: u64,
    /// Date of the oldest of them, µs since 1970; of a segment that grows, when it was begun.
    pub oldest_us: Option<i64>,
    /// Events that were given up or refused, by kind.
    pub dropped: BTreeMap<Kind, u64>,
}

/// The writer of a spool.
#[derive(Debug)]
pub struct Spool {
    folder: PathBuf,
    origin: Origin,
    bounds: Bounds,
    next_sequence: u64,
    active: BTreeMap<Kind, Active>,
    sealed: Arc<SealedSegments>,
    dropped: BTreeMap<Kind, u64>,
    _lock: File,
}

impl Spool {
    /// Opens the folder, or makes it (0750). Segments of an earlier writer count as sealed; a file that is none is
    /// renamed to `.damaged`. Sequence numbers begin at `now_us` or after the last one that is there, whichever is
    /// greater: so none is used twice, whatever was removed.
    ///
    /// # Errors
    /// When the folder cannot be made or read, or another process writes to it.
    pub fn open(
        folder: &Path,
        origin: Origin,
        bounds: Bounds,
        now_us: i64,
    ) -> Result<Spool, SpoolError> {
        let of_folder = |error| of_file(folder, error);
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true).mode(0o750);
        builder.create(folder).map_err(of_folder)?;
        let lock = lock(folder)?;
        let sealed = Arc::new(SealedSegments::default());
        let mut last_sequence = 0;
        for path in segments(folder).map_err(of_folder)? {
            last_sequence = last_sequence.max(take_over(&path, &sealed)?);
        }
        Ok(Spool {
            folder: folder.to_path_buf(),
            origin,
            bounds,
            next_sequence: (last_sequence + 1).max(now_us.try_into().unwrap_or(1)),
            active: BTreeMap::new(),
            sealed,
            dropped: BTreeMap::new(),
            _lock: lock,
        })
    }

    /// The segments that wait for the store.
    pub fn sealed(&self) -> &Arc<SealedSegments> {
        &self.sealed
    }

    /// Accepts an event and answers its sequence number; it is durable after the next sync.
    ///
    /// # Errors
    /// When there is no space for it. It is counted as dropped then.
    pub fn append(&mut self, kind: Kind, event: &Event) -> Result<u64, SpoolError> {
        let appended = self.try_append(kind, event);
        if appended.is_err() {
            self.count_dropped(kind, 1);
        }
        appended
    }

    fn try_append(&mut self, kind: Kind, event: &Event) -> Result<u64, SpoolError> {
        let sequence = self.next_sequence;
        let mut frame = Vec::new();
        segment::push_event(&mut frame, sequence, event)?;
        self.make_space(kind, frame.len() as u64)?;
        if !self.active.contains_key(&kind) {
            let active = self.begin(kind, sequence, event.time_us)?;
            self.active.insert(kind, active);
        }
        let active = self.active.get_mut(&kind).expect("it was begun above");
        if active.wants_write() {
            self.write(kind)?;
        }
        let active = self.active.get_mut(&kind).expect("it is there still");
        active.push(&frame);
        self.next_sequence += 1;
        Ok(sequence)
    }

    fn begin(&self, kind: Kind, sequence: u64, time_us: i64) -> Result<Active, SpoolError> {
        let origin = self.origin.clone();
        let head = segment::head(&Header { origin, kind })?;
        let name = format!("{sequence:020}-{}.{SEGMENT}", kind.name());
        let path = self.folder.join(name);
        Ok(Active::new(path, sequence, time_us, head))
    }

    fn make_space(&mut self, kind: Kind, bytes: u64) -> Result<(), SpoolError> {
        while self.bytes() + bytes > self.bounds.total_bytes {
            self.give_up(kind)?;
        }
        Ok(())
    }

    /// Drops a segment that matters at most as much as `kind`; of those that grow only one that matters less.
    fn give_up(&mut self, kind: Kind) -> Result<(), SpoolError> {
        let given_up = self.sealed.drop_one(kind);
        let given_up = given_up.or_else(|| self.drop_active_below(kind));
        let (kind, events) = given_up.ok_or(SpoolError::Full)?;
        self.count_dropped(kind, events);
        Ok(())
    }

    fn drop_active_below(&mut self, kind: Kind) -> Option<(Kind, u64)> {
        let (least, _) = self.active.range(..kind).next()?;
        let least = *least;
        let active = self.active.remove(&least)?;
        // What cannot be removed is read again at the next start: late, but not lost.
        let _ = std::fs::remove_file(active.path());
        Some((least, active.events()))
    }

    fn count_dropped(&mut self, kind: Kind, events: u64) {
        *self.dropped.entry(kind).or_default() += events;
    }

    /// Writes what the segment of the kind has in memory. On a full disk, what matters less makes space.
    fn write(&mut self, kind: Kind) -> Result<(), SpoolError> {
        loop {
            let Some(active) = self.active.get_mut(&kind) else {
                return Ok(());
            };
            match active.write() {
                Ok(()) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::StorageFull => {
                    let path = active.path().to_path_buf();
                    self.give_up(kind).map_err(|_| of_file(&path, error))?;
                }
                Err(error) => return Err(of_file(active.path(), error)),
            }
        }
    }

    /// Makes every accepted event durable: when this succeeds, all of them are acknowledged. Seals what is large or
    /// old enough.
    ///
    /// # Errors
    /// The first segment that could not be written; the others were. It is tried again at the next sync.
    pub fn sync(&mut self, now_us: i64) -> Result<(), SpoolError> {
        let kinds: Vec<Kind> = self.active.keys().rev().copied().collect();
        let synced: Vec<_> = kinds.iter().map(|kind| self.sync_one(*kind)).collect();
        self.sync_folder()?;
        self.seal(|active, bounds| {
            // A clock that was set back makes the age negative: the segment is sealed at once.
            let age_us = now_us - active.begun_us();
            active.bytes() >= bounds.segment_bytes || !(0..bounds.segment_us).contains(&age_us)
        });
        synced.into_iter().collect()
    }

    /// Makes everything durable, and seals every segment.
    ///
    /// # Errors
    /// As [`Spool::sync`].
    pub fn seal_all(&mut self, now_us: i64) -> Result<(), SpoolError> {
        let synced = self.sync(now_us);
        self.seal(|_, _| true);
        synced
    }

    fn sync_one(&mut self, kind: Kind) -> Result<(), SpoolError> {
        self.write(kind)?;
        match self.active.get_mut(&kind) {
            Some(active) => active.sync().map_err(|error| of_file(active.path(), error)),
            // A kind that matters more needed its space.
            None => Ok(()),
        }
    }

    /// A new file is durable when its name is.
    fn sync_folder(&mut self) -> Result<(), SpoolError> {
        if self.active.values().any(Active::is_new) {
            let synced = File::open(&self.folder).and_then(|folder| folder.sync_all());
            synced.map_err(|error| of_file(&self.folder, error))?;
            self.active.values_mut().for_each(Active::note_named);
        }
        Ok(())
    }

    /// Seals what is due, and durable.
    fn seal(&mut self, is_due: impl Fn(&Active, &Bounds) -> bool) {
        for (kind, active) in std::mem::take(&mut self.active) {
            match active.is_durable() && is_due(&active, &self.bounds) {
                true => self.sealed.push(active.into_sealed(kind)),
                false => drop(self.active.insert(kind, active)),
            }
        }
    }

    fn bytes(&self) -> u64 {
        let active: u64 = self.active.values().map(Active::bytes).sum();
        self.sealed.sum(|segment| segment.bytes) + active
    }

    /// How it fares.
    pub fn status(&self) -> SpoolStatus {
        let active = self.active.values();
        let oldest = active.clone().map(Active::begun_us).min();
        SpoolStatus {
            bytes: self.bytes(),
            events: self.sealed.sum(|segment| segment.events)
                + active.map(Active::events).sum::<u64>(),
            oldest_us: self.sealed.oldest_us().into_iter().chain(oldest).min(),
            dropped: self.dropped.clone(),
        }
    }
}

/// Ending of a segment's file.
const SEGMENT: &str = "segment";

fn lock(folder: &Path) -> Result<File, SpoolError> {
    let path = folder.join("lock");
    let lock = File::create(&path).map_err(|error| of_file(&path, error))?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(lock),
        Err(Errno::WOULDBLOCK) => Err(SpoolError::InUse(folder.display().to_string())),
        Err(error) => Err(of_file(&path, error.into())),
    }
}

fn segments(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let paths: io::Result<Vec<PathBuf>> = std::fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect();
    let mut paths = paths?;
    paths.retain(|path| path.extension().is_some_and(|ending| ending == SEGMENT));
    Ok(paths)
}

/// A segment of an earlier writer; the last sequence number in it.
fn take_over(path: &Path, sealed: &SealedSegments) -> Result<u64, SpoolError> {
    let failed = |error| of_file(path, error);
    let bytes = std::fs::read(path).map_err(failed)?;
    let Ok((header, events)) = segment::read(&bytes) else {
        let damaged = path.with_extension("damaged");
        std::fs::rename(path, damaged).map_err(failed)?;
        return Ok(0);
    };
    let (mut count, mut first, mut last_sequence) = (0, None, 0);
    for (sequence, event) in events {
        first.get_or_insert((sequence, event.time_us));
        (count, last_sequence) = (count + 1, sequence);
    }
    let Some((first_sequence, begun_us)) = first else {
        std::fs::remove_file(path).map_err(failed)?;
        return Ok(0);
    };
    sealed.push(Sealed {
        path: path.to_path_buf(),
        kind: header.kind,
        first_sequence,
        begun_us,
        bytes: bytes.len() as u64,
        events: count,
        is_claimed: false,
    });
    Ok(last_sequence)
}

fn of_file(path: &Path, error: io::Error) -> SpoolError {
    SpoolError::File(path.display().to_string(), error)
}

#[cfg(test)]
mod tests;

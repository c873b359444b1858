// SPDX-License-Identifier: MIT OR Apache-2.0
//! Takes samples, and keeps a folder of files within bounds.
//!
//! A full disk costs samples, never the caller: they are counted, and writing is tried again.

use crate::part::{Part, Recovered, finished, of_file, recover};
use crate::{RecordError, Row};
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// How much a recorder keeps, and how often it writes.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// A file is finished, and the next begun, at about this size.
    pub file_bytes: u64,
    /// When the finished files are more than this together, the oldest goes.
    pub total_bytes: u64,
    /// So many files stay at most, including the unfinished one, and at least two.
    pub files: usize,
    /// A row group is written at this many rows: what a crash can cost.
    pub group_rows: usize,
    /// Or when its first row is this old; µs.
    pub group_us: i64,
}

/// Each row group adds about 8 KB to a file's table of contents, which every reader reads.
const MOST_GROUPS: usize = 256;

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            file_bytes: 64 << 20,
            total_bytes: 1 << 30,
            files: usize::MAX,
            group_rows: 16_384,
            group_us: 10_000_000,
        }
    }
}

/// How a recorder fares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Rows on disk, those in files that went since included.
    pub written_rows: u64,
    /// Rows that the disk did not take.
    pub lost_rows: u64,
    /// Files finished.
    pub finished: u64,
    /// Files removed because a bound was met, those of earlier recorders included.
    pub removed: u64,
    /// Why the last row is not on disk.
    pub error: Option<String>,
}

/// Writes samples to a folder.
pub struct Recorder {
    folder: PathBuf,
    name: String,
    bounds: Bounds,
    part: Option<Part<Row>>,
    rows: Vec<Row>,
    /// In encoded groups that the disk has not taken yet.
    pending_rows: u64,
    next_file: u32,
    /// Who may read the files besides their owner.
    group: Option<u32>,
    /// A file could not be finished: it is left as a crash leaves one.
    has_left: bool,
    /// Finished, the oldest first.
    files: VecDeque<(PathBuf, u64)>,
    recorded: Recorded,
}

/// Of the files of a recorder that begins now: their names sort by time.
pub fn dated(prefix: &str, now: SystemTime) -> String {
    let now = humantime::format_rfc3339_seconds(now);
    format!("{prefix}{now}").replace(':', "")
}

impl Recorder {
    /// Begins: files are `FOLDER/NAME-0001.parquet` and so on; the folder is made when it is not there.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn begin(folder: &Path, name: &str, bounds: Bounds) -> Result<Recorder, RecordError> {
        std::fs::create_dir_all(folder).map_err(|error| of_file(folder, error))?;
        Ok(Recorder {
            folder: folder.to_path_buf(),
            name: name.to_owned(),
            bounds,
            part: None,
            rows: Vec::new(),
            pending_rows: 0,
            next_file: 1,
            group: None,
            has_left: false,
            files: VecDeque::new(),
            recorded: Recorded::default(),
        })
    }

    /// Lets this group read the files that are begun from now on.
    pub fn shared_with(mut self, group: Option<u32>) -> Recorder {
        self.group = group;
        self
    }

    /// Counts what earlier recorders left in the folder for its bounds, too: the finished files whose names begin so.
    /// [`Recorder::prune`] removes those beyond the bounds.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn after_earlier(mut self, prefix: &str) -> Result<Recorder, RecordError> {
        self.files = finished(&self.folder, prefix)?.into();
        Ok(self)
    }

    /// The finished files that stay, and their bytes together.
    pub fn kept(&self) -> (usize, u64) {
        (
            self.files.len(),
            self.files.iter().map(|(_, bytes)| bytes).sum(),
        )
    }

    /// How it fares.
    pub fn recorded(&self) -> &Recorded {
        &self.recorded
    }

    /// Takes one sample. Answers what there is to say of it: only when failure begins or ends.
    pub fn take(&mut self, row: Row) -> Option<String> {
        let first_us = self.rows.first().map_or(row.time_us, |first| first.time_us);
        // A clock that was set back makes a group's age negative: it is closed at once.
        let age_us = row.time_us - first_us;
        self.rows.push(row);
        let is_full = self.rows.len() >= self.bounds.group_rows;
        let is_old = !(0..self.bounds.group_us).contains(&age_us);
        (is_full || is_old).then(|| self.flush()).flatten()
    }

    /// Writes the rows taken so far as a row group.
    pub fn flush(&mut self) -> Option<String> {
        if self.has_nothing_to_write() {
            return None;
        }
        let rows = std::mem::take(&mut self.rows);
        let written = self.write(&rows).and_then(|()| self.rotate());
        self.tell(written)
    }

    fn has_nothing_to_write(&self) -> bool {
        self.rows.is_empty() && self.pending_rows == 0
    }

    /// Memory stays bounded: one group waits for the disk, and what comes meanwhile is lost.
    fn write(&mut self, rows: &[Row]) -> Result<(), RecordError> {
        if rows.is_empty() && self.pending_rows == 0 {
            return Ok(());
        }
        let count = rows.len() as u64;
        let part = match self.part_with_room() {
            Ok(part) => part,
            Err(error) => {
                self.recorded.lost_rows += count;
                return Err(error);
            }
        };
        let added = match rows {
            [] => Ok(()),
            rows => part.add(rows),
        };
        self.pending_rows += count;
        added.map(|()| self.recorded.written_rows += std::mem::take(&mut self.pending_rows))
    }

    /// The file that grows, once what waits is written.
    fn part_with_room(&mut self) -> Result<&mut Part<Row>, RecordError> {
        if self.part.is_none() {
            self.part = Some(self.begin_part()?);
        }
        let part = self.part.as_mut().expect("it was begun above");
        part.write_pending()?;
        Ok(part)
    }

    fn begin_part(&mut self) -> Result<Part<Row>, RecordError> {
        let part = Part::begin(self.next_path())?;
        let shared = self.group.map_or(Ok(()), |group| part.share_with(group));
        if let Err(error) = shared {
            // Without a row it is removed: each try would leave another one.
            let _ = part.finish();
            return Err(error);
        }
        Ok(part)
    }

    /// A clock that was set back gives an earlier trace's name again: that stays.
    fn next_path(&mut self) -> PathBuf {
        loop {
            let name = format!("{}-{:04}.parquet", self.name, self.next_file);
            let path = self.folder.join(name);
            self.next_file += 1;
            if !path.exists() {
                return path;
            }
        }
    }

    fn rotate(&mut self) -> Result<(), RecordError> {
        let is_full = |part: &Part<Row>| {
            part.bytes() >= self.bounds.file_bytes || part.groups() >= MOST_GROUPS
        };
        match self.part.take_if(|part| is_full(part)) {
            Some(part) => self.keep(part),
            None => Ok(()),
        }
    }

    /// Finishes a file, and removes the oldest ones beyond the bound.
    fn keep(&mut self, part: Part<Row>) -> Result<(), RecordError> {
        let path = part.path().to_path_buf();
        let (written, finished) = part.end();
        let pending = std::mem::take(&mut self.pending_rows);
        match (&written, &finished) {
            (Ok(()), Ok(_)) => self.recorded.written_rows += pending,
            _ => self.recorded.lost_rows += pending,
        }
        self.has_left |= finished.is_err();
        let bytes = finished?;
        let left = self.keep_left();
        if bytes > 0 {
            self.recorded.finished += 1;
            self.files.push_back((path, bytes));
        }
        written.and(left).and(self.prune())
    }

    /// Removes the oldest files beyond the bounds. One that cannot be removed does not count any more.
    ///
    /// # Errors
    /// That of the first file that cannot be removed.
    pub fn prune(&mut self) -> Result<(), RecordError> {
        let mut pruned = Ok(());
        let sum = |files: &VecDeque<(PathBuf, u64)>| files.iter().map(|(_, bytes)| bytes).sum();
        let for_files = self
            .bounds
            .total_bytes
            .saturating_sub(self.bounds.file_bytes);
        let is_beyond = |files: &VecDeque<(PathBuf, u64)>| {
            for_files < sum(files) || self.bounds.files <= files.len()
        };
        while self.files.len() > 1 && is_beyond(&self.files) {
            let Some((oldest, _)) = self.files.pop_front() else {
                break;
            };
            match std::fs::remove_file(&oldest) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    pruned = pruned.and(Err(of_file(&oldest, error)));
                }
                _ => self.recorded.removed += 1,
            }
        }
        pruned
    }

    /// Finishes what could not be finished before, so that it counts for the bounds.
    fn keep_left(&mut self) -> Result<(), RecordError> {
        if !std::mem::take(&mut self.has_left) {
            return Ok(());
        }
        for recovered in recover(&self.folder).inspect_err(|_| self.has_left = true)? {
            let (path, is_finished) = match recovered {
                Recovered::Finished(path) => (path, true),
                Recovered::Failed(path, _) => (path, false),
                Recovered::Removed(_) => continue,
            };
            let name = path.file_name().unwrap_or_default().as_encoded_bytes();
            if !name.starts_with(self.name.as_bytes()) {
                continue;
            }
            if !is_finished {
                self.has_left = true;
                continue;
            }
            let bytes = path
                .metadata()
                .map_err(|error| of_file(&path, error))?
                .len();
            self.recorded.finished += 1;
            self.files.push_back((path, bytes));
        }
        Ok(())
    }

    fn tell(&mut self, written: Result<(), RecordError>) -> Option<String> {
        let folder = self.folder.display();
        match written {
            Ok(()) => {
                let was = self.recorded.error.take();
                was.map(|_| {
                    format!(
                        "{folder}: written again, {} samples lost",
                        self.recorded.lost_rows
                    )
                })
            }
            Err(error) => {
                let why = error.with_source();
                let said = format!("{why}; samples are lost until the disk takes them");
                let was = self.recorded.error.replace(why);
                was.is_none().then_some(said)
            }
        }
    }

    /// Writes what there is and finishes the file that grows; the next sample begins another. Answers as
    /// [`Recorder::take`].
    pub fn close(&mut self) -> Option<String> {
        if self.part.is_none() && self.has_nothing_to_write() {
            return None;
        }
        let closed = self.write_and_keep();
        self.tell(closed)
    }

    /// Writes what there is and finishes the last file.
    ///
    /// # Errors
    /// When it cannot be finished; [`crate::recover`] can do it later.
    pub fn finish(mut self) -> Result<Recorded, RecordError> {
        self.write_and_keep().map(|()| self.recorded)
    }

    fn write_and_keep(&mut self) -> Result<(), RecordError> {
        let rows = std::mem::take(&mut self.rows);
        let written = self.write(&rows);
        let kept = self.part.take().map_or(Ok(()), |part| self.keep(part));
        written.and(kept)
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The store of one host: a folder of SQLite databases, one for each day (UTC), so that to forget a day is to remove a
//! file. Its roll-ups are added to one more database before.

use super::calendar::{DAY_US, begin_of, day_of};
use super::day::Database;
use super::{Batch, History, Put, Query, Record, Retention, Store, StoreError, StoreStatus, Width};
use crate::{Event, Kind};
use ipnet::IpNet;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Days that are open to write at once: events of other days come only by an import.
const MOST_OPEN: usize = 4;

/// Of each two file descriptors.
const MOST_READERS: usize = 64;

/// Roll-ups of days whose events are gone.
const ROLLUPS: &str = "rollups.db";

/// SQLite's own files beside a database.
const COMPANIONS: [&str; 3] = ["", "-wal", "-shm"];

/// The store. Nothing is opened, nor made, before it is needed.
#[derive(Debug)]
pub struct SqliteStore {
    folder: PathBuf,
    open: BTreeMap<String, Database>,
    /// To read, as the history of a path reads each day several times.
    readers: RefCell<BTreeMap<PathBuf, Database>>,
    is_full: bool,
}

impl SqliteStore {
    /// The store in a folder.
    pub fn at(folder: &Path) -> SqliteStore {
        SqliteStore {
            folder: folder.to_path_buf(),
            open: BTreeMap::new(),
            readers: RefCell::default(),
            is_full: false,
        }
    }

    /// Its roll-ups stay. A crash at any moment doubles none: see [`SqliteStore::finish_removals`].
    fn remove(&mut self, day: &str) -> Result<(), StoreError> {
        self.open.remove(day);
        self.readers.borrow_mut().remove(&self.file(day));
        if let Some(from) = Database::read(&self.file(day))? {
            self.rollups()?.take_rollups(day, &from)?;
        }
        self.finish_removals()
    }

    /// Removes the databases whose roll-ups were taken.
    fn finish_removals(&mut self) -> Result<(), StoreError> {
        if !self.folder.join(ROLLUPS).exists() {
            return Ok(());
        }
        let mut rollups = self.rollups()?;
        for day in rollups.taken()? {
            let file = self.file(&day).display().to_string();
            for companion in COMPANIONS {
                let file = format!("{file}{companion}");
                match std::fs::remove_file(&file) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(StoreError::File(file, error));
                    }
                    _ => {}
                }
            }
            rollups.forget_taken(&day)?;
        }
        Ok(())
    }

    fn rollups(&self) -> Result<Database, StoreError> {
        Database::open(&self.folder.join(ROLLUPS))
    }

    fn file(&self, day: &str) -> PathBuf {
        self.folder.join(format!("{day}.db"))
    }

    /// Days that have a database, the oldest first.
    fn days(&self) -> Result<Vec<String>, StoreError> {
        let mut days: Vec<String> = self
            .names()?
            .iter()
            .filter_map(|name| name.strip_suffix(".db"))
            .filter(|day| begin_of(day).is_some())
            .map(str::to_owned)
            .collect();
        days.sort_unstable();
        Ok(days)
    }

    fn bytes(&self) -> Result<u64, StoreError> {
        let names = self.names()?;
        let of_database = names.iter().filter(|name| name.contains(".db"));
        // A companion may go at any moment.
        let bytes =
            of_database.map(|name| self.folder.join(name).metadata().map_or(0, |m| m.len()));
        Ok(bytes.sum())
    }

    /// Of the files in the folder; none while there is no folder.
    fn names(&self) -> Result<Vec<String>, StoreError> {
        let of_folder = |error| StoreError::File(self.folder.display().to_string(), error);
        let entries = match std::fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(of_folder)?,
        };
        let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        names.collect::<io::Result<_>>().map_err(of_folder)
    }

    /// Days whose events may be of that time.
    fn days_between(&self, since_us: i64, until_us: i64) -> Result<Vec<String>, StoreError> {
        let mut days = self.days()?;
        let (first, last) = (day_of(since_us), day_of(until_us));
        days.retain(|day| (&first..=&last).contains(&day));
        Ok(days)
    }

    /// Reads from a database, where it is there.
    fn read(
        &self,
        file: PathBuf,
        read: impl FnOnce(&Database) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut readers = self.readers.borrow_mut();
        if !readers.contains_key(&file) {
            let Some(database) = Database::read(&file)? else {
                return Ok(());
            };
            if readers.len() >= MOST_READERS {
                readers.pop_first();
            }
            readers.insert(file.clone(), database);
        }
        readers.get(&file).map_or(Ok(()), read)
    }

    fn open(&mut self, day: &str) -> Result<&mut Database, StoreError> {
        if !self.open.contains_key(day) {
            let mut builder = std::fs::DirBuilder::new();
            let made = builder.recursive(true).mode(0o750).create(&self.folder);
            made.map_err(|error| StoreError::File(self.folder.display().to_string(), error))?;
            if self.open.len() >= MOST_OPEN {
                self.open.pop_first();
            }
            let database = Database::open(&self.file(day))?;
            self.open.insert(day.to_owned(), database);
        }
        Ok(self.open.get_mut(day).expect("it was opened above"))
    }
}

impl Store for SqliteStore {
    fn put(&mut self, batch: &Batch) -> Result<Put, StoreError> {
        if self.is_full && batch.kind <= Kind::Flow {
            let refused = batch.events.len() as u64;
            return Ok(Put {
                refused,
                ..Put::default()
            });
        }
        let mut by_day: BTreeMap<String, Vec<&(u64, Event)>> = BTreeMap::new();
        for event in &batch.events {
            by_day
                .entry(day_of(event.1.time_us))
                .or_default()
                .push(event);
        }
        let mut all = Put::default();
        for (day, events) in by_day {
            let put = self.open(&day)?.put(batch, events.into_iter());
            if put.is_err() {
                // Whatever is wrong with the database, it is opened anew.
                self.open.remove(&day);
            }
            let put = put?;
            all.stored += put.stored;
            all.known += put.known;
        }
        Ok(all)
    }

    fn query(&self, query: &Query) -> Result<Vec<Record>, StoreError> {
        let mut found = Vec::new();
        for day in self
            .days_between(query.since_us, query.until_us)?
            .iter()
            .rev()
        {
            if found.len() >= query.limit {
                break;
            }
            let limit = query.limit - found.len();
            let of_day = Query {
                limit,
                ..query.clone()
            };
            self.read(self.file(day), |database| {
                found.extend(database.query(&of_day)?);
                Ok(())
            })?;
        }
        found.sort_by_key(|record| (record.event.time_us, record.sequence));
        Ok(found)
    }

    fn history(
        &self,
        prefix: IpNet,
        width: Width,
        since_us: i64,
        until_us: i64,
    ) -> Result<History, StoreError> {
        let days = self.days_between(since_us, until_us)?;
        let files = days.iter().map(|day| self.file(day));
        let mut history = History::new();
        for file in files.chain([self.folder.join(ROLLUPS)]) {
            self.read(file, |database| {
                database.add_history(prefix, width, (since_us, until_us), &mut history)
            })?;
        }
        Ok(history)
    }

    fn retain(&mut self, retention: Retention, now_us: i64) -> Result<(), StoreError> {
        self.finish_removals()?;
        let oldest = day_of(now_us.saturating_sub((i64::from(retention.days) - 1) * DAY_US));
        let mut days = self.days()?;
        let mut bytes = self.bytes()?;
        while let Some(day) = days.first() {
            let is_last = days.len() == 1;
            if *day >= oldest && (bytes <= retention.total_bytes || is_last) {
                break;
            }
            self.remove(day)?;
            days.remove(0);
            bytes = self.bytes()?;
        }
        self.is_full = bytes > retention.total_bytes;
        if self.folder.join(ROLLUPS).exists() {
            self.rollups()?.remove_old_rollups(now_us)?;
        }
        Ok(())
    }

    fn status(&self) -> Result<StoreStatus, StoreError> {
        Ok(StoreStatus {
            bytes: self.bytes()?,
            days: self.days()?,
            is_full: self.is_full,
        })
    }
}

#[cfg(test)]
mod tests;

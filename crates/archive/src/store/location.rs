// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a store is, from which it is opened.

use super::{PostgresStore, ServerAddress, SqliteStore, Store, StoreError};
use std::path::PathBuf;
use std::time::Duration;

/// Where a store is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// SQLite databases in a folder.
    Folder(PathBuf),
    /// A PostgreSQL server.
    Server(ServerAddress),
}

impl Location {
    /// What a server has for one question or batch, unless another time is given.
    pub const DEADLINE: Duration = Duration::from_secs(30);

    /// The store there. A server is connected to when it is first asked: ask it where a thread may wait.
    ///
    /// # Errors
    /// When the process has no file descriptors left.
    pub fn open(&self) -> Result<Box<dyn Store + Send>, StoreError> {
        self.open_within(Location::DEADLINE)
    }

    /// One whose server has so long for each question.
    ///
    /// # Errors
    /// As [`Location::open`].
    pub fn open_within(&self, deadline: Duration) -> Result<Box<dyn Store + Send>, StoreError> {
        Ok(match self {
            Location::Folder(folder) => Box::new(SqliteStore::at(folder)),
            Location::Server(address) => Box::new(PostgresStore::at(address.clone(), deadline)?),
        })
    }

    /// A folder that is not there has no events; of a server only an answer can tell.
    pub fn may_exist(&self) -> bool {
        match self {
            Location::Folder(folder) => folder.is_dir(),
            Location::Server(_) => true,
        }
    }

    /// Whether other hosts' events are there, too.
    pub fn is_shared(&self) -> bool {
        matches!(self, Location::Server(_))
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What every store of the archive does: it takes batches of events, and answers queries.

mod calendar;
mod day;
mod histogram;
mod location;
mod migration;
mod path_history;
mod path_key;
mod postgres;
mod rollup;
mod sqlite;

use crate::{Event, Kind, Origin};
use ipnet::IpNet;
use std::collections::BTreeMap;

pub use histogram::Histogram;
pub use location::Location;
pub use migration::{IndexStep, Migration, Watch};
pub use path_history::{PathHistory, PathQuery, path_history};
pub use path_key::{parse_prefix, path_of};
pub use postgres::{PostgresStore, SCHEMA_VERSION, ServerAddress};
pub use rollup::{Measure, Rollup, Width};
pub use sqlite::SqliteStore;

/// Events of one segment.
#[derive(Clone, Debug)]
pub struct Batch {
    /// Where they come from.
    pub origin: Origin,
    /// Their kind.
    pub kind: Kind,
    /// Each with its sequence number.
    pub events: Vec<(u64, Event)>,
}

/// What became of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Put {
    /// Events that are in the store now.
    pub stored: u64,
    /// Events that were there before.
    pub known: u64,
    /// Events that the store had no space for.
    pub refused: u64,
}

/// Which events are asked for.
#[derive(Clone, Debug)]
pub struct Query {
    /// Not before this, µs since 1970.
    pub since_us: i64,
    /// Before this.
    pub until_us: i64,
    /// Of peers in this prefix.
    pub prefix: Option<IpNet>,
    /// From this host.
    pub host: Option<String>,
    /// Of this rule.
    pub rule: Option<String>,
    /// Of these kinds; empty: of all.
    pub kinds: Vec<Kind>,
    /// At most so many, the newest.
    pub limit: usize,
}

impl Query {
    /// All events of a time.
    pub fn between(since_us: i64, until_us: i64) -> Query {
        Query {
            since_us,
            until_us,
            prefix: None,
            host: None,
            rule: None,
            kinds: Vec::new(),
            limit: usize::MAX,
        }
    }
}

/// A stored event.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Where it comes from.
    pub origin: Origin,
    /// Its number there.
    pub sequence: u64,
    /// Its kind.
    pub kind: Kind,
    /// What happened.
    pub event: Event,
}

/// What flows of a path measured, by time: the begin of an interval in seconds since 1970, and what was measured in it.
pub type History = BTreeMap<(i64, Measure), Rollup>;

/// Why a store cannot take or answer.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Of the database.
    #[error("{0}")]
    Database(String, #[source] rusqlite::Error),
    /// Of the server, which is named without its password.
    #[error("{server}: {why}")]
    Server {
        /// Its address.
        server: String,
        /// What it says, or why it says nothing.
        why: String,
    },
    /// Of the folder or a file.
    #[error("{0}")]
    File(String, #[source] std::io::Error),
    /// Made by another version of fatpath.
    #[error("{file}: schema version {found}; this fatpath reads and writes version {known}{}", remedy(*found, *known))]
    Version {
        /// The database.
        file: String,
        /// Its version.
        found: i64,
        /// Ours.
        known: i64,
    },
}

/// What to do about a schema of another version.
fn remedy(found: i64, known: i64) -> &'static str {
    match found > known {
        true => {
            ": update fatpath here, or take the schema back with the later one's `fatpath archive migrate --to`"
        }
        false => {
            ": `fatpath archive migrate` brings it forward, as does a daemon that writes to it"
        }
    }
}

/// What is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Events of so many days, today included.
    pub days: u32,
    /// Of SQLite all databases together; the oldest day goes first. When today alone has more, only tests, estimates and
    /// decisions are stored. The size of a server's database is its administrator's.
    pub total_bytes: u64,
}

/// How a store fares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreStatus {
    /// Of all its tables.
    pub bytes: u64,
    /// Days whose events are there, the oldest first: `2026-11-23`.
    pub days: Vec<String>,
    /// Nothing but tests, estimates and decisions is stored.
    pub is_full: bool,
}

/// A store.
pub trait Store {
    /// Brings what is there to the form that this fatpath writes, which may take long: `watch` hears each second how far it
    /// is, and answers whether to go on. What writes does the same first, unwatched.
    ///
    /// # Errors
    /// When it is of a later version, or cannot be changed.
    fn prepare(&mut self, _watch: &mut Watch) -> Result<(), StoreError> {
        Ok(())
    }

    /// Stores a batch durably. An event that is there already, by origin and sequence number, stays as it is.
    ///
    /// # Errors
    /// When not all of it could be stored: the same batch is to be put again.
    fn put(&mut self, batch: &Batch) -> Result<Put, StoreError>;

    /// The newest events that match, in the order of time.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn query(&self, query: &Query) -> Result<Vec<Record>, StoreError>;

    /// What flows to the prefix measured, in intervals of a width.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn history(
        &self,
        prefix: IpNet,
        width: Width,
        since_us: i64,
        until_us: i64,
    ) -> Result<History, StoreError>;

    /// Removes what is kept no longer.
    ///
    /// # Errors
    /// When it cannot be removed: it goes later.
    fn retain(&mut self, retention: Retention, now_us: i64) -> Result<(), StoreError>;

    /// How it fares.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn status(&self) -> Result<StoreStatus, StoreError>;
}

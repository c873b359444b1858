// SPDX-License-Identifier: MIT OR Apache-2.0
//! The history of a path: what its flows measured by time, and the other events of that time.

use super::{History, Query, Record, Store, StoreError, Width};
use crate::Kind;
use ipnet::IpNet;

/// Which path, and when.
#[derive(Clone, Copy, Debug)]
pub struct PathQuery {
    /// Of the peers.
    pub prefix: IpNet,
    /// Of an interval.
    pub width: Width,
    /// Not before this, µs since 1970.
    pub since_us: i64,
    /// Before this.
    pub until_us: i64,
    /// At most so many events to the path, and as many decisions: the newest.
    pub most_marks: usize,
}

/// The history of a path.
#[derive(Clone, Debug, Default)]
pub struct PathHistory {
    /// What flows measured.
    pub measured: History,
    /// Findings, estimates and tests of the path, and the decisions of that time, which are about no path; by time.
    pub marks: Vec<Record>,
}

/// Asks a store for the history of a path.
///
/// # Errors
/// When the store cannot be read.
pub fn path_history(store: &dyn Store, asked: &PathQuery) -> Result<PathHistory, StoreError> {
    let PathQuery {
        prefix,
        width,
        since_us,
        until_us,
        most_marks,
    } = *asked;
    let of_kinds = |prefix, kinds| Query {
        prefix,
        kinds,
        limit: most_marks,
        ..Query::between(since_us, until_us)
    };
    let of_path = vec![Kind::Event, Kind::Path, Kind::Test];
    let mut marks = store.query(&of_kinds(Some(prefix), of_path))?;
    marks.extend(store.query(&of_kinds(None, vec![Kind::Decision]))?);
    marks.sort_by_key(|record| record.event.time_us);
    Ok(PathHistory {
        measured: store.history(prefix, width, since_us, until_us)?,
        marks,
    })
}

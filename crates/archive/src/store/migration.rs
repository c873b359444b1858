// SPDX-License-Identifier: MIT OR Apache-2.0
//! How far a change of a server's tables is.

use std::fmt;
use std::time::Duration;

/// A change of the tables to another version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migration {
    /// Version before; 0: there was no archive.
    pub from: i64,
    /// Version after.
    pub to: i64,
    /// Since its begin.
    pub elapsed: Duration,
    /// The index that is made now.
    pub index: Option<IndexStep>,
}

/// How far an index is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexStep {
    /// In the server's words.
    pub phase: String,
    /// Days that have it.
    pub days_done: u64,
    /// Days that there are.
    pub days: u64,
}

/// Hears how far a change is, and answers whether to go on.
pub type Watch<'w> = dyn FnMut(&Migration) -> bool + 'w;

impl Migration {
    pub(super) fn new(from: i64, to: i64) -> Migration {
        Migration {
            from,
            to,
            elapsed: Duration::ZERO,
            index: None,
        }
    }
}

/// `the tables go from version 1 to 2, for 35 s: an index has 12 of 400 days (building index: scanning table)`
impl fmt::Display for Migration {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Migration { from, to, .. } = self;
        let seconds = self.elapsed.as_secs();
        write!(
            f,
            "the tables go from version {from} to {to}, for {seconds} s"
        )?;
        match &self.index {
            Some(IndexStep {
                phase,
                days_done,
                days,
            }) => write!(f, ": an index has {days_done} of {days} days ({phase})"),
            None => Ok(()),
        }
    }
}

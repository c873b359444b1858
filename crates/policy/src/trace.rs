// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which flows are traced to files, and how large the files may become: the `[[trace]]` tables.
//!
//! Start at [`Trace`].

use crate::Match;
use serde::Serialize;
use std::path::PathBuf;

/// The most `[[trace]]` tables: each compares every sample.
pub const MAX_TRACES: usize = 16;
/// The most flows that one of them may trace at once.
pub const MAX_TRACED_FLOWS: u32 = 10_000;

/// A `[[trace]]` table; its default is what holds for keys that it leaves out.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Trace {
    /// Unique among the traces; 1 to 63 bytes of `[A-Za-z0-9._-]`, the first no `.`.
    pub name: String,
    /// Which flows.
    pub matches: Match,
    /// Of these, only flows of rules with these names; empty: whatever the rule, also none.
    pub rules: Vec<String>,
    /// Two samples of a flow are at least so far apart, except events; 0 = as often as the instruments sample.
    pub interval_us: u32,
    /// At once; others are counted as not traced. 1 to [`MAX_TRACED_FLOWS`].
    pub max_flows: u32,
    /// A file is finished at about this size, 1 MiB to 4 GiB.
    pub file_bytes: u64,
    /// All files of the trace together, 2 MiB to 16 TiB and at least two files; the oldest goes first.
    pub total_bytes: u64,
    /// So many files stay, 2 to 10,000.
    pub max_files: u32,
    /// Absolute, without `..`. The files are in a folder in it that has the trace's name.
    pub folder: PathBuf,
}

impl Default for Trace {
    fn default() -> Self {
        Trace {
            name: String::new(),
            matches: Match::default(),
            rules: Vec::new(),
            interval_us: 0,
            max_flows: 100,
            file_bytes: 64 << 20,
            total_bytes: 1 << 30,
            // The bound of bytes is the one that is meant by default: quiet traces fill small files.
            max_files: 10_000,
            folder: "/var/lib/fatpath/traces".into(),
        }
    }
}

impl Trace {
    /// Where its files are.
    pub fn own_folder(&self) -> PathBuf {
        self.folder.join(&self.name)
    }

    /// Whether flows of this rule (`None`: that matched none) may be meant.
    pub fn wants_rule(&self, rule: Option<&str>) -> bool {
        let is_named = |rule: &str| self.rules.iter().any(|name| name == rule);
        self.rules.is_empty() || rule.is_some_and(is_named)
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! How large a scenario may become: a file of a few lines can stand for millions of links.
//!
//! Pure. Everything that is made is added up while it is made, and refused when it is too much. Start
//! with [`Size`].

use std::cell::Cell;

use super::cells::entries;
use super::{Flow, Host, Link, Program, TimedChange};

/// The most cases of a file.
pub(super) const MOST_CASES: usize = 100_000;
/// The most paths, variants, programs and changes of a file, of each kind.
pub(super) const MOST_OF_A_KIND: usize = 1_000;
/// The most hosts and links of a case: a machine has one network.
pub(super) const MOST_HOSTS: usize = 1_000;
pub(super) const MOST_LINKS: usize = 4_000;
/// The most parts of all cases together; a part is a host, a link, a program or a change of usual
/// size, and takes about 600 bytes.
const MOST_PARTS: usize = 500_000;
const ENTRIES_OF_A_PART: usize = 50;
const BYTES_OF_A_PART: usize = 600;

/// What has been made so far.
#[derive(Default)]
pub(super) struct Size {
    parts: Cell<usize>,
}

impl Size {
    pub(super) fn add_host(&self, host: &Host) -> Result<(), String> {
        self.add(1 + host.sysctls.len())
    }

    pub(super) fn add_link(&self, link: &Link) -> Result<(), String> {
        let directions = link.directions.iter();
        let entries: usize = directions.map(|direction| entries(&direction.cells)).sum();
        self.add(1 + entries / ENTRIES_OF_A_PART)
    }

    pub(super) fn add_change(&self, change: &TimedChange) -> Result<(), String> {
        let directions = change.directions.iter();
        let entries: usize = directions.map(|direction| entries(&direction.cells)).sum();
        self.add(1 + entries / ENTRIES_OF_A_PART)
    }

    pub(super) fn add_program(&self, program: &Program) -> Result<(), String> {
        self.add(1 + program.run.len() / BYTES_OF_A_PART)
    }

    pub(super) fn add_flow(&self, flow: &Flow) -> Result<(), String> {
        self.add(flow.streams as usize)
    }

    /// So many values of placeholders, which every case has for itself while it is made.
    pub(super) fn add_values(&self, count: usize) -> Result<(), String> {
        self.add(count / 10)
    }

    fn add(&self, parts: usize) -> Result<(), String> {
        self.parts.set(self.parts.get() + parts);
        match self.parts.get() > MOST_PARTS {
            false => Ok(()),
            true => Err(format!(
                "the cases have more than {MOST_PARTS} hosts, links, programs and changes together; vary \
                 less, or write several scenarios"
            )),
        }
    }
}

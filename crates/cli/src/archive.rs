// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath archive`: what was archived, asked for by time, path, rule and kind.

mod import;
mod netlogger;
pub(crate) mod path;
mod query;
pub(crate) mod time;

use anyhow::Result;
use clap::{Args, Subcommand};
use fatpath_archive::store::SqliteStore;
use std::path::PathBuf;

pub const HELP: &str = "\
The daemon keeps an archive while its policy has a section [archive]. These
commands read its databases: root and members of the group fatpath may. A time
is a date (2026-11-23, 2026-11-23T10:15:00Z; UTC) or how long ago (90m, 7d).

Examples:
  fatpath archive query --since 1h --kind flow
  fatpath archive query --prefix 192.0.2.0/24 --since 7d --csv > flows.csv
  fatpath archive query --since 1d --netlogger > events.log
  fatpath archive path 192.0.2.0/24 --since 30d
  fatpath archive import /var/log/fatpath/flows.jsonl";

#[derive(Subcommand)]
pub enum Command {
    /// List events: ends of flows, findings, decisions
    Query(query::Arguments),
    /// Show what flows of a path measured over time, with the decisions and findings
    Path(path::Arguments),
    /// Store the lines of flow logs and event logs
    Import(import::Arguments),
}

/// Where the archive is.
#[derive(Args)]
pub struct Place {
    /// Directory of the archive
    #[arg(long, value_name = "DIR", default_value = "/var/lib/fatpath/archive")]
    pub archive: PathBuf,
}

impl Place {
    fn store(&self) -> SqliteStore {
        SqliteStore::at(&self.archive)
    }

    /// The store, where there is one.
    fn existing(&self) -> Result<SqliteStore> {
        let folder = self.archive.display();
        anyhow::ensure!(
            self.archive.is_dir(),
            "{folder}: no archive here; add a section [archive] to the policy, or import a log"
        );
        Ok(self.store())
    }
}

pub fn run(command: &Command) -> Result<()> {
    match command {
        Command::Query(arguments) => query::run(arguments),
        Command::Path(arguments) => path::run(arguments),
        Command::Import(arguments) => import::run(arguments),
    }
}

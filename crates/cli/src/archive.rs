// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath archive`: what was archived, asked for by time, path, rule and kind.

mod import;
mod migrate;
mod netlogger;
pub(crate) mod path;
mod query;
pub(crate) mod time;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use fatpath_archive::store::{Location, ServerAddress, Store};
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
  fatpath archive import /var/log/fatpath/flows.jsonl
  fatpath archive query --url postgres://fatpath@db.example/site \
      --password-file /etc/fatpath/archive.password --host node7";

#[derive(Subcommand)]
pub enum Command {
    /// List events: ends of flows, findings, decisions
    Query(query::Arguments),
    /// Show what flows of a path measured over time, with the decisions and findings
    Path(path::Arguments),
    /// Store the lines of flow logs and event logs
    Import(import::Arguments),
    /// Bring the tables of a PostgreSQL server to another version, forward or back
    Migrate(migrate::Arguments),
}

/// Where the archive is.
#[derive(Args)]
pub struct Place {
    /// Directory of the archive
    #[arg(long, value_name = "DIR", default_value = "/var/lib/fatpath/archive")]
    pub archive: PathBuf,
    #[command(flatten)]
    server: ServerPlace,
}

/// A store on a server, instead.
#[derive(Args)]
#[group(multiple = true)]
pub struct ServerPlace {
    /// PostgreSQL server that stores the events: postgres://USER@HOST/DATABASE, as in the policy
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// File that has the server's password, which others may not read
    #[arg(long, value_name = "FILE", requires = "url")]
    password_file: Option<PathBuf>,
}

impl ServerPlace {
    fn address(&self) -> Result<Option<ServerAddress>> {
        let url = self.url.as_ref();
        let address = url.map(|url| ServerAddress::new(url, self.password_file.as_deref()));
        let address = address.transpose().map_err(anyhow::Error::msg);
        address.context("--url")
    }
}

impl Place {
    fn location(&self) -> Result<Location> {
        let server = self.server.address()?.map(Location::Server);
        Ok(server.unwrap_or_else(|| Location::Folder(self.archive.clone())))
    }

    fn store(&self) -> Result<Box<dyn Store + Send>> {
        Ok(self.location()?.open()?)
    }

    /// The store, where there is one.
    fn existing(&self) -> Result<Box<dyn Store + Send>> {
        let folder = self.archive.display();
        anyhow::ensure!(
            self.location()?.may_exist(),
            "{folder}: no archive here; add a section [archive] to the policy, or import a log"
        );
        self.store()
    }
}

pub fn run(command: &Command) -> Result<()> {
    match command {
        Command::Query(arguments) => query::run(arguments),
        Command::Path(arguments) => path::run(arguments),
        Command::Import(arguments) => import::run(arguments),
        Command::Migrate(arguments) => migrate::run(arguments),
    }
}

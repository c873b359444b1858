// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath archive`: what was archived, asked for by time, path, rule and kind.

mod import;
mod latest;
mod migrate;
mod netlogger;
pub(crate) mod path;
mod plot;
mod query;
pub(crate) mod time;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use fatpath_archive::store::{Location, ServerAddress, Store, StoreError, Watch};
use fatpath_daemon::read_policy_file;
use fatpath_policy::ArchiveServer;
use indicatif::{ProgressBar, ProgressStyle};
use std::path::{Path, PathBuf};

pub const HELP: &str = "\
The daemon keeps an archive while its policy has a section [archive]. These
commands read its databases, and `latest` asks the daemon: root and members of
the group fatpath may. A time
is a date (2026-11-23, 2026-11-23T10:15:00Z; UTC) or how long ago (90m, 7d).

Where the policy file has `[archive] url`, its server is asked, for the events
of all hosts (--host NAME: of one). --archive asks the files of a directory, and
--url another server.

Examples:
  fatpath archive query --since 1h --kind flow
  fatpath archive query --prefix 192.0.2.0/24 --since 7d --csv > flows.csv
  fatpath archive query --since 1d --netlogger > events.log
  fatpath archive path 192.0.2.0/24 --since 30d
  fatpath archive latest 192.0.2.0/24
  fatpath archive import /var/log/fatpath/flows.jsonl
  fatpath archive query --archive /mnt/old/archive --since 30d
  fatpath archive query --url postgres://fatpath@db.example/site \
      --password-file /etc/fatpath/archive.password --host node7";

/// Without a server.
const FOLDER: &str = "/var/lib/fatpath/archive";

#[derive(Subcommand)]
pub enum Command {
    /// List events: ends of flows, findings, decisions
    Query(query::Arguments),
    /// Show what flows of a path measured over time, with the decisions and findings
    Path(path::Arguments),
    /// Show what was archived last of each path and test, from the daemon's memory
    #[command(after_help = latest::HELP)]
    Latest(latest::Arguments),
    /// Store the lines of flow logs and event logs
    Import(import::Arguments),
    /// Bring the tables of a PostgreSQL server to another version, forward or back
    Migrate(migrate::Arguments),
}

/// Where the archive is.
#[derive(Args)]
pub struct Place {
    /// Directory of the archive [default: the policy's server, or else /var/lib/fatpath/archive]
    #[arg(long, value_name = "DIR", conflicts_with_all = ["url", "policy"])]
    archive: Option<PathBuf>,
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
    /// Policy file whose `[archive] url` is taken where no --url is given
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/etc/fatpath/policy.toml",
        conflicts_with = "url"
    )]
    policy: PathBuf,
}

impl ServerPlace {
    /// The one that is given, or else the policy's.
    fn address(&self) -> Result<Option<ServerAddress>> {
        if let Some(url) = &self.url {
            return address(url, self.password_file.as_deref()).context("--url");
        }
        let policy = self.policy.display();
        if !self.policy.try_exists().unwrap_or(true) {
            return Ok(None);
        }
        let read = read_policy_file(&self.policy).with_context(|| {
            format!("{policy} may say where the archive is; or give --archive or --url")
        });
        match read?.archive.and_then(|archive| archive.server) {
            Some(ArchiveServer { url, password_file }) => {
                address(&url, password_file.as_deref()).with_context(|| policy.to_string())
            }
            None => Ok(None),
        }
    }
}

fn address(url: &str, password_file: Option<&Path>) -> Result<Option<ServerAddress>> {
    let address = ServerAddress::new(url, password_file);
    address.map(Some).map_err(anyhow::Error::msg)
}

impl Place {
    fn location(&self) -> Result<Location> {
        if let Some(folder) = &self.archive {
            return Ok(Location::Folder(folder.clone()));
        }
        let server = self.server.address()?.map(Location::Server);
        Ok(server.unwrap_or_else(|| Location::Folder(FOLDER.into())))
    }

    /// The store, to write.
    fn store(&self) -> Result<Box<dyn Store + Send>> {
        let mut store = self.location()?.open()?;
        with_progress(|watch| store.prepare(watch))?;
        Ok(store)
    }

    /// The store, where there is one.
    pub(crate) fn existing(&self) -> Result<Box<dyn Store + Send>> {
        let location = self.location()?;
        if let Location::Folder(folder) = &location {
            anyhow::ensure!(
                location.may_exist(),
                "{}: no archive here; add a section [archive] to the policy, or import a log",
                folder.display()
            );
        }
        Ok(location.open()?)
    }
}

/// Shows on a terminal how far a change of a server's tables is.
fn with_progress<T>(
    change: impl FnOnce(&mut Watch) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let style = ProgressStyle::with_template("{msg}").expect("a valid template");
    let bar = ProgressBar::new_spinner().with_style(style);
    let changed = change(&mut |migration| {
        bar.set_message(migration.to_string());
        true
    });
    bar.finish_and_clear();
    changed
}

pub fn run(command: &Command) -> Result<()> {
    match command {
        Command::Query(arguments) => query::run(arguments),
        Command::Path(arguments) => path::run(arguments),
        Command::Latest(arguments) => latest::run(arguments),
        Command::Import(arguments) => import::run(arguments),
        Command::Migrate(arguments) => migrate::run(arguments),
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath archive migrate`.

use super::ServerPlace;
use anyhow::{Context, Result, ensure};
use clap::Args;
use fatpath_archive::store::{Location, PostgresStore, SCHEMA_VERSION};
use indicatif::{ProgressBar, ProgressStyle};

#[derive(Args)]
pub struct Arguments {
    /// Version of the tables [default: the one that this fatpath writes]
    #[arg(long, value_name = "VERSION", default_value_t = SCHEMA_VERSION, hide_default_value = true)]
    to: i64,
    /// Allow version 0: every archived event goes
    #[arg(long)]
    remove_everything: bool,
    #[command(flatten)]
    server: ServerPlace,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let to = arguments.to;
    ensure!(
        to != 0 || arguments.remove_everything,
        "version 0 has no tables: give --remove-everything to remove all events"
    );
    let address = arguments.server.address()?;
    let address = address
        .context("give --url, as the policy has no server: files of this host need no migration")?;
    // On a terminal.
    let style = ProgressStyle::with_template("{msg}").expect("a valid template");
    let bar = ProgressBar::new_spinner().with_style(style);
    let mut store = PostgresStore::at(address, Location::DEADLINE)?;
    let from = store.migrate(to, &mut |migration| {
        bar.set_message(migration.to_string());
        true
    })?;
    bar.finish_and_clear();
    match from == to {
        true => println!("The tables are of version {to} already."),
        false => println!("The tables are of version {to} now; they were of version {from}."),
    }
    Ok(())
}

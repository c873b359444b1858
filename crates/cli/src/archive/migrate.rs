// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath archive migrate`.

use super::{ServerPlace, with_progress};
use anyhow::{Context, Result, ensure};
use clap::Args;
use fatpath_archive::store::{Location, PostgresStore, SCHEMA_VERSION};

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
    let mut store = PostgresStore::at(address, Location::DEADLINE)?;
    let from = with_progress(|watch| store.migrate(to, watch))?;
    match from == to {
        true => println!("The tables are of version {to} already."),
        false => println!("The tables are of version {to} now; they were of version {from}."),
    }
    Ok(())
}

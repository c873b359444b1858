// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath lab` alone: `cargo run -p fatpath-lab --example lab -- lab run FILE`. The tests of this
//! crate drive it; it has no daemon, so variants with a policy do not come up.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use fatpath_lab::cli::LabCommand;

#[derive(Parser)]
struct Command {
    #[command(subcommand)]
    room: Room,
}

#[derive(Subcommand)]
enum Room {
    #[command(subcommand)]
    Lab(LabCommand),
}

fn main() -> ExitCode {
    let Room::Lab(command) = Command::parse().room;
    command.run().unwrap_or_else(|error| {
        eprintln!("fatpath: {error:#}");
        ExitCode::FAILURE
    })
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath lab`, `fatpath sim` and `fatpath flow` alone: `cargo run -p fatpath-testbed --example lab -- lab run FILE`. The
//! tests of this crate drive it; it has no daemon, so variants with a policy do not come up in the lab.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use fatpath_experiment::simulate::cli::Simulate;
use fatpath_scenario::Refused;
use fatpath_testbed::cli::LabCommand;

#[derive(Parser)]
struct Command {
    #[command(subcommand)]
    command: Group,
}

#[derive(Subcommand)]
enum Group {
    #[command(subcommand)]
    Lab(LabCommand),
    #[command(subcommand)]
    Flow(fatpath_flow::cli::Command),
    Sim(Simulate),
}

fn main() -> ExitCode {
    let done = match Command::parse().command {
        Group::Lab(command) => command.run(),
        Group::Flow(command) => fatpath_flow::cli::run(&command).map(|()| ExitCode::SUCCESS),
        Group::Sim(arguments) => arguments.run(),
    };
    done.unwrap_or_else(|error| {
        let refused = error
            .chain()
            .find_map(|cause| cause.downcast_ref::<Refused>());
        match refused {
            Some(refused) => eprintln!("fatpath: {refused}"),
            None => eprintln!("fatpath: {error:#}"),
        }
        ExitCode::FAILURE
    })
}

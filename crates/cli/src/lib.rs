// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line: parses it, calls the crate that does the work, prints what it
//! answers. Exit status: 0, 1 it failed, 2 wrong usage, 3 (`status`) no daemon runs.

mod archive;
mod arguments;
mod capture;
mod completions;
mod doctor;
#[cfg(test)]
mod documents;
mod failure;
mod flows;
mod forecast;
mod interval;
mod log;
mod man;
mod measure;
mod mistaken;
mod not_running;
mod observed;
mod one_flow;
mod page;
mod paths;
mod phases;
mod police;
mod policy;
mod rude;
mod send;
mod status;
mod top;
mod trace;
mod try_path;
mod tune;
mod why;

use arguments::{Arguments, Command};
use clap::{CommandFactory, FromArgMatches};
use std::process::ExitCode;

/// Does what the process was asked for.
pub fn main() -> ExitCode {
    let matches = Arguments::command().try_get_matches();
    let matches = matches.unwrap_or_else(|error| mistaken::exit(&error));
    let as_json = failure::wants_json(&matches);
    let arguments = Arguments::from_arg_matches(&matches);
    let arguments = arguments.unwrap_or_else(|error| mistaken::exit(&error));
    let log = log::open();
    match run(arguments.command) {
        Ok(code) => code,
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            failure::tell(&error, log, as_json);
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Daemon(options) => fatpath_daemon::run(&options)?,
        Command::Policy(command) => policy::run(command)?,
        Command::ImportWad(arguments) => policy::import_wad(&arguments)?,
        Command::Flows(arguments) => flows::run(&arguments)?,
        Command::Tune(arguments) => tune::run(&arguments)?,
        Command::Top(arguments) => top::run(&arguments)?,
        Command::Why(arguments) => why::run(&arguments)?,
        Command::Status(arguments) => return status::status(&arguments),
        Command::Try(arguments) => try_path::run(&arguments)?,
        Command::Doctor(arguments) => return doctor::run(&arguments),
        Command::Page(arguments) => page::run(&arguments)?,
        Command::Unload(arguments) => return status::unload(&arguments),
        Command::Archive(command) => archive::run(&command)?,
        Command::Measure(command) => return measure::run(&command),
        Command::Analyse(arguments) => return fatpath_analyse::run(&arguments),
        Command::Capture(arguments) => return capture::run(&arguments),
        Command::Paths(arguments) => paths::run(&arguments)?,
        Command::Phases(arguments) => phases::run(&arguments)?,
        Command::Model(command) => fatpath_theory::run(&command)?,
        Command::Trace(arguments) => trace::run(&arguments)?,
        Command::Rude(command) => rude::run(command)?,
        Command::Police(arguments) => police::run(arguments)?,
        Command::Send(arguments) => return send::run(&arguments),
        Command::Recv(arguments) => return fatpath_mover::cli::run_recv(&arguments),
        Command::Flow(command) => fatpath_flow::cli::run(&command)?,
        Command::Keys(command) => fatpath_peer::cli::run(&command)?,
        Command::Lab(command) => return command.run(),
        Command::Gap(command) => return command.run(),
        Command::Sim(arguments) => return arguments.run(),
        Command::Completions(arguments) => completions::run(&arguments, Arguments::command())?,
        Command::Man(arguments) => man::run(&arguments, Arguments::command())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// `fatpath flows | head` is no failure.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
}

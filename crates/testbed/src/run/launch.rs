// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a run starts: the scenario's own programs; those that make its flows are in `flows.rs`.
//!
//! Pure. Start with [`Launch`].

use std::time::Duration;

use fatpath_scenario::command::CommandError;
use fatpath_scenario::plan::Plan;
use fatpath_scenario::{Case, Program, ResultKind};

use super::CaseError;
use crate::program::Ready;

/// A program that is to be started, its placeholders filled in.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Launch {
    /// The host it runs on.
    pub(super) host: String,
    /// The command, not empty.
    pub(super) words: Vec<String>,
    /// The host with which it exchanges data, if that is known.
    pub(super) peer: Option<String>,
    /// It serves the others; when it does.
    pub(super) ready: Option<Ready>,
    /// Its output gives the case's result.
    pub(super) result: Option<ResultKind>,
    /// When it is killed, and the run has failed.
    pub(super) time_limit: Duration,
    /// When it begins to send, from its start.
    pub(super) start: Duration,
    /// When it is asked to end before it has done all; `None`: it is not.
    pub(super) stop: Option<Stop>,
}

/// What a program has done when it is asked to end counts, as its server saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stop {
    /// After its start.
    pub(super) after: Duration,
    /// The port of the server.
    pub(super) server_port: u16,
}

/// The scenario's own programs.
///
/// # Errors
/// A command that cannot be used.
pub(super) fn programs(case: &Case, plan: &Plan) -> Result<Vec<Launch>, CaseError> {
    let programs = case.programs.iter().enumerate();
    let programs = programs.map(|(index, program)| {
        of_program(program, plan).map_err(|error| CaseError::Command {
            label: format!("program {} on {}", index + 1, program.host),
            error,
        })
    });
    programs.collect()
}

fn of_program(program: &Program, plan: &Plan) -> Result<Launch, CommandError> {
    Ok(Launch {
        host: program.host.clone(),
        words: plan.words(program)?,
        peer: plan.peer(program).map(|host| host.name.clone()),
        ready: program.ready_port.map(Ready::Port),
        result: program.result,
        time_limit: program.time_limit,
        start: Duration::ZERO,
        stop: None,
    })
}

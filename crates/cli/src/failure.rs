// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a command says that it failed: a line for each error, as editors read them, and with `--json` the same
//! as JSON on standard output. Every line is `fatpath: FILE:LINE:COLUMN: error: …`, or `fatpath: error: …` where the
//! error is of no file.

use crate::log::Log;
use clap::ArgMatches;
use fatpath_policy::{Problem, Refused};
use fatpath_units::show_count;
use serde::Serialize;
use std::io::{Write, stdout};

/// What `--json` prints of a failure.
#[derive(Serialize)]
struct Failure<'e> {
    errors: Vec<OneError<'e>>,
}

/// An error of a file has its place.
#[derive(Serialize)]
#[serde(untagged)]
enum OneError<'e> {
    InFile {
        file: &'e str,
        #[serde(flatten)]
        problem: &'e Problem,
    },
    Plain {
        message: String,
    },
}

/// Whether the command that was asked for has `--json`, and it was given.
pub fn wants_json(matches: &ArgMatches) -> bool {
    let given = matches.try_get_one::<bool>("json");
    let below = matches.subcommand();
    matches!(given, Ok(Some(true))) || below.is_some_and(|(_, below)| wants_json(below))
}

/// Says why the command failed.
pub fn tell(error: &anyhow::Error, log: Log, as_json: bool) {
    for line in lines(error) {
        match log {
            Log::Journal => tracing::error!("{line}"),
            Log::Stderr => eprintln!("fatpath: {line}"),
        }
    }
    if as_json {
        let errors = errors(error);
        print(&Failure { errors }, &mut stdout());
    }
}

/// The same for a wrong command line; JSON has the first paragraph of `message`. `json` is where JSON is wanted.
pub fn tell_usage_error(message: &str, json: Option<&mut dyn Write>) {
    eprintln!("fatpath: error: {}", message.trim_end());
    if let Some(output) = json {
        let first = message.lines().take_while(|line| !line.is_empty());
        let message = first.map(str::trim).collect::<Vec<_>>().join(" ");
        let errors = vec![OneError::Plain { message }];
        print(&Failure { errors }, output);
    }
}

/// One line, so that it also fits behind the lines of `--watch`.
fn print(failure: &Failure, output: &mut dyn Write) {
    let json = serde_json::to_string(failure).unwrap_or_default();
    // Nobody is left to be told that nobody reads.
    let _ = writeln!(output, "{json}");
}

fn lines(error: &anyhow::Error) -> Vec<String> {
    let Some(refused) = refused(error) else {
        return vec![format!("error: {}", with_causes(error))];
    };
    let count = show_count(refused.problems.len(), "error");
    let mut lines = refused.lines();
    lines.push(format!("{}: {count}", refused.file));
    lines
}

fn errors(error: &anyhow::Error) -> Vec<OneError<'_>> {
    let Some(refused) = refused(error) else {
        return vec![OneError::Plain {
            message: with_causes(error),
        }];
    };
    let file = &refused.file;
    let problems = refused.problems.iter();
    problems
        .map(|problem| OneError::InFile { file, problem })
        .collect()
}

fn refused(error: &anyhow::Error) -> Option<&Refused> {
    error.chain().find_map(|cause| cause.downcast_ref())
}

/// The error and its causes; a cause that the one before it already contains is not repeated.
fn with_causes(error: &anyhow::Error) -> String {
    let causes = error.chain().map(ToString::to_string);
    causes
        .reduce(|text, cause| match text.contains(&cause) {
            true => text,
            false => format!("{text}: {cause}"),
        })
        .unwrap_or_default()
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath doctor`: whether this host is fit for fatpath. What is good and bad, `fatpath-doctor` decides.

mod facts;
mod rights;
mod rivals;

use crate::try_path::{Probe, Tried};
use anyhow::Result;
use clap::Args;
use fatpath_daemon::InstanceOptions;
use fatpath_doctor::{Level, Report, judge};
use serde::Serialize;
use std::io::{Write, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

pub const HELP: &str = "\
Changes nothing, and needs no root: what it cannot see without, it reports as
`unseen`. docs/install.md explains each check.

Exit status: 0 nothing is bad; 1 something is; 2 wrong usage.

Examples:
  sudo fatpath doctor
  sudo fatpath doctor far.example
  fatpath doctor --policy ./policy.toml
  fatpath doctor --json | jq '.checks[] | select(.level == \"bad\")'";

#[derive(Args)]
pub struct Arguments {
    /// Also try the path to this host, as `fatpath try` does
    #[arg(value_name = "DEST")]
    destination: Option<String>,
    /// Policy file
    #[arg(long, value_name = "FILE", default_value = "/etc/fatpath/policy.toml")]
    policy: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    instance: InstanceOptions,
}

/// The host, and the path that was asked for.
#[derive(Serialize)]
struct Whole {
    #[serde(flatten)]
    report: Report,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<Tried>,
}

/// Exit status 1 when something is bad.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let report = judge(&facts::read(&arguments.instance, &arguments.policy)?);
    let bad = report.count(Level::Bad);
    let destination = arguments.destination.as_ref();
    let path = destination.map(|destination| Probe::of(destination, &arguments.instance).run());
    let path = path.transpose()?;
    let text = match arguments.json {
        true => serde_json::to_string_pretty(&Whole { report, path })? + "\n",
        false => format!(
            "{report}{}",
            path.map_or(String::new(), |it| format!("\n{it}"))
        ),
    };
    stdout().write_all(text.as_bytes())?;
    Ok(match bad {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

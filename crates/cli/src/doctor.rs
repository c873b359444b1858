// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath doctor`: whether this host is fit for fatpath. What is good and bad, `fatpath-doctor` decides.

mod facts;
mod rights;
mod rivals;

use anyhow::Result;
use clap::Args;
use fatpath_daemon::InstanceOptions;
use fatpath_doctor::{Level, judge};
use std::io::{Write, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

pub const HELP: &str = "\
Changes nothing, and needs no root: what it cannot see without, it reports as
`unseen`. docs/install.md explains each check.

Exit status: 0 nothing is bad; 1 something is; 2 wrong usage.

Examples:
  sudo fatpath doctor
  fatpath doctor --policy ./policy.toml
  fatpath doctor --json | jq '.checks[] | select(.level == \"bad\")'";

#[derive(Args)]
pub struct Arguments {
    /// Policy file
    #[arg(long, value_name = "FILE", default_value = "/etc/fatpath/policy.toml")]
    policy: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    instance: InstanceOptions,
}

/// Exit status 1 when something is bad.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let report = judge(&facts::read(&arguments.instance, &arguments.policy)?);
    let text = match arguments.json {
        true => serde_json::to_string_pretty(&report)? + "\n",
        false => report.to_string(),
    };
    stdout().write_all(text.as_bytes())?;
    Ok(match report.count(Level::Bad) {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

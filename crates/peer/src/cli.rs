// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath keys`: this end's key, and the keys that it trusts.

#![allow(missing_docs)] // a comment would become the text of --help

use crate::{CALLERS, HOSTS, KEY, Key, PublicKey, Trusted, add, in_configuration, or_configured};
use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use fatpath_table::write_table;
use serde_json::{Value, json};
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};

pub const HELP: &str = "\
`fatpath recv --listen` and `fatpath measure respond` serve no strangers: each
end has a key, and a file of the keys that it trusts, in ~/.config/fatpath, for
root in /etc/fatpath. docs/mover.md shows the exchange of keys.

Examples:
  fatpath keys new
  fatpath keys show
  fatpath keys trust host ed25519:AAAA… dtn2
  fatpath keys trust caller ed25519:BBBB… dtn1
  fatpath keys list --json";

#[derive(Subcommand)]
pub enum Command {
    /// Make a key, and print its public half
    New(KeyArguments),
    /// Print the public half of the key
    Show(KeyArguments),
    /// Trust a key: of a host to connect to, or of a caller who may connect to this host
    Trust(TrustArguments),
    /// List the keys that are trusted
    List(ListArguments),
}

#[derive(Args)]
pub struct KeyArguments {
    /// File of the key [default: key in ~/.config/fatpath, for root in /etc/fatpath]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub struct TrustArguments {
    /// Whose key it is
    whose: Whose,
    /// The key, as `fatpath keys show` prints it at the other end
    key: String,
    /// Name of the host, as commands are given it, or any name of the caller, for the log
    name: String,
    /// File of trusted keys [default: known_hosts or authorized_keys, in the directory of the default key]
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub struct ListArguments {
    /// File of trusted keys, instead of known_hosts and authorized_keys
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Whose {
    /// A host to which this one connects
    Host,
    /// A host or user who connects to this one
    Caller,
}

pub fn run(command: &Command) -> Result<()> {
    match command {
        Command::New(arguments) => show(&Key::make(&arguments.file()?)?, arguments.json),
        Command::Show(arguments) => show(&Key::read(&arguments.file()?)?, arguments.json),
        Command::Trust(arguments) => trust(arguments),
        Command::List(arguments) => list(arguments),
    }
}

impl KeyArguments {
    fn file(&self) -> Result<PathBuf> {
        Ok(or_configured(self.key.as_deref(), KEY)?)
    }
}

fn show(key: &Key, as_json: bool) -> Result<()> {
    let public = key.public().to_string();
    let mut out = stdout().lock();
    match as_json {
        true => print_json(&json!({ "public_key": public })),
        false => Ok(writeln!(out, "{public}")?),
    }
}

fn trust(arguments: &TrustArguments) -> Result<()> {
    let key: PublicKey = arguments.key.parse()?;
    let name = match arguments.whose {
        Whose::Host => HOSTS,
        Whose::Caller => CALLERS,
    };
    let file = or_configured(arguments.trust.as_deref(), name)?;
    let is_new = add(&file, &key, &arguments.name)?;
    let shown = file.display();
    if arguments.json {
        let line = line(&file, &key, &arguments.name);
        return print_json(&json!({ "trusted": line, "is_new": is_new }));
    }
    let text = match is_new {
        true => format!("{shown}: trusts {key} as {}", arguments.name),
        false => format!("{shown}: trusted {key} as {} already", arguments.name),
    };
    Ok(writeln!(stdout().lock(), "{text}")?)
}

fn list(arguments: &ListArguments) -> Result<()> {
    let files = match &arguments.trust {
        Some(file) => vec![file.clone()],
        None => vec![in_configuration(HOSTS)?, in_configuration(CALLERS)?],
    };
    let mut lines = vec![];
    for file in files {
        let trusted = Trusted::read(&file)?;
        lines.extend(
            trusted
                .lines()
                .iter()
                .map(|(key, name)| (file.clone(), *key, name.clone())),
        );
    }
    if arguments.json {
        let lines = lines.iter().map(|(file, key, name)| line(file, key, name));
        return print_json(&lines.collect());
    }
    let rows = lines.into_iter();
    let rows = rows.map(|(file, key, name)| [name, key.to_string(), file.display().to_string()]);
    let header = ["name", "key", "file"].map(str::to_owned);
    Ok(write_table(&mut stdout(), header, rows)?)
}

fn line(file: &Path, key: &PublicKey, name: &str) -> Value {
    json!({ "file": file, "key": key.to_string(), "name": name })
}

fn print_json(value: &Value) -> Result<()> {
    Ok(writeln!(
        stdout().lock(),
        "{}",
        serde_json::to_string_pretty(value)?
    )?)
}

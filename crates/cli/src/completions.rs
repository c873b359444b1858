// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath completions`: what completes the command line in a shell.

use crate::arguments;
use anyhow::Result;
use clap::{Args, CommandFactory, ValueEnum};
use clap_complete::generate;
use std::io::{Write, stdout};

pub const HELP: &str = "\
`make install` and the Debian package put these where the shells look.

Examples:
  source <(fatpath completions bash)
  fatpath completions zsh >\"${fpath[1]}/_fatpath\"
  fatpath completions fish >~/.config/fish/completions/fatpath.fish";

#[derive(Args)]
pub struct Arguments {
    /// Shell
    shell: Shell,
}

#[derive(Clone, Copy, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let shell = match arguments.shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Zsh => clap_complete::Shell::Zsh,
        Shell::Fish => clap_complete::Shell::Fish,
    };
    let mut text = Vec::new();
    let mut command = arguments::Arguments::command();
    generate(shell, &mut command, "fatpath", &mut text);
    Ok(stdout().write_all(&text)?)
}

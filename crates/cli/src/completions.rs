// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath completions`: what completes the command line in a shell.

use anyhow::Result;
use clap::{Args, Command, ValueEnum};
use clap_complete::generate;
use std::io::{Write, stdout};

pub const HELP: &str = "\
`make install` and the packages put these where the shells look.

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

/// Those of `command`, the whole command line.
pub fn run(arguments: &Arguments, mut command: Command) -> Result<()> {
    let shell = match arguments.shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Zsh => clap_complete::Shell::Zsh,
        Shell::Fish => clap_complete::Shell::Fish,
    };
    let mut text = Vec::new();
    generate(shell, &mut command, "fatpath", &mut text);
    Ok(stdout().write_all(&text)?)
}

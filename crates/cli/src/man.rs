// SPDX-License-Identifier: MIT OR Apache-2.0
//! The man pages, from the same definitions as `--help`.

use crate::arguments::Arguments;
use anyhow::{Context, Result};
use clap::CommandFactory;
use std::path::Path;

/// Writes `fatpath.1` and a page for each subcommand.
pub fn write(directory: &Path) -> Result<()> {
    std::fs::create_dir_all(directory)?;
    clap_mangen::generate_to(Arguments::command(), directory)
        .with_context(|| format!("cannot write into {}", directory.display()))
}

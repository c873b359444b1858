// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rules of the repository, and its generators, as code.
//!
//! `cargo xtask abi` writes the Rust twin of bpf/include/abi.h; `cargo xtask check`
//! fails when the twin differs, when a source file lacks its licence line, or when a
//! crate that must be pure names a clock, a socket or a file.

mod abi;
mod rules;

use anyhow::{Result, bail};
use std::path::PathBuf;

fn main() -> Result<()> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .canonicalize()?;
    match std::env::args().nth(1).as_deref() {
        Some("abi") => abi::write(&root),
        Some("check") => {
            abi::check(&root)?;
            rules::check(&root)
        }
        _ => bail!("usage: cargo xtask abi | check"),
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rules of the repository, and its generators, as code.
//!
//! `cargo xtask abi` writes the Rust twins of bpf/include/abi.h, of setting_table.h and of the laws, `cargo xtask
//! docs` the table of settings in docs/policy.md, `cargo xtask openapi` the document of the HTTP API; `cargo xtask
//! check` fails when one of them differs, when a source file lacks its licence line, when a comment or document
//! cites a file that is not there or docs/promises.md a test, when a link leads nowhere, when a pure crate depends on what it may not, when modules depend on one another
//! in a circle, or when a crate is larger than 6,500 lines; `cargo xtask book` fails when a link of the book leads nowhere; `cargo xtask modules` prints how large each crate and its largest circle are; `cargo xtask test`
//! runs all tests on this host, `cargo xtask kernels` those of the kernel under other kernels; `cargo xtask papers` runs
//! the commands of docs/papers.md.

mod abi;
mod book;
mod citations;
mod kernels;
mod laws;
mod links;
mod modules;
mod openapi;
mod papers;
mod programs;
mod promises;
mod purity;
mod rules;
mod settings;
mod shell;
mod tally;
mod tests;
mod twin;

use anyhow::{Result, bail};
use std::path::PathBuf;
use std::process::ExitCode;

const TWINS: [twin::Twin; 2] = [abi::ABI, laws::LAWS];

/// The message alone: the end of a log is what is read of it, and a backtrace would fill it.
fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .canonicalize()?;
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.first().map(String::as_str) {
        Some("abi") => {
            TWINS.iter().try_for_each(|twin| twin.write(&root))?;
            settings::write(&root)
        }
        Some("docs") => settings::write_manual(&root),
        Some("check") => {
            TWINS.iter().try_for_each(|twin| twin.check(&root))?;
            settings::check(&root)?;
            openapi::check(&root)?;
            rules::check(&root)
        }
        Some("book") => book::check(&root),
        Some("openapi") => openapi::write(&root),
        Some("modules") => modules::print(&root, &words[1..]),
        Some("test") => tests::test(&root, &words[1..]),
        Some("papers") => papers::papers(&root, &words[1..]),
        Some("kernels") => kernels::kernels(&root, &words[1..]),
        _ => bail!(
            "usage: cargo xtask abi | docs | openapi | check | book | modules [CRATE...] | test [long | kernels] \
             | kernels [VERSION...] [-- TEST ARGUMENTS] | papers [--list] [--fresh] [WORD...]"
        ),
    }
}

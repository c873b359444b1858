// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes crates/api/openapi.json from the types of crates/api.
//!
//! An example of that crate prints the document. It is run, not linked: with the feature that it needs,
//! every crate above the API would be built a second time.

use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::Command;

const DOCUMENT: &str = "crates/api/openapi.json";

const PRINT: [&str; 8] = [
    "run",
    "--quiet",
    "--locked",
    "--package=fatpath-api",
    "--features=document",
    "--example=openapi",
    "--color=never",
    "--",
];

/// Writes the document.
pub fn write(root: &Path) -> Result<()> {
    std::fs::write(root.join(DOCUMENT), generate(root)?).context(DOCUMENT)
}

/// Fails when the document is not what the types give.
pub fn check(root: &Path) -> Result<()> {
    let document = std::fs::read_to_string(root.join(DOCUMENT)).context(DOCUMENT)?;
    ensure!(
        document == generate(root)?,
        "{DOCUMENT} differs from the types of crates/api: run `cargo xtask openapi`, then `npm run types` in web/"
    );
    Ok(())
}

fn generate(root: &Path) -> Result<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    let output = command.args(PRINT).current_dir(root).output();
    let output = output.context("cargo prints the document")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "the document: {said}");
    String::from_utf8(output.stdout).context("the document is no text")
}

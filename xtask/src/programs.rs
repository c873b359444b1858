// SPDX-License-Identifier: MIT OR Apache-2.0
//! The test programs of the workspace, and the programs that they start, built by cargo.

use crate::shell::output;
use anyhow::{Result, ensure};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program that cargo built.
pub struct Program {
    /// The name of its target.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// The folder of its package, in which cargo would run it.
    pub folder: PathBuf,
    /// What it is.
    pub kind: Kind,
}

/// What cargo builds for the tests.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Tests within a library or a program.
    UnitTests,
    /// A test of its own, below `tests/`.
    IntegrationTest,
    /// What integration tests start.
    Binary,
}

/// Builds all test programs. One selection of packages for every use: cargo builds the dependencies of another
/// selection with other features, and so a second time.
pub fn build(root: &Path) -> Result<Vec<Program>> {
    let mut cargo = Command::new("cargo");
    cargo.args(["test", "--no-run", "--locked", "--workspace"]);
    cargo.arg("--message-format=json-render-diagnostics");
    let messages = output(cargo.current_dir(root))?;
    let programs: Vec<Program> = messages.lines().filter_map(program).collect();
    ensure!(
        programs.iter().any(|p| p.kind == Kind::IntegrationTest),
        "cargo built no test"
    );
    Ok(programs)
}

fn program(message: &str) -> Option<Program> {
    let message: Value = serde_json::from_str(message).ok()?;
    let path = PathBuf::from(message["executable"].as_str()?);
    let target = &message["target"];
    let kind = match (
        target["kind"][0].as_str()?,
        message["profile"]["test"].as_bool()?,
    ) {
        ("test", _) => Kind::IntegrationTest,
        (_, true) => Kind::UnitTests,
        ("bin", false) => Kind::Binary,
        _ => return None,
    };
    let manifest = Path::new(message["manifest_path"].as_str()?);
    Some(Program {
        name: target["name"].as_str()?.to_owned(),
        path,
        folder: manifest.parent()?.to_path_buf(),
        kind,
    })
}

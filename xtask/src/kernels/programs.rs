// SPDX-License-Identifier: MIT OR Apache-2.0
//! The test programs that go into a guest, built by cargo on the host.

use super::shell::output;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Packages whose integration tests are tests of the kernel.
const PACKAGES: [&str; 2] = ["fatpath-cli", "fatpath-kernel"];

/// Tests that go over an emulated path: it is itself a program, and an emulated processor is too
/// slow for its packets.
const LEFT_OUT: [&str; 2] = ["laws", "transfers"];

/// A program that cargo built.
pub struct Program {
    /// The name of its target.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// Where cargo would run it.
    pub folder: PathBuf,
    /// A test, not a program that tests start.
    pub is_test: bool,
}

/// Builds the tests of the kernel and the programs they start.
pub fn build(root: &Path) -> Result<Vec<Program>> {
    let mut cargo = Command::new("cargo");
    cargo.args(["test", "--no-run", "--locked", "--test", "*"]);
    cargo.arg("--message-format=json-render-diagnostics");
    for package in PACKAGES {
        cargo.args(["--package", package]);
    }
    let messages = output(cargo.current_dir(root))?;
    let programs: Vec<Program> = messages.lines().filter_map(program).collect();
    ensure!(
        programs.iter().any(|program| program.is_test),
        "cargo built no test"
    );
    Ok(programs)
}

fn program(message: &str) -> Option<Program> {
    let message: Value = serde_json::from_str(message).ok()?;
    let path = PathBuf::from(message["executable"].as_str()?);
    let target = &message["target"];
    let manifest = Path::new(message["manifest_path"].as_str()?);
    Some(Program {
        name: target["name"].as_str()?.to_owned(),
        path,
        folder: manifest.parent()?.to_path_buf(),
        is_test: target["kind"][0] == "test" && !LEFT_OUT.contains(&target["name"].as_str()?),
    })
}

/// The job of a guest: every test, one after the other, each with its status.
pub fn job(programs: &[Program], arguments: &[String]) -> Result<String> {
    let mut job = String::from("#!/bin/sh\n");
    for test in programs.iter().filter(|program| program.is_test) {
        let path = test.path.to_str().context("a path of plain text")?;
        let folder = test.folder.to_str().context("a path of plain text")?;
        let arguments: Vec<String> = arguments.iter().map(|word| quoted(word)).collect();
        job += &format!(
            "mkdir -p {folder}; cd {folder}\necho '== test {}'\n{path} --show-output {}\necho \"== status $?\"\n",
            test.name,
            arguments.join(" "),
            folder = quoted(folder),
            path = quoted(path),
        );
    }
    job += &format!("echo '{}'\n", super::machine::END);
    Ok(job)
}

/// The job that is one command, with the programs of this workspace in its path.
pub fn command(programs: &[Program], words: &[String]) -> Result<String> {
    let folders = programs.iter().filter(|program| !program.is_test);
    let folders: Vec<_> = folders
        .filter_map(|program| program.path.parent())
        .collect();
    let path = std::env::join_paths([&folders[..], &[Path::new("/usr/bin")]].concat())?;
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    Ok(format!(
        "#!/bin/sh\nexport PATH={}\n{}\necho '{}'\n",
        quoted(path.to_str().context("a path of plain text")?),
        words.join(" "),
        super::machine::END
    ))
}

fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

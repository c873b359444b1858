// SPDX-License-Identifier: MIT OR Apache-2.0
//! The test programs that go into a guest, built by cargo on the host.

use super::machine::END;
use super::shell::output;
use super::tally::Test;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folders of the packages whose integration tests are tests of the kernel.
const PACKAGES: [&str; 2] = ["crates/cli", "crates/kernel"];

/// Tests that go over an emulated path: it is itself a program, and an emulated processor is too
/// slow for its packets. The examples need compilers, the page a browser, top a terminal: a guest has none.
const LEFT_OUT: [&str; 8] = [
    "ecn_queue",
    "exports",
    "laws",
    "page",
    "rude_examples",
    "starts",
    "top",
    "transfers",
];

/// Parts of the names of tests that ask the same of any kernel: command line, API, files; or last too
/// long in an emulated machine, as the wait for a namespace's inode to be given out again.
const SAME_ANYWHERE: [&str; 13] = [
    "a_bad_policy",
    "a_client_that_never_ends",
    "a_full_disk",
    "a_namespace_with_the_number",
    "a_second_daemon",
    "kill_9_at_any_moment",
    "no_input_makes",
    "nobody_else",
    "only_root",
    "sighup",
    "the_group",
    "what_the_full_ring_buffer",
    "what_the_host_lacks",
];

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

/// Builds the tests of the kernel and the programs they start: with all others, since cargo would build the
/// dependencies of two packages alone with other features than `make test` does, and so a second time.
pub fn build(root: &Path) -> Result<Vec<Program>> {
    let mut cargo = Command::new("cargo");
    cargo.args(["test", "--no-run", "--locked", "--workspace"]);
    cargo.arg("--message-format=json-render-diagnostics");
    let messages = output(cargo.current_dir(root))?;
    let folders = PACKAGES.map(|package| root.join(package));
    let programs: Vec<Program> = messages
        .lines()
        .filter_map(program)
        .filter(|program| folders.contains(&program.folder))
        .collect();
    ensure!(
        programs.iter().any(|program| program.is_test),
        "cargo built no test"
    );
    Ok(programs)
}

/// An integration test that a guest runs, or a program that it starts.
fn program(message: &str) -> Option<Program> {
    let message: Value = serde_json::from_str(message).ok()?;
    let path = PathBuf::from(message["executable"].as_str()?);
    let target = &message["target"];
    let name = target["name"].as_str()?;
    let is_test = target["kind"][0] == "test" && !LEFT_OUT.contains(&name);
    let is_started = target["kind"][0] == "bin" && message["profile"]["test"] == false;
    let manifest = Path::new(message["manifest_path"].as_str()?);
    (is_test || is_started).then(|| Program {
        name: name.to_owned(),
        path,
        folder: manifest.parent().unwrap_or(manifest).to_path_buf(),
        is_test,
    })
}

/// The job of a guest: every test program, one after the other, each with its status. Without
/// arguments of the caller all tests but those that ask the same of any kernel.
pub fn job(programs: &[Program], arguments: &[String]) -> Result<String> {
    let mut words = arguments.to_vec();
    if words.is_empty() {
        words = SAME_ANYWHERE.map(|name| format!("--skip={name}")).to_vec();
        // They wait for one another anyway, and one that waits for a minute is told as if it hung.
        words.push("--test-threads=1".to_owned());
    }
    let tests = programs.iter().filter(|program| program.is_test);
    job_of(tests.map(|test| run_of(test, &words)))
}

/// The job of a guest that runs only these once more.
pub fn job_again(programs: &[Program], tests: &[Test]) -> Result<String> {
    let run = |program: &Program| {
        let own = tests.iter().filter(|test| test.program == program.name);
        let mut words: Vec<String> = own.map(|test| test.name.clone()).collect();
        if words.is_empty() {
            return None;
        }
        words.extend(["--exact", "--test-threads=1"].map(str::to_owned));
        Some(run_of(program, &words))
    };
    let programs = programs.iter().filter(|program| program.is_test);
    job_of(programs.filter_map(run))
}

fn job_of(runs: impl Iterator<Item = Result<String>>) -> Result<String> {
    let runs: Result<Vec<String>> = runs.collect();
    Ok(format!("#!/bin/sh\n{}echo '{END}'\n", runs?.concat()))
}

fn run_of(test: &Program, words: &[String]) -> Result<String> {
    let path = quoted(test.path.to_str().context("a path of plain text")?);
    let folder = quoted(test.folder.to_str().context("a path of plain text")?);
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    Ok(format!(
        "mkdir -p {folder}; cd {folder}; echo '== test {}'\n{path} --show-output {}\necho \"== status $?\"\n",
        test.name,
        words.join(" "),
    ))
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
        END
    ))
}

fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The test programs that go into a guest, and what it does with them.

use super::machine::END;
use crate::programs::{self, Kind, Program};
use crate::tally::Test;
use anyhow::{Context, Result};
use std::path::Path;

/// Folders of the packages whose integration tests are tests of the kernel.
const PACKAGES: [&str; 2] = ["crates/cli", "crates/kernel"];

/// Tests that go over an emulated path: it is itself a program, and an emulated processor is too
/// slow for its packets. The examples and `phases` need compilers (the kernel's own test of phases does not), the page and plots of
/// captures a browser, top a terminal, Slurm itself: a guest
/// has none. `why` has two tests of the command line; its long one goes over a path. `auto` learns what a path is like, and the
/// path of such a processor drops what it should carry. `capture` and `capture_kernel` go over paths, and need tshark and tcpdump. What `archive`, `command_line`,
/// `listen`, `listen_bounds`, `measure`, `mover`, `mover_carriers`, `mover_delete`, `mover_ends`, `mover_keeps`, `mover_limits`, `responder`, `rude_datagrams` and `traces` ask is the same of any kernel; `service` bounds capabilities by an option of setpriv that a guest's busybox lacks.
const LEFT_OUT: [&str; 33] = [
    "archive",
    "auto",
    "capture",
    "capture_kernel",
    "capture_page",
    "command_line",
    "ecn_queue",
    "exports",
    "laws",
    "listen",
    "listen_bounds",
    "measure",
    "measured_paths",
    "mover",
    "mover_carriers",
    "mover_delete",
    "mover_ends",
    "mover_keeps",
    "mover_limits",
    "page",
    "phases",
    "responder",
    "rude_datagrams",
    "rude_examples",
    "service",
    "single_ended",
    "slurm",
    "starts",
    "top",
    "traces",
    "transfers",
    "try_path",
    "why",
];

/// Parts of the names of tests that ask the same of any kernel: command line, API, files, locks and the journal;
/// or last too long in an emulated machine, as the wait for a namespace's inode to be given out again; or compare rates
/// over an emulated path.
const SAME_ANYWHERE: [&str; 28] = [
    "a_bad_policy",
    "a_client_that_never_ends",
    "a_flow_log_that_stands",
    "a_full_disk",
    "a_namespace_with_the_number",
    "a_path_of_ones_own",
    "a_second_daemon",
    "a_sysctl_set_by_hand",
    "a_worker_that_dies",
    "an_unlimited_flow",
    "an_unload_waits",
    "as_many_paths_as",
    "every_user_may_see",
    "explain_says_what",
    "kill_9_at_any_moment",
    "no_input_makes",
    "nobody_else",
    "only_root",
    "pins_at_another",
    "pins_have_one_owner",
    "profiles_come_and_go",
    "sighup",
    "status_without_anything",
    "the_group",
    "the_path_on_ones_own_machine",
    "what_the_full_ring_buffer",
    "what_the_host_lacks",
    "who_ignores_losses",
];

/// Builds the tests of the kernel and the programs they start.
pub fn build(root: &Path) -> Result<Vec<Program>> {
    let folders = PACKAGES.map(|package| root.join(package));
    let mut programs = programs::build(root)?;
    programs.retain(|program| folders.contains(&program.folder) && is_for_guests(program));
    Ok(programs)
}

fn is_for_guests(program: &Program) -> bool {
    match program.kind {
        Kind::IntegrationTest => !LEFT_OUT.contains(&&*program.name),
        Kind::Binary => true,
        Kind::UnitTests => false,
    }
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
    let tests = integration_tests(programs);
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
    let programs = integration_tests(programs);
    job_of(programs.filter_map(run))
}

fn integration_tests(programs: &[Program]) -> impl Iterator<Item = &Program> {
    let programs = programs.iter();
    programs.filter(|program| program.kind == Kind::IntegrationTest)
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
    let folders = programs
        .iter()
        .filter(|program| program.kind == Kind::Binary);
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

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Puts back what a journal says a lab has changed.
//!
//! Every step may be done again: what is gone already is fine. It undoes nothing that no journal
//! names. Start with [`take_down`].

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use thiserror::Error;

use crate::child;
use crate::hosts;
use crate::journal::{Change, restored, to_undo};
use crate::lab_directory::{self, AllLabs, LabDirectory};
use crate::machine;

/// How long killed processes may take to disappear.
const END_LIMIT: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(5);

/// What could not be undone. The journal stays, so that `fatpath lab down` can try again.
#[derive(Debug, Error)]
#[error("lab {lab} was not taken down completely: {}; try again: fatpath lab down {lab}", problems.join("; "))]
pub struct UndoError {
    lab: String,
    problems: Vec<String>,
}

impl UndoError {
    /// The lab could not even be looked at.
    pub(crate) fn new(lab: &str, problem: &dyn std::fmt::Display) -> UndoError {
        UndoError {
            lab: lab.to_owned(),
            problems: vec![problem.to_string()],
        }
    }
}

/// Undoes all changes of a lab, last first, then removes its directory. Goes on after a failure.
///
/// # Errors
/// [`UndoError`] names all that failed.
pub fn take_down(directory: &LabDirectory, _all: &AllLabs) -> Result<(), UndoError> {
    let mut problems = vec![];
    match (
        directory.changes(),
        lab_directory::changes_of_others(&directory.lab),
    ) {
        (Ok(changes), Ok(others)) => {
            for change in to_undo(&changes, &others) {
                problems.extend(
                    undo(change)
                        .err()
                        .map(|error| format!("{change:?}: {error}")),
                );
            }
        }
        (Err(error), _) | (_, Err(error)) => problems.push(error.to_string()),
    }
    if problems.is_empty() {
        problems.extend(directory.remove().err().map(|error| error.to_string()));
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(UndoError {
            lab: directory.lab.clone(),
            problems,
        })
    }
}

/// Takes down what crashed labs have left. Returns what there is to tell of each; one that cannot be
/// taken down completely keeps its directory, and does not keep other labs from coming up.
///
/// # Errors
/// If /run/fatpath/lab cannot be read.
pub fn clear_leftovers(all: &AllLabs) -> io::Result<Vec<String>> {
    let left = lab_directory::all()?
        .into_iter()
        .filter(|directory| !directory.is_supervised());
    Ok(left
        .map(|directory| reported(&directory.lab, take_down(&directory, all)))
        .collect())
}

fn reported(lab: &str, outcome: Result<(), UndoError>) -> String {
    match outcome {
        Ok(()) => format!("removed what a crash had left of lab {lab}"),
        Err(error) => error.to_string(),
    }
}

fn undo(change: &Change) -> io::Result<()> {
    match change {
        Change::Sysctl { name, old, ours } => restore_sysctl(name, old, ours),
        Change::Namespace { name } => hosts::remove(name),
        Change::Cgroup { path } => remove_cgroup(path),
        Change::Daemon {
            program,
            run_dir,
            pin_dir,
        } => unload(program, run_dir, pin_dir),
        Change::Process { pid, start_ticks } => {
            end_process(*pid, *start_ticks, END_LIMIT).map(drop)
        }
    }
}

fn restore_sysctl(name: &str, old: &str, ours: &str) -> io::Result<()> {
    let current = machine::sysctl(name)?;
    restored(&current, old, ours).map_or(Ok(()), |old| machine::set_sysctl(name, old))
}

/// Kills all processes in the cgroup and below, waits for them, and removes the folders.
fn remove_cgroup(folder: &Path) -> io::Result<()> {
    if !folder.exists() {
        return Ok(());
    }
    fs::write(folder.join("cgroup.kill"), "1")?;
    let deadline = Instant::now() + END_LIMIT;
    loop {
        match remove_folders(folder) {
            Err(error) if error.kind() == ErrorKind::ResourceBusy && Instant::now() < deadline => {
                sleep(POLL)
            }
            outcome => return outcome,
        }
    }
}

/// A cgroup's files go with its folder, so only folders are removed, the deepest first.
fn remove_folders(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_folders(&entry.path())?;
        }
    }
    fs::remove_dir(folder)
}

fn unload(program: &Path, run_dir: &Path, pin_dir: &Path) -> io::Result<()> {
    if is_empty(run_dir) && is_empty(pin_dir) {
        return Ok(());
    }
    // Any fatpath unloads what another has loaded, should its file be gone.
    let noted = program.exists().then(|| Command::new(program));
    let mut command = noted.unwrap_or_else(child::this_program);
    command
        .arg("unload")
        .arg("--run-dir")
        .arg(run_dir)
        .arg("--pin-dir")
        .arg(pin_dir);
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!(
        "fatpath unload: {}: {}",
        output.status,
        words.trim()
    )))
}

/// A daemon that has left no file has changed nothing either: it notes its changes in one of the two.
fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none()) || !folder.exists()
}

/// Asks a process to end, and kills it if it does not within `limit`; only if it is still the one that
/// was noted. Whether it is gone.
///
/// # Errors
/// If this process may not.
pub(crate) fn end_process(pid: u32, start_ticks: u64, limit: Duration) -> io::Result<bool> {
    let lives = || machine::start_ticks(pid) == Some(start_ticks);
    for (signal, limit) in [(Signal::TERM, limit), (Signal::KILL, END_LIMIT)] {
        if !lives() {
            break;
        }
        send(pid, signal)?;
        let deadline = Instant::now() + limit;
        while lives() && Instant::now() < deadline {
            sleep(POLL);
        }
    }
    Ok(!lives())
}

/// Sends a signal; that the process is gone is no error.
fn send(pid: u32, signal: Signal) -> io::Result<()> {
    let Some(pid) = Pid::from_raw(pid as i32) else {
        return Ok(());
    };
    match kill_process(pid, signal) {
        Err(rustix::io::Errno::SRCH) => Ok(()),
        outcome => Ok(outcome?),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn a_process_that_does_not_end_when_asked_is_killed_and_another_is_left_alone() {
        let mut shell = Command::new("sh");
        let shell = shell.args(["-c", "trap '' TERM; echo; exec sleep 60"]);
        let mut deaf = shell.stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = deaf.stdout.take().unwrap();
        stdout.read_exact(&mut [0]).unwrap();
        let start_ticks = machine::start_ticks(deaf.id()).unwrap();
        let limit = Duration::from_millis(20);
        assert!(end_process(deaf.id(), start_ticks + 1, limit).unwrap());
        assert!(deaf.try_wait().unwrap().is_none());
        assert!(end_process(deaf.id(), start_ticks, limit).unwrap());
        let killed = Signal::KILL.as_raw();
        assert_eq!(deaf.wait().unwrap().signal(), Some(killed));
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a program for a limited time and reads what it prints; nothing of it is left, whatever it started.
//!
//! The program is in a cgroup (version 2) of its own, or where none can be made in a process group of its own. A guard,
//! a shell outside of that cgroup, waits until a pipe of this process closes, and then kills the cgroup and removes it.
//! The pipe closes when the run ends, when its time is over, and when this process dies in any way. Start at [`run`].

mod cgroup;
mod guard;
mod handed;

use cgroup::Cgroup;
use guard::Guard;
pub use handed::HandedFile;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

/// Of each stream of a program so much is kept.
pub const MAX_OUTPUT_BYTES: u64 = 4 << 20;

/// The caller is asked at least this often whether the run goes on.
const TICK: Duration = Duration::from_millis(200);

/// A stream that something outside of the process group keeps open is waited for no longer than this.
const STREAM_DEADLINE: Duration = Duration::from_secs(2);

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself.
    Exited(ExitStatus),
    /// It was killed because its time was over.
    TimedOut,
    /// It was killed because the caller wanted it so.
    Cancelled,
}

/// A run that ended.
#[derive(Debug)]
pub struct Ended {
    /// How.
    pub end: End,
    /// The first [`MAX_OUTPUT_BYTES`] of its standard output.
    pub output: String,
    /// Likewise of its standard error.
    pub errors: String,
}

/// Why a program could not be run.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// No program is named.
    #[error("no program is named")]
    Nothing,
    /// It was not started.
    #[error("cannot start {0}")]
    Start(String, #[source] io::Error),
    /// It was started, and killed because it could not be waited for.
    #[error("cannot wait for {0}")]
    Wait(String, #[source] io::Error),
}

/// Runs a program with arguments until it ends, until `timeout`, or until `goes_on` says no.
///
/// # Errors
/// See [`LaunchError`].
pub fn run(
    command: &[String],
    timeout: Duration,
    goes_on: impl Fn() -> bool,
) -> Result<Ended, LaunchError> {
    run_with(command, &[], timeout, goes_on)
}

/// The same with more variables in its environment, which others cannot read.
///
/// # Errors
/// See [`LaunchError`].
pub fn run_with(
    command: &[String],
    environment: &[(&str, &str)],
    timeout: Duration,
    goes_on: impl Fn() -> bool,
) -> Result<Ended, LaunchError> {
    run_in(Cgroup::make(), command, environment, timeout, goes_on)
}

fn run_in(
    cgroup: Option<Cgroup>,
    command: &[String],
    environment: &[(&str, &str)],
    timeout: Duration,
    goes_on: impl Fn() -> bool,
) -> Result<Ended, LaunchError> {
    let program = command.first().ok_or(LaunchError::Nothing)?;
    let not_started = |error| LaunchError::Start(program.clone(), error);
    let mut guard = Guard::start(cgroup.as_ref()).map_err(not_started)?;
    let mut child = started(command, environment, cgroup.as_ref()).map_err(not_started)?;
    let (output, errors) = (reader(child.stdout.take()), reader(child.stderr.take()));
    let end = guard
        .watch(child.id())
        .and_then(|()| wait(&child, timeout, goes_on));
    // Everything is killed before the child is reaped: until then nobody else has its number.
    drop(guard);
    let status = child.wait();
    let not_waited = |error| LaunchError::Wait(program.clone(), error);
    Ok(Ended {
        end: match end.map_err(not_waited)? {
            None => End::Exited(status.map_err(not_waited)?),
            Some(end) => end,
        },
        output: text(&output),
        errors: text(&errors),
    })
}

/// Moves itself into the cgroup, then becomes the program.
const ENTER: &str = "echo 0 >\"$0/cgroup.procs\" && exec \"$@\"";

fn started(
    command: &[String],
    environment: &[(&str, &str)],
    cgroup: Option<&Cgroup>,
) -> io::Result<Child> {
    find(&command[0])?;
    let mut process = match cgroup {
        Some(cgroup) => {
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", ENTER]).arg(cgroup.folder()).args(command);
            shell
        }
        None => {
            let mut process = Command::new(&command[0]);
            process.args(&command[1..]);
            process
        }
    };
    process.stdin(Stdio::null());
    process.stdout(Stdio::piped()).stderr(Stdio::piped());
    process.envs(environment.iter().copied());
    // Tools print numbers as the language of the user has them.
    process.env("LC_ALL", "C").process_group(0).spawn()
}

/// A program that is not there is named as such, not by the shell's status.
fn find(program: &str) -> io::Result<()> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = match program.contains('/') {
        true => std::path::Path::new(program).is_file(),
        false => std::env::split_paths(&path).any(|folder| folder.join(program).is_file()),
    };
    match is_there {
        true => Ok(()),
        false => Err(io::Error::new(
            io::ErrorKind::NotFound,
            format!("{program} is not installed"),
        )),
    }
}

/// `None`: it ended by itself, and is not reaped yet.
fn wait(child: &Child, timeout: Duration, goes_on: impl Fn() -> bool) -> io::Result<Option<End>> {
    let begun = Instant::now();
    let pidfd = pidfd_of(child)?;
    loop {
        let left = timeout.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return Ok(Some(End::TimedOut));
        }
        if !goes_on() {
            return Ok(Some(End::Cancelled));
        }
        if is_ended(&pidfd, left.min(TICK))? {
            return Ok(None);
        }
    }
}

fn pidfd_of(child: &Child) -> io::Result<OwnedFd> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or(io::ErrorKind::InvalidInput)?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

fn is_ended(pidfd: &OwnedFd, wait: Duration) -> io::Result<bool> {
    let timeout = Timespec {
        tv_sec: 0,
        tv_nsec: wait.subsec_nanos().into(),
    };
    match poll(&mut [PollFd::new(pidfd, PollFlags::IN)], Some(&timeout)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Reads a stream to its end, so that its writer never waits, and keeps its beginning.
fn reader(stream: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = sync_channel(1);
    std::thread::spawn(move || {
        let Some(mut stream) = stream else { return };
        let mut kept = Vec::new();
        let read = (&mut stream).take(MAX_OUTPUT_BYTES).read_to_end(&mut kept);
        let _ = read.and_then(|_| io::copy(&mut stream, &mut io::sink()));
        let _ = sender.send(kept);
    });
    receiver
}

fn text(kept: &Receiver<Vec<u8>>) -> String {
    let kept = kept.recv_timeout(STREAM_DEADLINE).unwrap_or_default();
    String::from_utf8_lossy(&kept).into_owned()
}

#[cfg(test)]
mod tests;

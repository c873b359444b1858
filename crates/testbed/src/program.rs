// SPDX-License-Identifier: MIT OR Apache-2.0
//! The programs of one run: started on their hosts, waited for, stopped.
//!
//! A program that names a port serves the others: they wait until it listens, and it is stopped when
//! they have ended. Every program writes to files of its own. What its output means is not decided
//! here. Start with [`run_all`].

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use fatpath_flow::cli::{BEGAN, monotonic_ns};
use fatpath_scenario::plan::Plan;
use rustix::process::{Pid, Signal, kill_process_group};
use thiserror::Error;

use crate::child;
use crate::hosts;
use crate::machine;
use crate::tail;

/// How long a server may take until it listens.
const READY_LIMIT: Duration = Duration::from_secs(10);
/// How long a server may take to end by itself once its clients have, and again when asked to.
const STOP_LIMIT: Duration = Duration::from_secs(2);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A program that is to be run, its placeholders filled in.
#[derive(Clone, Debug)]
pub struct Job {
    /// For messages and file names, such as `2-client-iperf3`.
    pub label: String,
    /// The host it runs on.
    pub host: String,
    /// The command, not empty.
    pub words: Vec<String>,
    /// It is a server; when it serves.
    pub ready: Option<Ready>,
    /// When it is killed.
    pub time_limit: Duration,
    /// When it is asked to end (SIGTERM), which is no failure.
    pub stop_after: Option<Duration>,
    /// Where its standard output goes.
    pub output: PathBuf,
    /// Where its standard error goes.
    pub errors: PathBuf,
}

/// What shows that a server serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ready {
    /// It listens on this TCP port.
    Port(u16),
    /// This file is there.
    File(PathBuf),
}

impl fmt::Display for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ready::Port(port) => write!(f, "port {port}"),
            Ready::File(file) => file.display().fmt(f),
        }
    }
}

impl Ready {
    fn is_seen(&self, pid: u32) -> bool {
        match self {
            Ready::Port(port) => machine::is_listening(pid, *port),
            Ready::File(file) => file.exists(),
        }
    }
}

/// Why a run has no result.
#[derive(Debug, Error)]
pub enum RunError {
    /// It could not be started.
    #[error("{label}: cannot be started: {error}")]
    Start {
        /// Which program.
        label: String,
        /// The system's reason.
        error: io::Error,
    },
    /// It ended with another status than 0.
    #[error("{label}: failed ({status}){said}")]
    Failed {
        /// Which program.
        label: String,
        /// How it ended.
        status: ExitStatus,
        /// Its last lines.
        said: String,
    },
    /// It did not end in time, and was killed.
    #[error("{label}: did not end within its time limit of {} s{said}", limit.as_secs())]
    TimeLimit {
        /// Which program.
        label: String,
        /// The limit.
        limit: Duration,
        /// Its last lines.
        said: String,
    },
    /// It does not listen.
    #[error("{label}: does not listen on {at} after {} s{said}", READY_LIMIT.as_secs())]
    NotReady {
        /// Which program.
        label: String,
        /// Where it should.
        at: Ready,
        /// Its last lines.
        said: String,
    },
    /// The links' changes could not be scheduled.
    #[error("changing the links in time: {0}")]
    Begin(String),
    /// Ctrl-C, SIGTERM, or the lab was taken down.
    #[error("interrupted")]
    Interrupted,
}

/// Whoever watches the programs of a run.
pub trait Watch {
    /// Asked every few milliseconds; at a no, all are killed.
    fn go_on(&mut self) -> bool;

    /// The first program that is no server starts now; all servers before it listen.
    ///
    /// # Errors
    /// Why it must not, in words.
    fn begin(&mut self) -> Result<(), String>;

    /// All programs that are no servers have ended.
    fn end(&mut self);
}

/// Runs all jobs to their end. None is left running, whatever the outcome.
///
/// # Errors
/// The first job that failed.
pub fn run_all(plan: &Plan, jobs: &[Job], watch: &mut dyn Watch) -> Result<(), RunError> {
    let mut programs = vec![];
    let first = jobs.iter().position(|job| job.ready.is_none());
    let mut began_ns = None;
    for (place, job) in jobs.iter().enumerate() {
        if Some(place) == first {
            watch.begin().map_err(RunError::Begin)?;
            began_ns = Some(monotonic_ns());
        }
        programs.push(Running::start(plan, job, began_ns)?);
        if let Some(ready) = &job.ready {
            wait_ready(&mut programs, ready, watch)?;
        }
    }
    wait_until(&mut programs, watch, |programs| {
        programs
            .iter()
            .all(|program| program.ended.is_some() || program.job.ready.is_some())
    })?;
    watch.end();
    stop_servers(&mut programs, watch)
}

/// A program that was started; killed with all its children when dropped.
struct Running<'j> {
    job: &'j Job,
    child: Child,
    started: Instant,
    is_stopped: bool,
    ended: Option<ExitStatus>,
}

impl<'j> Running<'j> {
    fn start(plan: &Plan, job: &'j Job, began_ns: Option<u64>) -> Result<Running<'j>, RunError> {
        let child = spawn(plan, job, began_ns).map_err(|error| RunError::Start {
            label: job.label.clone(),
            error,
        })?;
        Ok(Running {
            job,
            child,
            started: Instant::now(),
            is_stopped: false,
            ended: None,
        })
    }

    /// Looks whether it has ended, failed, or outlived its time.
    fn look(&mut self) -> Result<(), RunError> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().ok().flatten();
            self.stop_in_time();
        }
        let label = || self.job.label.clone();
        match self.ended {
            Some(status) if !status.success() && !self.is_stopped => Err(RunError::Failed {
                label: label(),
                status,
                said: self.said(),
            }),
            None if self.started.elapsed() > self.job.time_limit => Err(RunError::TimeLimit {
                label: label(),
                limit: self.job.time_limit,
                said: self.said(),
            }),
            _ => Ok(()),
        }
    }

    fn stop_in_time(&mut self) {
        let stop_after = self.job.stop_after.filter(|_| self.ended.is_none());
        let is_due = stop_after.is_some_and(|after| self.started.elapsed() >= after);
        if is_due && !self.is_stopped {
            self.is_stopped = true;
            self.signal(Signal::TERM);
        }
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = Pid::from_raw(self.child.id() as i32) {
            // It may have ended meanwhile; until it is waited for, its id is no one else's.
            let _ = kill_process_group(group, signal);
        }
    }

    fn said(&self) -> String {
        let lines = [&self.job.errors, &self.job.output].map(|file| tail::of_file(file));
        let said = lines.iter().find(|lines| !lines.is_empty());
        said.map_or(String::new(), |lines| format!("; its last lines:\n{lines}"))
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if self.ended.is_none() {
            self.signal(Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

fn spawn(plan: &Plan, job: &Job, began_ns: Option<u64>) -> io::Result<Child> {
    let (program, arguments) = job.words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = hosts::command(plan, &job.host, program)?;
    command.envs(began_ns.map(|ns| (BEGAN, ns.to_string())));
    // Its own group: Ctrl-C is for the lab, which then ends the programs in order.
    command.args(arguments).process_group(0);
    child::dies_with_parent(&mut command, Signal::KILL);
    command
        .stdin(Stdio::null())
        .stdout(File::create(&job.output)?)
        .stderr(File::create(&job.errors)?);
    command.spawn()
}

fn wait_ready(
    programs: &mut [Running],
    ready: &Ready,
    watch: &mut dyn Watch,
) -> Result<(), RunError> {
    let deadline = Instant::now() + READY_LIMIT;
    wait_until(programs, watch, |programs| {
        let server = programs.last().map(|server| server.child.id());
        server.is_none_or(|pid| ready.is_seen(pid)) || Instant::now() > deadline
    })?;
    match programs.last() {
        Some(server) if !ready.is_seen(server.child.id()) => Err(RunError::NotReady {
            label: server.job.label.clone(),
            at: ready.clone(),
            said: server.said(),
        }),
        _ => Ok(()),
    }
}

/// Servers may end by themselves (`iperf3 -1`); those that do not are asked to, then killed.
fn stop_servers(programs: &mut [Running], watch: &mut dyn Watch) -> Result<(), RunError> {
    let deadline = Instant::now() + STOP_LIMIT;
    let all_ended = |programs: &[Running]| programs.iter().all(|program| program.ended.is_some());
    wait_until(programs, watch, |programs| {
        all_ended(programs) || Instant::now() > deadline
    })?;
    let asked: Vec<_> = programs
        .iter_mut()
        .filter(|program| program.ended.is_none())
        .collect();
    asked
        .iter()
        .for_each(|program| program.signal(Signal::TERM));
    let deadline = Instant::now() + STOP_LIMIT;
    for program in asked {
        while Instant::now() < deadline && program.ended.is_none() {
            program.ended = program.child.try_wait().ok().flatten();
            sleep(POLL_INTERVAL);
        }
    }
    Ok(())
}

fn wait_until(
    programs: &mut [Running],
    watch: &mut dyn Watch,
    mut done: impl FnMut(&[Running]) -> bool,
) -> Result<(), RunError> {
    loop {
        programs.iter_mut().try_for_each(Running::look)?;
        if done(programs) {
            return Ok(());
        }
        if !watch.go_on() {
            return Err(RunError::Interrupted);
        }
        sleep(POLL_INTERVAL);
    }
}

/// Where the output and the errors of a program go.
pub fn output_files(folder: &Path, case: &str, label: &str) -> (PathBuf, PathBuf) {
    let file = |end: &str| folder.join(format!("{case}.{label}.{end}"));
    (file("out"), file("err"))
}

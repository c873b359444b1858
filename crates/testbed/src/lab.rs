// SPDX-License-Identifier: MIT OR Apache-2.0
//! A lab that is up, as the process that uses it sees it.
//!
//! [`Lab::up`] starts the keeper process, which makes everything; [`Lab::down`] makes it take
//! everything down. Nothing of the machine is changed here, except to undo what a keeper that was
//! killed has left.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use fatpath_scenario::plan::Plan;
use fatpath_scenario::{Host, Link, TimedChange};
use serde::Serialize;
use thiserror::Error;

use crate::child;
use crate::control::{self, Request};
use crate::hosts;
use crate::keeper::{Answer, Setting};
use crate::machine;
use crate::records::Records;
use crate::room::{self, Room};
use crate::tail;
use crate::undo::{self, UndoError};

/// How long a keeper may take to take all down: killing, unloading BPF, removing namespaces.
const DOWN_LIMIT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Who takes the lab down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// It goes when this process goes, however that happens.
    OfThisProcess,
    /// Once it is up, it stays until [`down`]; it goes when this process goes before that.
    UntilDown,
}

/// A lab that is up.
#[derive(Debug)]
pub struct Lab {
    /// What was brought up.
    pub plan: Plan,
    /// The settings of the machine that were changed for it.
    pub settings: Vec<Setting>,
    /// What there is to tell of leftovers of crashed labs, which were taken down first.
    pub cleared: Vec<String>,
    room: Room,
    /// None if it stays after this process.
    keeper: Option<Child>,
    /// Of the keeper; it removes the file, which is read all the same.
    log: File,
}

/// Why a lab did not come up.
#[derive(Debug, Error)]
pub enum UpError {
    /// Namespaces and devices need root.
    #[error("a lab needs root (network namespaces, /dev/net/tun, cgroups); run it with sudo")]
    NotRoot,
    /// One of that name is up.
    #[error("a lab named {0} is up already; take it down first: fatpath lab down {0}")]
    IsUp(String),
    /// What an earlier crash left of the lab of this name could not be taken down.
    #[error("{}", .0.join("\n"))]
    Leftovers(Vec<String>),
    /// The keeper says why.
    #[error("{0}")]
    Keeper(String),
    /// The system refused something.
    #[error("{what}: {error}")]
    System {
        /// What was tried.
        what: &'static str,
        /// The system's reason.
        error: io::Error,
    },
}

/// Why a lab could not be taken down, found or entered.
#[derive(Debug, Error)]
pub enum LabError {
    /// There is none of that name.
    #[error("no lab named {0} is up; see: fatpath lab list")]
    Unknown(String),
    /// No name was given, and there is not exactly one.
    #[error("{}", no_choice(.0))]
    NoChoice(Vec<String>),
    /// The lab has no such host.
    #[error("lab {lab} has no host {host}; its hosts: {hosts}")]
    NoHost {
        /// The lab.
        lab: String,
        /// What was asked for.
        host: String,
        /// What there is.
        hosts: String,
    },
    /// The program could not be started on the host.
    #[error("{program}: {error}")]
    Exec {
        /// The program.
        program: String,
        /// The system's reason.
        error: io::Error,
    },
    /// The keeper lives on though it was killed, so nothing was undone in its place.
    #[error("the keeper of lab {lab} (process {pid}) did not take it down, and does not end")]
    Stuck {
        /// The lab.
        lab: String,
        /// Its keeper.
        pid: u32,
    },
    /// The link is not changed.
    #[error("lab {lab}: {reason}")]
    Set {
        /// The lab.
        lab: String,
        /// What is wrong, and what is allowed.
        reason: String,
    },
    /// The keeper cannot be asked.
    #[error("asking the keeper of lab {lab}: {error}{}", ask_remedy(error))]
    Ask {
        /// The lab.
        lab: String,
        /// The system's reason.
        error: io::Error,
    },
    /// Not everything could be undone.
    #[error(transparent)]
    Undo(#[from] UndoError),
    /// /run/fatpath/lab cannot be used.
    #[error("using /run/fatpath/lab")]
    Room(#[from] io::Error),
}

fn no_choice(names: &[String]) -> String {
    match names {
        [] => "no lab is up; bring one up: fatpath lab up FILE".to_owned(),
        names => format!("more than one lab is up ({}); name one", names.join(", ")),
    }
}

fn ask_remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "; run it with sudo",
        io::ErrorKind::TimedOut => "; it is busy or hangs, and may make the change all the same",
        io::ErrorKind::ConnectionRefused => "; a crash has left the lab over: fatpath lab down",
        _ => "",
    }
}

/// A lab in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// Whether its keeper lives; if not, a crash left it over and the next lab command clears it.
    pub up: bool,
    /// The keeper's process id.
    pub keeper: Option<u32>,
    /// Host names.
    pub hosts: Vec<String>,
    /// Its network namespaces, as `ip netns` shows them.
    pub namespaces: Vec<String>,
    /// Whether a daemon tunes its programs.
    pub tuned: bool,
}

impl Lab {
    /// Clears leftovers of crashed labs and brings `plan` up; everything is ready when this returns.
    /// `records` are written as long as it is up.
    ///
    /// # Errors
    /// See [`UpError`]; nothing of the lab is left then.
    pub fn up(plan: Plan, records: &Records, lifetime: Lifetime) -> Result<Lab, UpError> {
        need_root()?;
        let room = Room::of(&plan.lab);
        wait_for_orphan(&room);
        let all = room::lock_all().map_err(system("locking /run/fatpath/lab"))?;
        let cleared = undo::clear_leftovers(&all).map_err(system("reading /run/fatpath/lab"))?;
        if room.is_kept() {
            return Err(UpError::IsUp(plan.lab));
        }
        if room.exists() {
            return Err(UpError::Leftovers(cleared));
        }
        let made = room.create(&plan, records);
        let started = made
            .map_err(system("making the lab's folder under /run/fatpath/lab"))
            .and_then(|()| start_keeper(&room).map_err(system("starting the keeper process")));
        // What is left of a room all the same is cleared by the next command.
        let (mut keeper, log) = started.inspect_err(|_| drop(room.remove()))?;
        let answer = first_answer(&mut keeper);
        drop(all);
        let Some(Answer::Ready(settings)) = answer else {
            return Err(not_up(&room, keeper, log, answer));
        };
        if lifetime == Lifetime::UntilDown && give_up(&mut keeper).is_err() {
            return Err(not_up(&room, keeper, log, None));
        }
        Ok(Lab {
            plan,
            settings,
            cleared,
            room,
            keeper: (lifetime == Lifetime::OfThisProcess).then_some(keeper),
            log,
        })
    }

    /// Takes the lab down and waits until nothing is left of it. Returns the last words of a keeper
    /// that had failed before.
    ///
    /// # Errors
    /// What could not be undone.
    pub fn down(mut self) -> Result<Option<String>, UndoError> {
        self.take_down()
    }

    /// Whether the keeper still carries packets.
    pub fn is_kept(&mut self) -> bool {
        self.keeper
            .as_mut()
            .is_some_and(|keeper| matches!(keeper.try_wait(), Ok(None)))
    }

    /// Lets links change while the lab is up; times count from now.
    ///
    /// # Errors
    /// Why the keeper does not.
    pub fn schedule(&self, changes: Vec<TimedChange>) -> Result<(), String> {
        let reply = control::ask(&self.room, &Request::Schedule(changes));
        reply
            .map_err(|error| format!("asking the keeper: {error}"))?
            .map(drop)
    }

    fn take_down(&mut self) -> Result<Option<String>, UndoError> {
        let Some(keeper) = self.keeper.take() else {
            return Ok(None);
        };
        let failed = finish(&self.room, keeper)?;
        Ok(failed.then(|| tail::of(&mut self.log)))
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if let Err(error) = self.take_down() {
            eprintln!("{error}");
        }
    }
}

/// That this process may bring a lab up.
///
/// # Errors
/// [`UpError::NotRoot`].
pub fn need_root() -> Result<(), UpError> {
    match rustix::process::geteuid().is_root() {
        true => Ok(()),
        false => Err(UpError::NotRoot),
    }
}

/// Waits for the keeper of a command that was killed just now, which takes the lab down already.
fn wait_for_orphan(room: &Room) {
    let deadline = Instant::now() + DOWN_LIMIT;
    while room.is_kept() && room.is_orphaned() && Instant::now() < deadline {
        sleep(POLL_INTERVAL);
    }
}

/// The keeper, and what it writes for want of someone to tell.
fn start_keeper(room: &Room) -> io::Result<(Child, File)> {
    let mut command = child::this_program();
    command.args(["lab", "emulate", &room.lab]);
    child::in_own_session(&mut command);
    let log = File::create_new(room.path("keeper.log"))?;
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command.stderr(log).current_dir("/");
    let log = File::open(room.path("keeper.log"))?;
    Ok((command.spawn()?, log))
}

/// From now on the lab stays up when this process goes.
fn give_up(keeper: &mut Child) -> io::Result<()> {
    let pipe = keeper.stdin.take();
    pipe.map_or(Ok(()), |mut pipe| pipe.write_all(b"\n"))
}

fn first_answer(keeper: &mut Child) -> Option<Answer> {
    let mut line = String::new();
    BufReader::new(keeper.stdout.take()?)
        .read_line(&mut line)
        .ok()?;
    serde_json::from_str(&line).ok()
}

/// Why the keeper gave up, once it has taken down what it had made.
fn not_up(room: &Room, keeper: Child, mut log: File, answer: Option<Answer>) -> UpError {
    let finished = finish(room, keeper);
    let reason = match answer {
        Some(Answer::Failed(reason)) => reason,
        _ => format!(
            "the keeper process ended before the lab was up; it said:\n{}",
            tail::of(&mut log)
        ),
    };
    match finished {
        Ok(_) => UpError::Keeper(reason),
        Err(error) => UpError::Keeper(format!("{reason}\n{error}")),
    }
}

/// Lets the keeper take all down, and does it in its place should it have been killed. Whether it had
/// failed.
fn finish(room: &Room, mut keeper: Child) -> Result<bool, UndoError> {
    drop(keeper.stdin.take());
    let deadline = Instant::now() + DOWN_LIMIT;
    while matches!(keeper.try_wait(), Ok(None)) {
        if Instant::now() > deadline {
            // It hangs; what it has not undone is undone below.
            let _ = keeper.kill();
        }
        sleep(POLL_INTERVAL);
    }
    clear(room)?;
    Ok(!keeper.wait().is_ok_and(|status| status.success()))
}

fn clear(room: &Room) -> Result<(), UndoError> {
    if !room.exists() {
        return Ok(());
    }
    let all = room::lock_all().map_err(|error| UndoError::new(&room.lab, &error))?;
    undo::take_down(room, &all)
}

/// Takes a lab down by name, up or left over; with no name, the only one there is. Returns the name.
///
/// # Errors
/// See [`LabError`].
pub fn down(name: Option<&str>) -> Result<String, LabError> {
    let room = choose(name)?;
    let keeper = room.keeper();
    if let Some((pid, started)) = keeper.and_then(|pid| Some((pid, machine::start_ticks(pid)?))) {
        // One that hangs is killed; what it has not undone is undone below.
        if !undo::end_process(pid, started, DOWN_LIMIT)? {
            return Err(LabError::Stuck { lab: room.lab, pid });
        }
    }
    clear(&room)?;
    Ok(room.lab)
}

/// All labs, up or left over.
///
/// # Errors
/// If /run/fatpath/lab cannot be read.
pub fn list() -> Result<Vec<Listed>, LabError> {
    Ok(room::all()?.iter().map(listed).collect())
}

fn names(hosts: &[Host]) -> Vec<String> {
    hosts.iter().map(|host| host.name.clone()).collect()
}

fn listed(room: &Room) -> Listed {
    let plan = room.plan().ok();
    let hosts = plan
        .as_ref()
        .map(|plan| names(&plan.hosts))
        .unwrap_or_default();
    Listed {
        name: room.lab.clone(),
        up: room.is_kept(),
        keeper: room.keeper(),
        namespaces: hosts
            .iter()
            .map(|host| fatpath_scenario::plan::namespace(&room.lab, host))
            .collect(),
        hosts,
        tuned: plan.is_some_and(|plan| plan.daemon.is_some()),
    }
}

/// Changes a link of a lab that is up, now; with no lab named, the only one. Returns the lab's name and
/// the link as it is from now on.
///
/// # Errors
/// See [`LabError`]; nothing is changed then.
pub fn set(
    lab: Option<&str>,
    link: &str,
    settings: Vec<(String, String)>,
) -> Result<(String, Vec<Link>), LabError> {
    let room = choose(lab)?;
    let request = Request::Set {
        link: link.to_owned(),
        settings,
    };
    match control::ask(&room, &request) {
        Ok(Ok(links)) => Ok((room.lab, links)),
        Ok(Err(reason)) => Err(LabError::Set {
            lab: room.lab,
            reason,
        }),
        Err(error) => Err(LabError::Ask {
            lab: room.lab,
            error,
        }),
    }
}

/// Becomes `words` on a host of a lab that is up; with no lab named, the only one. It returns only
/// if that fails.
pub fn exec(lab: Option<&str>, host: &str, words: &[OsString]) -> LabError {
    match exec_command(lab, host, words) {
        Ok(mut command) => LabError::Exec {
            program: command.get_program().to_string_lossy().into_owned(),
            error: command.exec(),
        },
        Err(error) => error,
    }
}

fn exec_command(lab: Option<&str>, host: &str, words: &[OsString]) -> Result<Command, LabError> {
    let room = choose(lab)?;
    let plan = room.plan()?;
    if !plan.hosts.iter().any(|other| other.name == host) {
        let hosts = names(&plan.hosts).join(", ");
        return Err(LabError::NoHost {
            lab: room.lab,
            host: host.to_owned(),
            hosts,
        });
    }
    let (program, arguments) = words
        .split_first()
        .ok_or_else(|| io::Error::other("no program is named"))?;
    let mut command = hosts::command(&plan, host, program)?;
    command.args(arguments);
    Ok(command)
}

fn choose(name: Option<&str>) -> Result<Room, LabError> {
    let rooms = room::all()?;
    let mut names: Vec<String> = rooms.into_iter().map(|room| room.lab).collect();
    match name {
        Some(name) if names.iter().any(|other| other == name) => Ok(Room::of(name)),
        Some(name) => Err(LabError::Unknown(name.to_owned())),
        None if names.len() == 1 => Ok(Room::of(&names.remove(0))),
        None => Err(LabError::NoChoice(names)),
    }
}

fn system(what: &'static str) -> impl FnOnce(io::Error) -> UpError {
    move |error| UpError::System { what, error }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A lab that is up, as the process that uses it sees it.
//!
//! [`Lab::up`] starts the supervisor process, which makes everything; [`Lab::down`] makes it take
//! everything down. Nothing of the machine is changed here, except to undo what a supervisor that was
//! killed has left.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use fatpath_api::Change;
use fatpath_host::JournalError;
use fatpath_scenario::plan::Plan;
use fatpath_scenario::{Host, Link, TimedChange};
use serde::Serialize;
use thiserror::Error;

use crate::child;
use crate::control::{self, Request};
use crate::hosts;
use crate::lab_directory::{self, LabDirectory};
use crate::machine;
use crate::records::Records;
use crate::session::Session;
use crate::supervisor::{Answer, Setting};
use crate::tail;
use crate::undo::{self, UndoError};

/// How long a supervisor may take to take all down: killing, unloading BPF, removing namespaces.
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
    directory: LabDirectory,
    /// None if it stays after this process.
    supervisor: Option<Child>,
    /// Of the supervisor; it removes the file, which is read all the same.
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
    /// The supervisor says why.
    #[error("{0}")]
    Supervisor(String),
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
    /// No name was given, and this session did not bring exactly one up.
    #[error("{}", not_ours(.0))]
    NotOurs(Vec<String>),
    /// No daemon tunes the lab.
    #[error("no daemon runs in lab {0}: bring it up with a --variant that has a policy")]
    NoDaemon(String),
    /// The lab has no such host.
    #[error("lab {lab} has no host {host}; {instead}")]
    NoHost {
        /// The lab.
        lab: String,
        /// What was asked for.
        host: String,
        /// What was probably meant, or what there is.
        instead: String,
    },
    /// The program could not be started on the host.
    #[error("{program}: {error}")]
    Exec {
        /// The program.
        program: String,
        /// The system's reason.
        error: io::Error,
    },
    /// The supervisor lives on though it was killed, so nothing was undone in its place.
    #[error("the supervisor of lab {lab} (process {pid}) did not take it down, and does not end")]
    Stuck {
        /// The lab.
        lab: String,
        /// Its supervisor.
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
    /// The supervisor cannot be asked.
    #[error("asking the supervisor of lab {lab}: {error}{}", ask_remedy(error))]
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
    Directory(#[from] io::Error),
}

fn no_choice(names: &[String]) -> String {
    match names {
        [] => "no lab is up; bring one up: fatpath lab up FILE".to_owned(),
        names => format!(
            "more than one lab is up ({}); give one: --lab NAME",
            names.join(", ")
        ),
    }
}

fn not_ours(names: &[String]) -> String {
    match names {
        [] => no_choice(names),
        names => format!(
            "which lab? This session did not bring up exactly one ({} up); name it: fatpath lab down NAME",
            names.join(", ")
        ),
    }
}

fn ask_remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "; run it with sudo",
        io::ErrorKind::TimedOut => "; it is busy or hangs, and may still make the change",
        io::ErrorKind::ConnectionRefused => {
            "; a crash has left parts of the lab; remove them: fatpath lab down NAME"
        }
        _ => "",
    }
}

/// A lab in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// Whether its supervisor lives; if not, a crash left it over and the next lab command clears it.
    pub up: bool,
    /// The supervisor's process id.
    #[serde(rename = "keeper")]
    pub supervisor: Option<u32>,
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
        let directory = LabDirectory::of(&plan.lab);
        wait_for_orphan(&directory);
        let all = lab_directory::lock_all().map_err(system("locking /run/fatpath/lab"))?;
        let cleared = undo::clear_leftovers(&all).map_err(system("reading /run/fatpath/lab"))?;
        if directory.is_supervised() {
            return Err(UpError::IsUp(plan.lab));
        }
        if directory.exists() {
            return Err(UpError::Leftovers(cleared));
        }
        let made = directory
            .create(&plan, records)
            .and_then(|()| match lifetime {
                Lifetime::UntilDown => directory.note_session(),
                Lifetime::OfThisProcess => Ok(()),
            });
        let started = made
            .map_err(system("making the lab's folder under /run/fatpath/lab"))
            .and_then(|()| {
                start_supervisor(&directory).map_err(system("starting the supervisor process"))
            });
        // What is left of a directory all the same is cleared by the next command.
        let (mut supervisor, log) = started.inspect_err(|_| drop(directory.remove()))?;
        let answer = first_answer(&mut supervisor);
        drop(all);
        let Some(Answer::Ready(settings)) = answer else {
            return Err(not_up(&directory, supervisor, log, answer));
        };
        if lifetime == Lifetime::UntilDown && give_up(&mut supervisor).is_err() {
            return Err(not_up(&directory, supervisor, log, None));
        }
        Ok(Lab {
            plan,
            settings,
            cleared,
            directory,
            supervisor: (lifetime == Lifetime::OfThisProcess).then_some(supervisor),
            log,
        })
    }

    /// Takes the lab down and waits until nothing is left of it. Returns the end of the log of a supervisor
    /// that had failed before.
    ///
    /// # Errors
    /// What could not be undone.
    pub fn down(mut self) -> Result<Option<String>, UndoError> {
        self.take_down()
    }

    /// What the lab's daemon has changed on the machine until now; nothing without a daemon.
    ///
    /// # Errors
    /// When the daemon's journal cannot be read.
    pub fn changes_of_daemon(&self) -> Result<Vec<Change>, JournalError> {
        let host = fatpath_host::Host::open(&self.directory.daemon())?;
        Ok(host.changes().to_vec())
    }

    /// Whether the supervisor still forwards packets.
    pub fn is_supervised(&mut self) -> bool {
        self.supervisor
            .as_mut()
            .is_some_and(|supervisor| matches!(supervisor.try_wait(), Ok(None)))
    }

    /// Lets links change while the lab is up; times count from now.
    ///
    /// # Errors
    /// Why the supervisor does not.
    pub fn schedule(&self, changes: Vec<TimedChange>) -> Result<(), String> {
        let reply = control::ask(&self.directory, &Request::Schedule(changes));
        reply
            .map_err(|error| format!("asking the supervisor: {error}"))?
            .map(drop)
    }

    fn take_down(&mut self) -> Result<Option<String>, UndoError> {
        let Some(supervisor) = self.supervisor.take() else {
            return Ok(None);
        };
        let failed = finish(&self.directory, supervisor)?;
        Ok(failed.then(|| tail::of(&mut self.log)))
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if let Err(error) = self.take_down() {
            eprintln!("fatpath: error: {error}");
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

/// Waits for the supervisor of a command that was killed just now, which takes the lab down already.
fn wait_for_orphan(directory: &LabDirectory) {
    let deadline = Instant::now() + DOWN_LIMIT;
    while directory.is_supervised() && directory.is_orphaned() && Instant::now() < deadline {
        sleep(POLL_INTERVAL);
    }
}

/// The supervisor, and what it writes for want of someone to tell.
fn start_supervisor(directory: &LabDirectory) -> io::Result<(Child, File)> {
    child::close_inherited_on_exec()?;
    let mut command = child::this_program();
    command.args(["lab", "emulate", &directory.lab]);
    child::in_own_session(&mut command);
    let log = File::create_new(directory.path("supervisor.log"))?;
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command.stderr(log).current_dir("/");
    let log = File::open(directory.path("supervisor.log"))?;
    Ok((command.spawn()?, log))
}

/// From now on the lab stays up when this process goes.
fn give_up(supervisor: &mut Child) -> io::Result<()> {
    let pipe = supervisor.stdin.take();
    pipe.map_or(Ok(()), |mut pipe| pipe.write_all(b"\n"))
}

fn first_answer(supervisor: &mut Child) -> Option<Answer> {
    let mut line = String::new();
    BufReader::new(supervisor.stdout.take()?)
        .read_line(&mut line)
        .ok()?;
    serde_json::from_str(&line).ok()
}

/// Why the supervisor gave up, once it has taken down what it had made.
fn not_up(
    directory: &LabDirectory,
    supervisor: Child,
    mut log: File,
    answer: Option<Answer>,
) -> UpError {
    let finished = finish(directory, supervisor);
    let reason = match answer {
        Some(Answer::Failed(reason)) => reason,
        _ => format!(
            "the supervisor process ended before the lab was up; its log:\n{}",
            tail::of(&mut log)
        ),
    };
    match finished {
        Ok(_) => UpError::Supervisor(reason),
        Err(error) => UpError::Supervisor(format!("{reason}\n{error}")),
    }
}

/// Lets the supervisor take all down, and does it in its place should it have been killed. Whether it had
/// failed.
fn finish(directory: &LabDirectory, mut supervisor: Child) -> Result<bool, UndoError> {
    drop(supervisor.stdin.take());
    let deadline = Instant::now() + DOWN_LIMIT;
    while matches!(supervisor.try_wait(), Ok(None)) {
        if Instant::now() > deadline {
            // It hangs; what it has not undone is undone below.
            let _ = supervisor.kill();
        }
        sleep(POLL_INTERVAL);
    }
    // A lab of the same name that came up since is another one.
    clear(directory)?;
    Ok(!supervisor.wait().is_ok_and(|status| status.success()))
}

/// Undoes what no supervisor does any more. Whether nothing is left: a lab that has a supervisor is left alone.
fn clear(directory: &LabDirectory) -> Result<bool, UndoError> {
    if !directory.exists() {
        return Ok(true);
    }
    let all = lab_directory::lock_all().map_err(|error| UndoError::new(&directory.lab, &error))?;
    // Nothing comes up while `all` is held; what came up while it was waited for is seen here.
    if directory.is_supervised() {
        return Ok(false);
    }
    undo::take_down(directory, &all).map(|()| true)
}

/// Takes a lab down by name, up or left over; with no name, the only one that was brought up from this session.
/// Returns the name.
///
/// # Errors
/// See [`LabError`].
pub fn down(name: Option<&str>) -> Result<String, LabError> {
    let directory = match name {
        Some(_) => choose(name)?,
        None => of_this_session()?,
    };
    end_supervisor(&directory)?;
    while !clear(&directory)? {
        // It came up meanwhile.
        end_supervisor(&directory)?;
        sleep(POLL_INTERVAL);
    }
    Ok(directory.lab)
}

/// Lets a supervisor take its lab down, if there is one; one that hangs is killed.
fn end_supervisor(directory: &LabDirectory) -> Result<(), LabError> {
    let supervisor = directory.supervisor();
    let Some((pid, started)) = supervisor.and_then(|pid| Some((pid, machine::start_ticks(pid)?)))
    else {
        return Ok(());
    };
    match undo::end_process(pid, started, DOWN_LIMIT)? {
        true => Ok(()),
        false => Err(LabError::Stuck {
            lab: directory.lab.clone(),
            pid,
        }),
    }
}

/// The only lab that was brought up from this session.
fn of_this_session() -> Result<LabDirectory, LabError> {
    let all = lab_directory::all()?;
    let here = Session::of_this_process();
    let mut ours = all
        .iter()
        .filter(|lab| here.is_some() && lab.session() == here);
    match (ours.next(), ours.next()) {
        (Some(lab), None) => Ok(lab.clone()),
        _ => Err(LabError::NotOurs(
            all.into_iter().map(|directory| directory.lab).collect(),
        )),
    }
}

/// All labs, up or left over.
///
/// # Errors
/// If /run/fatpath/lab cannot be read.
pub fn list() -> Result<Vec<Listed>, LabError> {
    Ok(lab_directory::all()?.iter().map(listed).collect())
}

fn names(hosts: &[Host]) -> Vec<String> {
    hosts.iter().map(|host| host.name.clone()).collect()
}

fn listed(directory: &LabDirectory) -> Listed {
    let plan = directory.plan().ok();
    let hosts = plan
        .as_ref()
        .map(|plan| names(&plan.hosts))
        .unwrap_or_default();
    Listed {
        name: directory.lab.clone(),
        up: directory.is_supervised(),
        supervisor: directory.supervisor(),
        namespaces: hosts
            .iter()
            .map(|host| fatpath_scenario::plan::namespace(&directory.lab, host))
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
    let directory = choose(lab)?;
    let request = Request::Set {
        link: link.to_owned(),
        settings,
    };
    match control::ask(&directory, &request) {
        Ok(Ok(links)) => Ok((directory.lab, links)),
        Ok(Err(reason)) => Err(LabError::Set {
            lab: directory.lab,
            reason,
        }),
        Err(error) => Err(LabError::Ask {
            lab: directory.lab,
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

/// Run directory and pin directory of a lab's daemon.
///
/// # Errors
/// If no lab of that name is up, or it is up without a daemon.
pub fn daemon_of(lab: &str) -> Result<(PathBuf, PathBuf), LabError> {
    let directory = choose(Some(lab))?;
    match directory.plan()?.daemon {
        Some(_) => Ok((directory.daemon(), directory.pins())),
        None => Err(LabError::NoDaemon(lab.to_owned())),
    }
}

fn exec_command(lab: Option<&str>, host: &str, words: &[OsString]) -> Result<Command, LabError> {
    let directory = choose(lab)?;
    let plan = directory.plan()?;
    if !plan.hosts.iter().any(|other| other.name == host) {
        let hosts = names(&plan.hosts);
        let instead = match fatpath_scenario::nearest(host, hosts.iter().map(String::as_str)) {
            Some(meant) => format!("did you mean {meant}?"),
            None => format!("its hosts: {}", hosts.join(", ")),
        };
        return Err(LabError::NoHost {
            lab: directory.lab,
            host: host.to_owned(),
            instead,
        });
    }
    let (program, arguments) = words
        .split_first()
        .ok_or_else(|| io::Error::other("no program is named"))?;
    let mut command = hosts::command(&plan, host, program)?;
    command.args(arguments);
    Ok(command)
}

fn choose(name: Option<&str>) -> Result<LabDirectory, LabError> {
    let directories = lab_directory::all()?;
    let mut names: Vec<String> = directories
        .into_iter()
        .map(|directory| directory.lab)
        .collect();
    match name {
        Some(name) if names.iter().any(|other| other == name) => Ok(LabDirectory::of(name)),
        Some(name) => Err(LabError::Unknown(name.to_owned())),
        None if names.len() == 1 => Ok(LabDirectory::of(&names.remove(0))),
        None => Err(LabError::NoChoice(names)),
    }
}

fn system(what: &'static str) -> impl FnOnce(io::Error) -> UpError {
    move |error| UpError::System { what, error }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Descriptors of this process of the lock of all labs: one is this test's, another that of who waits for it.
    fn waiting_for_the_lock() -> bool {
        let descriptors = fs::read_dir("/proc/self/fd").unwrap().flatten();
        let files = descriptors.filter_map(|entry| fs::read_link(entry.path()).ok());
        files.filter(|file| file.ends_with("lab/.lock")).count() > 1
    }

    fn until(what: &str, mut ask: impl FnMut() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !ask() {
            assert!(Instant::now() < deadline, "waited for {what}");
            sleep(POLL_INTERVAL);
        }
    }

    /// Holds the journal's lock, as a supervisor does.
    fn supervisor(directory: &LabDirectory) -> Child {
        let journal = directory.path("journal");
        let mut shell = Command::new("sh");
        let script = "exec 9>>\"$0\"; flock 9; exec sleep 60";
        let child = shell.args(["-c", script]).arg(journal).spawn().unwrap();
        until("the journal to be locked", || directory.is_supervised());
        directory.set_supervisor(child.id()).unwrap();
        child
    }

    #[test]
    fn a_lab_that_comes_up_while_it_is_taken_down_leaves_no_supervisor_behind() {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: not root");
            return;
        }
        let name = format!("t-race-{}", std::process::id());
        let directory = LabDirectory::of(&name);
        let all = lab_directory::lock_all().unwrap();
        fs::create_dir(directory.path("")).unwrap();
        fs::write(directory.path("journal"), "").unwrap();
        // `down` sees a folder without a supervisor, and waits for `up`.
        let down = std::thread::spawn(move || super::down(Some(&name)).map(drop));
        until("`down` to wait", waiting_for_the_lock);
        let mut supervisor = supervisor(&directory);
        drop(all);
        // This process is its parent, and reaps it.
        until("the supervisor to end", || {
            let ended = matches!(supervisor.try_wait(), Ok(Some(_)));
            ended || down.is_finished()
        });
        let lives = matches!(supervisor.try_wait(), Ok(None));
        let _ = supervisor.kill();
        let _ = supervisor.wait();
        down.join().unwrap().unwrap();
        assert!(!lives, "a supervisor without its folder");
        assert!(!directory.exists());
    }
}

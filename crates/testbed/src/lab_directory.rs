// SPDX-License-Identifier: MIT OR Apache-2.0
//! A lab's folder under /run/fatpath/lab: its plan, its journal, the logs of its supervisor and daemon.
//!
//! Files and locks only: it changes nothing of the machine. Two locks: [`lock_all`] makes one
//! bring-up or take-down happen at a time; the journal of a lab is locked by its supervisor for as long
//! as that lives, so a lab whose journal is free was left over. Both files are root's alone, for who
//! can open a file can lock it. Start with [`LabDirectory`].

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use fatpath_scenario::plan::Plan;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::journal::{self, Change};
use crate::machine;
use crate::records::Records;
use crate::session::Session;

const ROOT: &str = "/run/fatpath/lab";
/// How long [`lock_all`] waits. Bringing up takes seconds, most of them for the daemon.
const LOCK_LIMIT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The folder of one lab.
#[derive(Clone, Debug)]
pub struct LabDirectory {
    /// The lab's name.
    pub lab: String,
    folder: PathBuf,
}

/// Held while labs are brought up or taken down; released when dropped.
#[derive(Debug)]
pub struct AllLabs(#[allow(dead_code, reason = "the lock lives as long as the file")] File);

/// Waits until no other process brings a lab up or takes one down.
///
/// # Errors
/// If /run/fatpath/lab cannot be made or locked, or another process has it locked for a minute.
pub fn lock_all() -> io::Result<AllLabs> {
    fs::create_dir_all(ROOT)?;
    let file = open_private(&Path::new(ROOT).join(".lock"))?;
    lock_within(&file, LOCK_LIMIT)?;
    Ok(AllLabs(file))
}

fn lock_within(file: &File, limit: Duration) -> io::Result<()> {
    let deadline = Instant::now() + limit;
    loop {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) if Instant::now() < deadline => sleep(POLL_INTERVAL),
            Err(Errno::WOULDBLOCK) => {
                let holder =
                    holder(file).map_or("a process".to_owned(), |pid| format!("process {pid}"));
                let held = format!("{holder} has had it locked for {} s", limit.as_secs());
                return Err(io::Error::new(ErrorKind::TimedOut, held));
            }
            outcome => return Ok(outcome?),
        }
    }
}

/// The process that has locked a file. Source: proc_locks(5), fields 2, 5 and 6.
fn holder(file: &File) -> Option<u32> {
    let inode = format!(":{}", file.metadata().ok()?.ino());
    let locks = fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, "FLOCK", _, _, pid, file, ..] = fields[..] else {
            return None;
        };
        pid.parse().ok().filter(|_| file.ends_with(&inode))
    })
}

/// Opens a file for appending that nobody but root can open; it is made if it is not there.
fn open_private(path: &Path) -> io::Result<File> {
    let mode = 0o600;
    let mut options = File::options();
    let file = options.append(true).create(true).mode(mode).open(path)?;
    file.set_permissions(Permissions::from_mode(mode))?;
    Ok(file)
}

/// The directories of all labs, up or left over, by name.
///
/// # Errors
/// If /run/fatpath/lab cannot be read.
pub fn all() -> io::Result<Vec<LabDirectory>> {
    let entries = match fs::read_dir(ROOT) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(vec![]),
        entries => entries?,
    };
    let mut directories = vec![];
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_dir() {
            directories.push(LabDirectory::of(&name));
        }
    }
    directories.sort_by(|a, b| a.lab.cmp(&b.lab));
    Ok(directories)
}

/// The changes of all labs but this one.
///
/// # Errors
/// If a directory cannot be read.
pub fn changes_of_others(lab: &str) -> io::Result<Vec<Change>> {
    let mut changes = vec![];
    for directory in all()?.into_iter().filter(|directory| directory.lab != lab) {
        changes.extend(directory.changes()?);
    }
    Ok(changes)
}

impl LabDirectory {
    /// The directory of the lab of that name, whether there is one or not.
    pub fn of(lab: &str) -> LabDirectory {
        LabDirectory {
            lab: lab.to_owned(),
            folder: Path::new(ROOT).join(lab),
        }
    }

    /// Makes the folder, with the plan, what to record, and an empty journal. The lab goes with this
    /// process, until [`LabDirectory::disown`].
    ///
    /// # Errors
    /// If there is a directory of that name already, or /run cannot be written.
    pub fn create(&self, plan: &Plan, records: &Records) -> io::Result<()> {
        fs::create_dir(&self.folder)?;
        open_private(&self.journal_file())?;
        fs::write(self.owner_file(), std::process::id().to_string())?;
        fs::write(self.records_file(), serde_json::to_vec_pretty(records)?)?;
        fs::write(self.plan_file(), serde_json::to_vec_pretty(plan)?)
    }

    /// Whether there is such a lab, up or left over.
    pub fn exists(&self) -> bool {
        self.folder.exists()
    }

    /// Whether the lab's supervisor lives. Who is not root cannot ask the lock, and goes by its process id.
    pub fn is_supervised(&self) -> bool {
        match File::open(self.journal_file()) {
            Ok(file) => flock(&file, FlockOperation::NonBlockingLockShared).is_err(),
            Err(error) => {
                let lives = |pid| machine::start_ticks(pid).is_some();
                error.kind() == ErrorKind::PermissionDenied
                    && self.noted_supervisor().is_some_and(lives)
            }
        }
    }

    /// Opens the journal for the supervisor and locks it until the file is closed.
    ///
    /// # Errors
    /// If there is no journal, or the lab went, and perhaps another of its name came, before it was locked.
    pub fn lock_journal(&self) -> io::Result<File> {
        let file = File::options().append(true).open(self.journal_file())?;
        flock(&file, FlockOperation::LockExclusive)?;
        match fs::metadata(self.journal_file())?.ino() == file.metadata()?.ino() {
            true => Ok(file),
            false => Err(io::Error::new(ErrorKind::NotFound, "the lab is gone")),
        }
    }

    /// Notes the session that brings the lab up.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn note_session(&self) -> io::Result<()> {
        let session = Session::of_this_process();
        fs::write(self.session_file(), serde_json::to_vec(&session)?)
    }

    /// The session that brought the lab up; none of one that goes with its process.
    pub fn session(&self) -> Option<Session> {
        let noted = fs::read(self.session_file()).ok()?;
        serde_json::from_slice(&noted).ok()?
    }

    /// What the lab has changed, in order; nothing if there is no journal.
    ///
    /// # Errors
    /// If the journal cannot be read.
    pub fn changes(&self) -> io::Result<Vec<Change>> {
        match fs::read_to_string(self.journal_file()) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(vec![]),
            text => Ok(journal::read(&text?)),
        }
    }

    /// The plan that the lab was brought up from.
    ///
    /// # Errors
    /// If there is none, or it cannot be read.
    pub fn plan(&self) -> io::Result<Plan> {
        Ok(serde_json::from_slice(&fs::read(self.plan_file())?)?)
    }

    /// What is to be recorded of the lab.
    ///
    /// # Errors
    /// If it is not there, or cannot be read.
    pub fn records(&self) -> io::Result<Records> {
        Ok(serde_json::from_slice(&fs::read(self.records_file())?)?)
    }

    /// Notes the supervisor's process id, for people and for `lab down`.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn set_supervisor(&self, pid: u32) -> io::Result<()> {
        fs::write(self.folder.join("supervisor.pid"), pid.to_string())
    }

    /// The supervisor's process id, if it lives.
    pub fn supervisor(&self) -> Option<u32> {
        self.noted_supervisor().filter(|_| self.is_supervised())
    }

    fn noted_supervisor(&self) -> Option<u32> {
        let text = fs::read_to_string(self.folder.join("supervisor.pid")).ok()?;
        text.parse().ok()
    }

    /// Notes that the lab stays when the process that made it goes.
    ///
    /// # Errors
    /// If the file cannot be removed.
    pub fn disown(&self) -> io::Result<()> {
        fs::remove_file(self.owner_file())
    }

    /// Whether the process with which the lab goes is gone; not for a lab that goes with none.
    pub fn is_orphaned(&self) -> bool {
        let text = fs::read_to_string(self.owner_file()).unwrap_or_default();
        let owner = text.parse().ok();
        owner.is_some_and(|pid: u32| machine::start_ticks(pid).is_none())
    }

    /// The run directory of the lab's daemon.
    pub fn daemon(&self) -> PathBuf {
        self.path("daemon")
    }

    /// The directory of the pins of the lab's daemon.
    pub fn pins(&self) -> PathBuf {
        Path::new("/sys/fs/bpf").join(format!("fatpath-lab-{}", self.lab))
    }

    /// A file or folder of the directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Removes the folder and all in it.
    ///
    /// # Errors
    /// If it cannot be removed; that it is gone already is no error.
    pub fn remove(&self) -> io::Result<()> {
        match fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }

    fn journal_file(&self) -> PathBuf {
        self.folder.join("journal")
    }

    fn owner_file(&self) -> PathBuf {
        self.folder.join("owner.pid")
    }

    fn session_file(&self) -> PathBuf {
        self.folder.join("session.json")
    }

    fn records_file(&self) -> PathBuf {
        self.folder.join("records.json")
    }

    fn plan_file(&self) -> PathBuf {
        self.folder.join("plan.json")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_stays_locked_is_told_with_who_has_locked_it() {
        let path = std::env::temp_dir().join(format!("fatpath-lock-{}", std::process::id()));
        let first = open_private(&path).unwrap();
        let second = open_private(&path).unwrap();
        assert_eq!(first.metadata().unwrap().mode() & 0o777, 0o600);
        assert_eq!(holder(&first), None);
        lock_within(&first, Duration::ZERO).unwrap();
        let told = lock_within(&second, Duration::ZERO)
            .unwrap_err()
            .to_string();
        let us = std::process::id();
        assert!(told.contains(&format!("process {us} has had it")), "{told}");
        drop(first);
        // Another test's child may have the first file too, until it is another program.
        lock_within(&second, Duration::from_secs(10)).unwrap();
        fs::remove_file(path).unwrap();
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! One instance of fatpath: its directory, and the lock that only one daemon of it holds.

use crate::InstanceOptions;
use anyhow::{Context, Result, bail, ensure};
use fatpath_kernel::Places;
use fatpath_supervisor::Notice;
use rustix::fs::{FlockOperation, flock};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Where an instance lives.
#[derive(Clone, Debug)]
pub struct Instance {
    /// Directory of socket, lock and journal.
    pub run_dir: PathBuf,
    /// Pins and cgroup.
    pub places: Places,
}

/// Holds the instance's lock until it is dropped.
#[derive(Debug)]
pub struct Running {
    _lock: File,
    pid: PathBuf,
    ready: PathBuf,
}

/// Whose the instance's lock is.
#[derive(Debug)]
pub enum Lock {
    /// The caller's now.
    Taken(Running),
    /// The pid of a daemon.
    HeldBy(String),
}

/// [`Instance::gate_socket`], for who needs nothing else of an instance.
pub fn gate_socket_in(run_dir: &Path) -> PathBuf {
    run_dir.join("gate.sock")
}

impl Instance {
    /// The instance that the options name.
    ///
    /// # Errors
    /// When no cgroup 2 is mounted.
    pub fn new(options: &InstanceOptions, cgroup: Option<PathBuf>) -> Result<Instance> {
        let places = Places::new(options.pin_dir.clone(), cgroup)?;
        Ok(Instance {
            run_dir: options.run_dir.clone(),
            places,
        })
    }

    /// The API's Unix socket by which root changes things.
    pub fn socket(&self) -> PathBuf {
        self.run_dir.join("fatpath.sock")
    }

    /// The Unix socket that only reads.
    pub fn view_socket(&self) -> PathBuf {
        self.run_dir.join("view.sock")
    }

    /// The Unix socket that says to anybody whether Rude TCP is enabled, and whether the user who asks may send datagrams so.
    pub fn gate_socket(&self) -> PathBuf {
        gate_socket_in(&self.run_dir)
    }

    pub(crate) fn remove_sockets(&self) {
        for path in [self.socket(), self.view_socket(), self.gate_socket()] {
            let _ = std::fs::remove_file(path);
        }
    }

    /// Becomes the one daemon of this instance.
    ///
    /// # Errors
    /// When another one runs: its pid is named.
    pub fn lock(&self) -> Result<Running> {
        match self.try_lock()? {
            Lock::Taken(running) => Ok(running),
            Lock::HeldBy(pid) => bail!("another fatpath daemon is already running: pid {pid}"),
        }
    }

    /// The same, where another one is no error.
    ///
    /// # Errors
    /// Without root's rights, or when the lock's file cannot be opened.
    pub fn try_lock(&self) -> Result<Lock> {
        ensure!(
            rustix::process::geteuid().is_root(),
            "run as root: loading BPF and changing sysctls need it"
        );
        std::fs::create_dir_all(&self.run_dir)
            .with_context(|| format!("cannot make {}", self.run_dir.display()))?;
        let path = self.run_dir.join("daemon.pid");
        loop {
            let mut lock = open_lock(&path)?;
            if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
                let mut pid = String::new();
                lock.read_to_string(&mut pid)?;
                return Ok(Lock::HeldBy(pid.trim().to_owned()));
            }
            // The one before us removes the file when it ends: what we locked may be gone.
            if is_at(&lock, &path) {
                lock.set_len(0)?;
                writeln!(lock, "{}", std::process::id())?;
                let ready = self.run_dir.join("ready");
                // A daemon that was killed has left its own.
                let _ = std::fs::remove_file(&ready);
                return Ok(Lock::Taken(Running {
                    _lock: lock,
                    pid: path,
                    ready,
                }));
            }
        }
    }
}

fn open_lock(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    // Whoever may open a file may lock it (flock(2)), and so keep the daemon from starting.
    options.mode(0o600);
    options
        .open(path)
        .with_context(|| format!("cannot open {}", path.display()))
}

fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(held), Ok(there)) => held.ino() == there.ino(),
        _ => false,
    }
}

impl Running {
    /// Says that the daemon answers now: to systemd, and by a file.
    pub(crate) fn say_ready(&self) -> Result<()> {
        std::fs::write(&self.ready, "").context("cannot write the ready file")?;
        Notice::Ready.send();
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.ready);
        let _ = std::fs::remove_file(&self.pid);
    }
}

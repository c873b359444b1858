// SPDX-License-Identifier: MIT OR Apache-2.0
//! Network namespaces, made and named as iproute2 does, so that `ip netns` shows them.
//!
//! A namespace is removed only when fatpath made it: each has a record under /run/fatpath/netns
//! with its identity.
#![allow(unsafe_code)] // `unshare`, and `Command::pre_exec`, whose closure must be async-signal-safe.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::process::CommandExt;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread;

use rustix::fs::statfs;
use rustix::io::Errno;
use rustix::mount::{self, MountPropagationFlags, UnmountFlags};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

use crate::netlink::Netlink;

const NAMES_DIR: &str = "/run/netns";
const RECORDS_DIR: &str = "/run/fatpath/netns";
/// NSFS_MAGIC of linux/magic.h: what a file is once a namespace is mounted on it.
const NSFS_MAGIC: u64 = 0x6e73_6673;

/// Why something with a namespace failed.
#[derive(Debug, thiserror::Error)]
pub enum NamespaceError {
    /// No file of that name can be under /run/netns.
    #[error("`{0}` cannot name a namespace: use letters, digits, `-`, `_` and `.`")]
    BadName(String),
    /// There is one already.
    #[error("a namespace `{0}` exists already: choose another name, or `ip netns del {0}`")]
    InUse(String),
    /// There is none.
    #[error("no such namespace: `{0}`; `ip netns` lists them")]
    NotFound(String),
    /// It is someone else's.
    #[error(
        "the namespace `{0}` was not made by fatpath and is left alone; to delete it: `ip netns del {0}`"
    )]
    NotOurs(String),
    /// The kernel refuses for want of a capability.
    #[error(
        "{doing} namespace `{name}`: not permitted: run as root (CAP_SYS_ADMIN and CAP_NET_ADMIN)"
    )]
    NotPermitted {
        /// What was tried.
        doing: &'static str,
        /// With which namespace.
        name: String,
    },
    /// Anything else.
    #[error("{doing} namespace `{name}`: {error}")]
    Io {
        /// What was tried.
        doing: &'static str,
        /// With which namespace.
        name: String,
        /// What the system said.
        error: io::Error,
    },
    /// The kernel knows no such sysctl, or refuses the value.
    #[error("sysctl {sysctl} in namespace `{name}`: {error}")]
    Sysctl {
        /// The sysctl.
        sysctl: String,
        /// The namespace.
        name: String,
        /// What the system said.
        error: io::Error,
    },
}

/// A handle on a network namespace. Clones are the same namespace; dropping removes nothing.
#[derive(Clone, Debug)]
pub struct Namespace {
    name: String,
    file: Arc<OwnedFd>,
}

impl Namespace {
    /// Makes a namespace with its loopback device up. It stays until [`remove_namespace`].
    pub fn create(name: &str) -> Result<Namespace, NamespaceError> {
        check_name(name)?;
        let failed = failure("creating", name);
        prepare_names_dir().map_err(&failed)?;
        // A thread of its own: it leaves the namespace of this process for good.
        let made = thread::scope(|scope| scope.spawn(|| make_here(name)).join());
        let made = made.unwrap_or_else(|panic| resume_unwind(panic));
        match made {
            Ok(()) => Namespace::open(name),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(NamespaceError::InUse(name.into()))
            }
            Err(error) => {
                // What was made so far; if even that fails, the first error says more.
                let _ = remove_namespace(name);
                Err(failed(error))
            }
        }
    }

    /// Opens a namespace by the name that `ip netns` shows.
    pub fn open(name: &str) -> Result<Namespace, NamespaceError> {
        check_name(name)?;
        let file = match File::open(mount_point(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(NamespaceError::NotFound(name.into()));
            }
            file => file.map_err(failure("opening", name))?,
        };
        Ok(Namespace {
            name: name.into(),
            file: Arc::new(file.into()),
        })
    }

    /// The name under which `ip netns` shows it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The kernel's handle on it.
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// A command that will run inside. Nothing but the network is another: same files, same pids.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        let file = Arc::clone(&self.file);
        // SAFETY: between fork and exec the closure makes one system call and allocates nothing.
        unsafe { command.pre_exec(move || Ok(enter(&file)?)) };
        command
    }

    /// Runs `work` inside, on a thread of its own, and waits for it. Sockets and files that it
    /// opens there stay in the namespace wherever they are used later.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, NamespaceError> {
        let inside = || enter(&self.file).map(|()| work());
        let result = thread::scope(|scope| scope.spawn(inside).join());
        let result = result.unwrap_or_else(|panic| resume_unwind(panic));
        result.map_err(|errno| failure("entering", &self.name)(errno.into()))
    }

    /// Sets a sysctl of this namespace, such as `net.ipv4.tcp_rmem`. Where a device's name contains
    /// a dot, write slashes instead of dots.
    pub fn set_sysctl(&self, sysctl: &str, value: &str) -> Result<(), NamespaceError> {
        let path = sysctl_path(sysctl);
        // `fs::write` would create a misspelt one, were /proc/sys not what it is.
        let write = || {
            io::Write::write_all(
                &mut File::options().write(true).open(&path)?,
                value.as_bytes(),
            )
        };
        self.run(write)?
            .map_err(|error| self.sysctl_error(sysctl, error))
    }

    /// Reads a sysctl of this namespace.
    pub fn sysctl(&self, sysctl: &str) -> Result<String, NamespaceError> {
        let path = sysctl_path(sysctl);
        let value = self.run(|| fs::read_to_string(&path))?;
        value
            .map(|text| text.trim().into())
            .map_err(|error| self.sysctl_error(sysctl, error))
    }

    fn sysctl_error(&self, sysctl: &str, error: io::Error) -> NamespaceError {
        NamespaceError::Sysctl {
            sysctl: sysctl.into(),
            name: self.name.clone(),
            error,
        }
    }
}

/// Removes a namespace that fatpath made, also one left over from a crash. One that does not exist
/// is no error. Processes inside keep their network until they end.
pub fn remove_namespace(name: &str) -> Result<(), NamespaceError> {
    check_name(name)?;
    let failed = failure("removing", name);
    let path = mount_point(name);
    let found = match fs::metadata(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        metadata => Some(identity(&metadata.map_err(&failed)?)),
    };
    match (found, recorded_identity(name)) {
        (None, _) => {}
        (Some(_), None) => return Err(NamespaceError::NotOurs(name.into())),
        // Made by us only as far as the file: nothing was mounted on it yet.
        (Some(_), Some(_)) if !is_namespace(&path) => fs::remove_file(&path).map_err(&failed)?,
        (Some(found), Some(recorded)) if found == recorded => unmount(&path).map_err(&failed)?,
        (Some(_), Some(_)) => return Err(NamespaceError::NotOurs(name.into())),
    }
    match fs::remove_file(record(name)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(error)),
        _ => Ok(()),
    }
}

fn unmount(path: &Path) -> io::Result<()> {
    mount::unmount(path, UnmountFlags::DETACH)?;
    fs::remove_file(path)
}

/// Gives the calling thread a new namespace, and that namespace the name.
fn make_here(name: &str) -> io::Result<()> {
    const HERE: &str = "/proc/thread-self/ns/net";
    // SAFETY: of this thread alone, the network changes; it shares neither files nor memory less.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET)? };
    // Open until it is mounted: without a user the file would go, and begin anew.
    let namespace = File::open(HERE)?;
    let identity = identity(&namespace.metadata()?);
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(mount_point(name))?;
    if let Err(error) = fs::write(record(name), identity) {
        // Without the record nobody else takes the name for ours.
        let _ = fs::remove_file(mount_point(name));
        return Err(error);
    }
    mount::mount_bind(HERE, mount_point(name))?;
    Netlink::open()?.set_loopback_up()
}

/// Makes /run/netns a shared mount, as iproute2 does: so names made here appear in other mount
/// namespaces, and those removed there do not linger here.
fn prepare_names_dir() -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(NAMES_DIR)?;
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(RECORDS_DIR)?;
    let share = || {
        let shared = MountPropagationFlags::SHARED | MountPropagationFlags::REC;
        mount::mount_change(NAMES_DIR, shared)
    };
    match share() {
        Err(Errno::INVAL) => {
            mount::mount_bind_recursive(NAMES_DIR, NAMES_DIR).and_then(|()| share())
        }
        done => done,
    }
    .map_err(io::Error::from)
}

fn enter(file: &OwnedFd) -> rustix::io::Result<()> {
    move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
}

fn check_name(name: &str) -> Result<(), NamespaceError> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let well_formed =
        (1..=200).contains(&name.len()) && name.bytes().all(fits) && !name.starts_with('.');
    if well_formed {
        Ok(())
    } else {
        Err(NamespaceError::BadName(name.into()))
    }
}

fn failure<'a>(doing: &'static str, name: &'a str) -> impl Fn(io::Error) -> NamespaceError + 'a {
    move |error| match error.kind() {
        io::ErrorKind::PermissionDenied => NamespaceError::NotPermitted {
            doing,
            name: name.into(),
        },
        _ => NamespaceError::Io {
            doing,
            name: name.into(),
            error,
        },
    }
}

fn mount_point(name: &str) -> PathBuf {
    Path::new(NAMES_DIR).join(name)
}

fn record(name: &str) -> PathBuf {
    Path::new(RECORDS_DIR).join(name)
}

fn recorded_identity(name: &str) -> Option<String> {
    fs::read_to_string(record(name)).ok()
}

/// What no two namespaces have in common. The kernel gives the inode number of one that is gone to
/// the next that is made, so the moment at which the file began is part of it.
fn identity(metadata: &Metadata) -> String {
    let (inode, since, ns) = (metadata.ino(), metadata.ctime(), metadata.ctime_nsec());
    format!("{inode} {since}.{ns:09}")
}

fn is_namespace(path: &Path) -> bool {
    statfs(path).is_ok_and(|filesystem| filesystem.f_type as u64 == NSFS_MAGIC)
}

fn sysctl_path(sysctl: &str) -> PathBuf {
    let relative = if sysctl.contains('/') {
        sysctl.into()
    } else {
        sysctl.replace('.', "/")
    };
    Path::new("/proc/sys").join(relative)
}

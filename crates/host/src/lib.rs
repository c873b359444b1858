// SPDX-License-Identifier: MIT OR Apache-2.0
//! What fatpath changes on the host outside BPF: sysctls, route metrics, a mount. Every
//! change is noted in a journal before it is made, so that it can be named, read back
//! and put back, also by another process after a crash.
//!
//! The administrator wins: what was changed by hand since is left alone, and said so.
//! Routes are those of the network namespace in which the daemon runs.
//!
//! What the kernel counts of the host is read in [`counters`]; `folders.rs` makes the
//! folders of the daemon.
//!
//! Start at [`Host`].

pub mod counters;
mod folders;
mod journal;
mod netlink;
mod routes;
mod sysctl;

pub use folders::{fatpath_group, make_folder, make_own_folder};
use journal::Journal;
pub use journal::JournalError;
pub use routes::RouteError;
pub use sysctl::{SysctlError, Sysctls};

use fatpath_api::Change;
use fatpath_netlink::Notification;
use fatpath_policy::{HostSettings, Prefix, RouteMetrics, SysctlName};
use std::path::{Path, PathBuf};

/// The changes of one fatpath instance to its host.
#[derive(Debug)]
pub struct Host {
    journal: Journal,
    sysctls: Sysctls,
    /// What kept routes from their metrics, as it was last said.
    refused: Vec<String>,
}

/// What became of one change when it was to be put back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PutBack {
    /// As it was before.
    Restored(String),
    /// Somebody changed it since: left alone.
    LeftAlone(String),
    /// It could not be put back.
    Failed(String),
}

/// Why a change to the host could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// The journal could not be kept, so no change was made.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A sysctl could not be read or written.
    #[error(transparent)]
    Sysctl(#[from] SysctlError),
    /// A route could not be read or written.
    #[error(transparent)]
    Route(#[from] RouteError),
}

impl Host {
    /// The changes that the journal in `run_dir` names, or none yet.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn open(run_dir: &Path) -> Result<Host, JournalError> {
        Ok(Host {
            journal: Journal::open(run_dir)?,
            sysctls: Sysctls::default(),
            refused: Vec::new(),
        })
    }

    /// Everything that is changed now.
    pub fn changes(&self) -> &[Change] {
        self.journal.changes()
    }

    /// Raises the sysctls that are lower than the policy needs. Answers a sentence for each that was
    /// raised, or left alone because somebody set it by hand since.
    ///
    /// # Errors
    /// When the journal or a sysctl cannot be written.
    pub fn raise(&mut self, settings: &HostSettings) -> Result<Vec<String>, HostError> {
        let mut said = Vec::new();
        for wanted in &settings.sysctls {
            said.extend(self.sysctls.raise(&mut self.journal, wanted)?);
        }
        Ok(said)
    }

    /// Raises what bounds the buffers of flows that no rule matches: what SO_RCVBUF and SO_SNDBUF take, and the sizes to
    /// which the kernel grows buffers by itself, these only where they are the kernel's own. Answers as [`Host::raise`].
    ///
    /// # Errors
    /// As of [`Host::raise`].
    pub fn raise_maxima(&mut self, at_least_bytes: u32) -> Result<Vec<String>, HostError> {
        let mut said = Vec::new();
        for name in [SysctlName::CoreRmemMax, SysctlName::CoreWmemMax] {
            said.extend(
                self.sysctls
                    .raise_to(&mut self.journal, name, at_least_bytes)?,
            );
        }
        for name in [SysctlName::TcpRmem, SysctlName::TcpWmem] {
            said.extend(
                self.sysctls
                    .raise_default(&mut self.journal, name, at_least_bytes)?,
            );
        }
        Ok(said)
    }

    /// The number that a sysctl would have without fatpath, of a triple the third; `None` where it cannot be read.
    pub fn without_us(&self, name: SysctlName) -> Option<u64> {
        self.sysctls.without_us(&self.journal, name)
    }

    /// Gives the routes the metrics that the policy needs, and takes away those that it does not. Answers a
    /// sentence for each route that changed, and for each that refused.
    ///
    /// # Errors
    /// When the journal cannot be written, or the table not be read.
    pub fn set_routes(&mut self, wanted: &[RouteMetrics]) -> Result<Vec<String>, HostError> {
        self.refused.clear();
        self.follow_routes(wanted)
    }

    /// The same when something changed since: a gateway moved, a link came back. A route that refuses as
    /// before is not mentioned again.
    ///
    /// # Errors
    /// As of [`Host::set_routes`].
    pub fn follow_routes(&mut self, wanted: &[RouteMetrics]) -> Result<Vec<String>, HostError> {
        let routes::Outcome { mut said, failed } = routes::set(&mut self.journal, wanted)?;
        let new = failed.iter().filter(|what| !self.refused.contains(what));
        said.extend(new.cloned());
        self.refused = failed;
        Ok(said)
    }

    /// Notes that the BPF file system is about to be mounted, so that it can be unmounted.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn note_mount(&mut self, at: PathBuf) -> Result<(), JournalError> {
        self.journal.note(Change::Mount { at })
    }

    /// The mount that was noted failed.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn forget_mount(&mut self, at: PathBuf) -> Result<(), JournalError> {
        self.journal.forget(&Change::Mount { at })
    }

    /// Puts everything back, the last change first. A file system that others use meanwhile stays mounted.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn put_back(&mut self) -> Result<Vec<PutBack>, JournalError> {
        let mut outcomes = Vec::new();
        for change in self.journal.changes().to_vec().into_iter().rev() {
            outcomes.push(match &change {
                Change::Sysctl {
                    name,
                    before,
                    after,
                } => self.sysctls.put_back(name, before, after),
                Change::RouteAdded { .. } | Change::RouteChanged { .. } => {
                    routes::put_back(&change)
                }
                Change::Mount { at } => unmount(at),
            });
            // What failed stays in the journal: the next unload tries it again.
            if !matches!(outcomes.last(), Some(PutBack::Failed(_))) {
                self.journal.forget(&change)?;
            }
        }
        Ok(outcomes)
    }
}

fn unmount(at: &Path) -> PutBack {
    let name = format!("the BPF file system at {}", at.display());
    let is_used = std::fs::read_dir(at).is_ok_and(|mut entries| {
        entries.any(|e| e.is_ok_and(|e| !e.file_name().to_string_lossy().ends_with(".debug")))
    });
    if is_used {
        return PutBack::LeftAlone(format!("{name}: others use it"));
    }
    match rustix::mount::unmount(at, rustix::mount::UnmountFlags::empty()) {
        Ok(()) => PutBack::Restored(format!("{name}: unmounted")),
        Err(error) => PutBack::Failed(format!("{name}: {error}")),
    }
}

/// Whether something changed that may concern the metrics of routes.
pub fn may_concern_routes(changes: &[Notification], wanted: &[RouteMetrics]) -> bool {
    let prefixes: Vec<Prefix> = wanted.iter().map(|metrics| metrics.prefix).collect();
    !prefixes.is_empty()
        && changes.iter().any(|change| match change {
            Notification::Message { kind, body } => netlink::concerns(*kind, body, &prefixes),
            Notification::Lost => true,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_be_put_back_stays_in_the_journal() {
        let dir = tempfile::tempdir().unwrap();
        let mut host = Host::open(dir.path()).unwrap();
        let gone = Change::Sysctl {
            name: "net.no_such_sysctl".into(),
            before: "1".into(),
            after: "2".into(),
        };
        host.journal.note(gone.clone()).unwrap();
        assert!(matches!(host.put_back().unwrap()[..], [PutBack::Failed(_)]));
        assert_eq!(Host::open(dir.path()).unwrap().changes(), [gone]);
    }
}

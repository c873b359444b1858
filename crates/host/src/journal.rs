// SPDX-License-Identifier: MIT OR Apache-2.0
//! The list of what is changed, on disk before the change is made.

use fatpath_api::Change;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The journal's file in the run directory.
const FILE: &str = "changes.json";

/// The journal could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("the journal {}: {source}", path.display())]
pub struct JournalError {
    path: PathBuf,
    source: io::Error,
}

/// The changes that are in force.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    changes: Vec<Change>,
}

impl Journal {
    pub(crate) fn open(run_dir: &Path) -> Result<Journal, JournalError> {
        let path = run_dir.join(FILE);
        let changes = match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(io::Error::from),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        };
        match changes {
            Ok(changes) => Ok(Journal { path, changes }),
            Err(source) => Err(JournalError { path, source }),
        }
    }

    /// The changes in the order in which they were made.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    pub(crate) fn note(&mut self, change: Change) -> Result<(), JournalError> {
        self.changes.push(change);
        self.save()
    }

    /// Puts `new` in the place of `old`.
    pub(crate) fn replace(&mut self, old: &Change, new: Change) -> Result<(), JournalError> {
        if let Some(place) = self.changes.iter_mut().find(|change| *change == old) {
            *place = new;
        }
        self.save()
    }

    pub(crate) fn forget(&mut self, change: &Change) -> Result<(), JournalError> {
        self.changes.retain(|other| other != change);
        self.save()
    }

    /// A reader sees the old file or the new one, never half of one.
    fn save(&self) -> Result<(), JournalError> {
        let write = || {
            if self.changes.is_empty() {
                return match std::fs::remove_file(&self.path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                    _ => Ok(()),
                };
            }
            let new = self.path.with_extension("new");
            let mut file = std::fs::File::create(&new)?;
            file.write_all(&serde_json::to_vec_pretty(&self.changes)?)?;
            file.sync_all()?;
            std::fs::rename(&new, &self.path)
        };
        write().map_err(|source| JournalError {
            path: self.path.clone(),
            source,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sysctl(name: &str) -> Change {
        Change::Sysctl {
            name: name.into(),
            before: "1".into(),
            after: "2".into(),
        }
    }

    #[test]
    fn what_is_noted_is_read_by_the_next_process_and_what_is_forgotten_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(dir.path()).unwrap();
        journal.note(sysctl("a")).unwrap();
        journal.note(sysctl("b")).unwrap();
        journal.forget(&sysctl("a")).unwrap();
        assert_eq!(Journal::open(dir.path()).unwrap().changes(), [sysctl("b")]);
        journal.forget(&sysctl("b")).unwrap();
        assert!(!dir.path().join(FILE).exists());
        assert!(Journal::open(dir.path()).unwrap().changes().is_empty());
    }

    #[test]
    fn a_journal_that_is_no_journal_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(FILE), "{").unwrap();
        assert!(Journal::open(dir.path()).is_err());
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The file that keeps what peers have used of their limits, so that a responder that starts again gives them no more.

use fatpath_measure::Ledger;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// What is wrong with the file.
#[derive(Debug, thiserror::Error)]
pub enum UsedError {
    /// Another responder counts in it.
    #[error("another responder uses {0}: give this one a file of its own, --used FILE")]
    Busy(PathBuf),
    /// It says something else.
    #[error("{0} does not say what peers have used: remove it, and all begin today anew")]
    Content(PathBuf),
    /// The kernel's.
    #[error("{path}: {error}", path = .0.display(), error = .1)]
    Io(PathBuf, io::Error),
}

/// A file of its own for each responder.
pub struct UsedFile {
    path: PathBuf,
    /// Held while the responder runs.
    _lock: File,
}

impl UsedFile {
    /// Takes the file, and its folder where there is none, for a responder; nobody else may have it.
    ///
    /// # Errors
    /// See [`UsedError`].
    pub fn take(path: &Path) -> Result<(UsedFile, Ledger), UsedError> {
        let lock_path = beside(path, "lock");
        let failed = |error| UsedError::Io(lock_path.clone(), error);
        let mut options = OpenOptions::new();
        // Whoever may open a file may lock it (flock(2)), and so keep a responder from starting.
        options.write(true).create(true).truncate(false).mode(0o600);
        let lock = options.open(&lock_path).map_err(failed)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| UsedError::Busy(path.to_owned()))?;
        let ledger = UsedFile::read(path)?;
        let file = UsedFile {
            path: path.to_owned(),
            _lock: lock,
        };
        file.write(&ledger)?;
        Ok((file, ledger))
    }

    /// What it says; nobody has used anything where there is none.
    ///
    /// # Errors
    /// See [`UsedError`].
    pub fn read(path: &Path) -> Result<Ledger, UsedError> {
        match fs::read_to_string(path) {
            Ok(text) => {
                serde_json::from_str(&text).map_err(|_| UsedError::Content(path.to_owned()))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Ledger::default()),
            Err(error) => Err(UsedError::Io(path.to_owned(), error)),
        }
    }

    /// The same; `None`: that is for root and the responder's user to see.
    ///
    /// # Errors
    /// See [`UsedError`].
    pub fn seen(path: &Path) -> Result<Option<Ledger>, UsedError> {
        match UsedFile::read(path) {
            Err(UsedError::Io(_, error)) if error.kind() == ErrorKind::PermissionDenied => Ok(None),
            read => read.map(Some),
        }
    }

    /// Whether a responder uses it; `None`: that is for root and the responder's user to see.
    pub fn is_used(path: &Path) -> Option<bool> {
        match File::open(beside(path, "lock")) {
            Ok(lock) => Some(flock(&lock, FlockOperation::NonBlockingLockShared).is_err()),
            Err(error) if error.kind() == ErrorKind::NotFound => Some(false),
            Err(_) => None,
        }
    }

    /// Writes it anew: whoever reads has the old one or the new one, also after a crash.
    ///
    /// # Errors
    /// The kernel's.
    pub fn write(&self, ledger: &Ledger) -> Result<(), UsedError> {
        let failed = |error| UsedError::Io(self.path.clone(), error);
        let new = beside(&self.path, "new");
        let text = serde_json::to_string(ledger).map_err(|error| failed(error.into()))?;
        let written = || -> io::Result<()> {
            let mut file = File::create(&new)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&new, &self.path)?;
            File::open(folder_of(&self.path))?.sync_all()
        };
        written().map_err(failed)
    }

    /// Makes its folder where there is none, of that user.
    ///
    /// # Errors
    /// The kernel's.
    pub fn make_folder(path: &Path, owner: Option<(u32, u32)>) -> Result<(), UsedError> {
        let folder = folder_of(path);
        if folder.exists() {
            return Ok(());
        }
        let made = || -> io::Result<()> {
            DirBuilder::new()
                .recursive(true)
                .mode(0o755)
                .create(folder)?;
            match owner {
                Some((uid, gid)) => std::os::unix::fs::chown(folder, Some(uid), Some(gid)),
                None => Ok(()),
            }
        };
        made().map_err(|error| UsedError::Io(folder.to_owned(), error))
    }
}

fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test ends where it cannot go on
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn one_responder_at_a_time_uses_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state/used.json");
        assert_eq!(UsedFile::is_used(&path), Some(false));
        UsedFile::make_folder(&path, None).unwrap();
        let (file, ledger) = UsedFile::take(&path).unwrap();
        assert_eq!(UsedFile::is_used(&path), Some(true));
        let lock = fs::metadata(beside(&path, "lock")).unwrap();
        assert_eq!(lock.permissions().mode() & 0o777, 0o600);
        assert!(matches!(UsedFile::take(&path), Err(UsedError::Busy(_))));
        assert_eq!(UsedFile::read(&path).unwrap(), ledger);
        drop(file);
        assert_eq!(UsedFile::is_used(&path), Some(false));
        fs::write(&path, "{").unwrap();
        assert!(matches!(UsedFile::take(&path), Err(UsedError::Content(_))));
    }
}

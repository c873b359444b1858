// SPDX-License-Identifier: MIT OR Apache-2.0
//! The target folder: everything is opened below it, and by nothing that leads out of it (`openat2`, RESOLVE_BENEATH).

use super::part::{Part, PartSpec};
use crate::journal::{Header, Journal};
use crate::names::{OURS, checked, shown};
use crate::protocol::{Entry, Kind, Outcome, Receives};
use anyhow::{Context, Result};
use rustix::fs::{
    AtFlags, FileType, FlockOperation, Mode, OFlags, ResolveFlags, Stat, chmodat, flock, mkdirat,
    openat, openat2, renameat, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// Files from this size on have a journal; what is missing of a smaller one is all of it.
const JOURNAL_FROM_BYTES: u64 = 4 << 20;
/// Folders that stay open.
const MOST_FOLDERS: usize = 128;
/// Stretches that are asked for of a file, at most.
const MOST_RANGES: usize = 10_000;

/// The target folder.
pub struct Target {
    /// `None`: it is not there, and nothing is to be written.
    root: Option<Arc<OwnedFd>>,
    receives: Receives,
    boot: [u8; 16],
    umask: u32,
    folders: HashMap<Vec<u8>, Arc<OwnedFd>>,
    /// Folders whose mode and times are to be set at the end.
    made: Vec<Entry>,
}

/// What is to be done for an entry.
pub enum Prepared {
    /// Nothing more.
    Done(Outcome),
    /// These are to be written.
    Part(Box<Part>, Vec<(u64, u64)>),
}

impl Target {
    /// Opens the folder, and makes it where it is missing.
    ///
    /// # Errors
    /// It is none, or cannot be made.
    pub fn open(receives: Receives) -> Result<Target> {
        let path = match receives.folder.as_slice() {
            b"" => Path::new("."),
            path => Path::new(OsStr::from_bytes(path)),
        };
        let name = shown(&receives.folder);
        if !receives.is_dry {
            std::fs::create_dir_all(path).with_context(|| format!("cannot make {name}"))?;
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(path, flags, Mode::empty());
        let root = match root {
            Err(Errno::NOENT) if receives.is_dry => None,
            root => Some(root.with_context(|| format!("cannot open the folder {name}"))?),
        };
        Ok(Target {
            root: root.map(Arc::new),
            receives,
            boot: boot_id(),
            umask: umask(),
            folders: HashMap::new(),
            made: vec![],
        })
    }

    /// What is to be done for `entry`.
    pub fn prepare(&mut self, entry: &Entry) -> Prepared {
        self.try_prepare(entry)
            .unwrap_or_else(|why| Prepared::Done(Outcome::Failed(why)))
    }

    fn try_prepare(&mut self, entry: &Entry) -> Result<Prepared, String> {
        let names = checked(&entry.path).map_err(|why| why.to_string())?;
        let asked = &self.receives.names;
        if !asked.is_empty() && !asked.iter().any(|name| name == names[0]) {
            return Err("the other end offers what was not asked for".to_owned());
        }
        let (name, above) = names.split_last().ok_or("an empty path")?;
        let is_plain = above.is_empty() && matches!(entry.kind, Kind::File { .. });
        if !self.receives.is_recursive && !is_plain {
            return Err("it is no file, and --recursive was not given".to_owned());
        }
        let text = |error: Errno| match error {
            Errno::LOOP => {
                "a symbolic link is in the way: nothing is written through one".to_owned()
            }
            error => io::Error::from(error).to_string(),
        };
        let folder = match self.folder(above) {
            Err(Errno::NOENT) if self.receives.is_dry => {
                return Ok(Prepared::Done(Outcome::WouldStore));
            }
            folder => folder.map_err(text)?,
        };
        let there = match statat(&*folder, *name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(there) => Some(there),
            Err(Errno::NOENT) => None,
            Err(error) => return Err(text(error)),
        };
        match &entry.kind {
            Kind::Folder => self.make_folder(entry, &folder, name, there.as_ref()),
            _ if is(there.as_ref(), FileType::Directory) => {
                Err("a folder of that name is there".to_owned())
            }
            Kind::Link { target } => {
                if !self.receives.is_dry {
                    make_link(&folder, name, target).map_err(text)?;
                }
                Ok(Prepared::Done(self.stored()))
            }
            Kind::File { size } => {
                if !self.receives.ignores_times && is_same(there.as_ref(), entry, *size) {
                    return Ok(Prepared::Done(Outcome::Skipped));
                }
                if self.receives.is_dry {
                    return Ok(Prepared::Done(Outcome::WouldStore));
                }
                self.open_part(entry, &folder, name, *size)
                    .map_err(|error| error.to_string())
            }
        }
    }

    fn stored(&self) -> Outcome {
        match self.receives.is_dry {
            true => Outcome::WouldStore,
            false => Outcome::Stored,
        }
    }

    fn folder(&mut self, names: &[&[u8]]) -> rustix::io::Result<Arc<OwnedFd>> {
        let root = self.root.clone().ok_or(Errno::NOENT)?;
        if names.is_empty() {
            return Ok(root);
        }
        let path = names.join(&b'/');
        if let Some(folder) = self.folders.get(&path) {
            return Ok(folder.clone());
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        // A link in the way may be the sender's own, and lead to a folder of ours.
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let folder = openat2(&*root, &path[..], flags, Mode::empty(), resolve)?;
        if self.folders.len() >= MOST_FOLDERS {
            self.folders.clear();
        }
        let folder = Arc::new(folder);
        self.folders.insert(path, folder.clone());
        Ok(folder)
    }

    fn make_folder(
        &mut self,
        entry: &Entry,
        folder: &OwnedFd,
        name: &[u8],
        there: Option<&Stat>,
    ) -> Result<Prepared, String> {
        if self.receives.is_dry {
            let outcome = match is(there, FileType::Directory) {
                true => Outcome::Skipped,
                false => Outcome::WouldStore,
            };
            return Ok(Prepared::Done(outcome));
        }
        // Writable for us as long as files come into it.
        let mode = Mode::from_raw_mode(entry.mode & 0o777 | 0o700);
        match mkdirat(folder, name, mode) {
            Ok(()) => {}
            Err(Errno::EXIST) if is(there, FileType::Directory) => {
                self.keep(entry);
                return Ok(Prepared::Done(Outcome::Skipped));
            }
            Err(Errno::EXIST) => return Err("a file of that name is there".to_owned()),
            Err(error) => return Err(io::Error::from(error).to_string()),
        }
        self.keep(entry);
        Ok(Prepared::Done(Outcome::Stored))
    }

    fn keep(&mut self, entry: &Entry) {
        if self.receives.preserves {
            self.made.push(entry.clone());
        }
    }

    /// Opens what an earlier transfer left of the file, or begins it.
    fn open_part(
        &self,
        entry: &Entry,
        folder: &Arc<OwnedFd>,
        name: &[u8],
        size: u64,
    ) -> io::Result<Prepared> {
        let file_key = key(entry, size);
        let stem = [OURS, hex(&file_key[..12]).as_bytes()].concat();
        let [part_name, journal_name] =
            [&b".part"[..], b".journal"].map(|end| [&stem[..], end].concat());
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let ours = Mode::RUSR | Mode::WUSR;
        let file = openat(&**folder, &part_name[..], flags, ours).or_else(|error| match error {
            // It had its last mode already when its transfer was killed.
            Errno::ACCESS => chmodat(&**folder, &part_name[..], ours, AtFlags::empty())
                .and_then(|()| openat(&**folder, &part_name[..], flags, ours)),
            error => Err(error),
        })?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|error| match error {
            Errno::WOULDBLOCK => {
                io::Error::other("another transfer is writing it: try again when that has ended")
            }
            error => error.into(),
        })?;
        let journal = match size >= JOURNAL_FROM_BYTES {
            false => None,
            true => {
                let flags = flags | OFlags::APPEND;
                let journal = openat(&**folder, &journal_name[..], flags, Mode::RUSR | Mode::WUSR)?;
                let header = Header {
                    file: file_key,
                    boot: self.boot,
                };
                Some(Journal::open(File::from(journal), header)?)
            }
        };
        let file = File::from(file);
        let (journal, there) = journal.unzip();
        let part_bytes = file.metadata()?.len();
        // A journal whose part is gone, or was cut, tells nothing.
        let there = there.filter(|there| there.iter().all(|(_, until)| until <= part_bytes));
        let part = Part::new(PartSpec {
            object: entry.object,
            size,
            modified: entry.modified,
            accessed: self.receives.preserves.then_some(entry.accessed),
            mode: match self.receives.preserves {
                true => entry.mode & 0o1777, // nobody else's programs run with this user's rights
                false => entry.mode & 0o777 & !self.umask,
            },
            file: Arc::new(file),
            folder: folder.clone(),
            name: name.to_vec(),
            path: entry.path.clone(),
            part_name,
            journal_name,
            journal,
            there: there.unwrap_or_default(),
        });
        let wanted = part.missing(MOST_RANGES);
        Ok(Prepared::Part(Box::new(part), wanted))
    }

    /// Gives the folders that were made their modes and times, the deepest first. What fails stays as it is, and is told.
    pub fn finish(&mut self) -> Vec<(Vec<u8>, String)> {
        let mut failed = vec![];
        for entry in std::mem::take(&mut self.made).into_iter().rev() {
            let names: Vec<_> = entry.path.split(|byte| *byte == b'/').collect();
            let set = self.folder(&names).and_then(|folder| {
                rustix::fs::fchmod(&*folder, Mode::from_raw_mode(entry.mode & 0o1777))?;
                rustix::fs::futimens(
                    &*folder,
                    &super::part::times(entry.modified, Some(entry.accessed)),
                )
            });
            if let Err(error) = set {
                failed.push((entry.path, io::Error::from(error).to_string()));
            }
        }
        failed
    }
}

/// What an earlier part has to be of: the same path, size and time.
fn key(entry: &Entry, size: u64) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&size.to_le_bytes());
    hasher.update(&entry.modified.0.to_le_bytes());
    hasher.update(&entry.modified.1.to_le_bytes());
    hasher.update(&entry.path);
    *hasher.finalize().as_bytes()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn is(there: Option<&Stat>, kind: FileType) -> bool {
    there.is_some_and(|there| FileType::from_raw_mode(there.st_mode) == kind)
}

/// A file of the same size and time is taken for the same, as rsync takes it.
fn is_same(there: Option<&Stat>, entry: &Entry, size: u64) -> bool {
    let modified = |there: &Stat| (there.st_mtime, there.st_mtime_nsec as u32);
    is(there, FileType::RegularFile)
        && there
            .is_some_and(|there| there.st_size as u64 == size && modified(there) == entry.modified)
}

/// A link appears whole, in the place of what was there.
fn make_link(folder: &OwnedFd, name: &[u8], target: &[u8]) -> rustix::io::Result<()> {
    let new = [
        OURS,
        hex(&blake3::hash(name).as_bytes()[..12]).as_bytes(),
        b".link",
    ]
    .concat();
    match unlinkat(folder, &new[..], AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => return Err(error),
    }
    symlinkat(target, folder, &new[..])?;
    renameat(folder, &new[..], folder, name)
}

/// Of this boot of the kernel; zeros where it is not told, and then nothing counts that was not synced.
fn boot_id() -> [u8; 16] {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let mut boot = [0; 16];
    match text.is_empty() {
        true => drop(getrandom::fill(&mut boot)),
        false => boot.copy_from_slice(&blake3::hash(text.as_bytes()).as_bytes()[..16]),
    }
    boot
}

fn umask() -> u32 {
    let mask = rustix::process::umask(Mode::empty());
    rustix::process::umask(mask);
    mask.as_raw_mode()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(folder: &Path, is_recursive: bool) -> Target {
        let receives = Receives {
            folder: folder.as_os_str().as_bytes().to_vec(),
            preserves: false,
            is_dry: false,
            ignores_times: false,
            is_recursive,
            names: vec![b"results.tar".to_vec()],
        };
        Target::open(receives).unwrap()
    }

    fn is_refused(target: &mut Target, path: &str, kind: Kind) -> bool {
        let entry = Entry {
            object: 1,
            path: path.into(),
            kind,
            mode: 0o644,
            modified: (0, 0),
            accessed: (0, 0),
        };
        matches!(target.prepare(&entry), Prepared::Done(Outcome::Failed(_)))
    }

    #[test]
    fn a_link_of_the_sender_leads_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        let mut target = target(folder.path(), true);
        let link = Kind::Link {
            target: b".".to_vec(),
        };
        assert!(!is_refused(&mut target, "results.tar", link));
        let file = Kind::File { size: 1 };
        assert!(is_refused(&mut target, "results.tar/.bashrc", file));
        assert!(!folder.path().join(".bashrc").exists());
    }

    #[test]
    fn who_asks_for_a_file_gets_no_folder_and_no_link() {
        let folder = tempfile::tempdir().unwrap();
        let mut target = target(folder.path(), false);
        let link = Kind::Link {
            target: b"/tmp".to_vec(),
        };
        for (path, kind) in [
            ("results.tar", link),
            ("results.tar", Kind::Folder),
            ("results.tar/x", Kind::File { size: 1 }),
            ("other", Kind::File { size: 1 }),
        ] {
            assert!(
                is_refused(&mut target, path, kind.clone()),
                "{path} {kind:?}"
            );
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let file = Kind::File { size: 1 };
        assert!(!is_refused(&mut target, "results.tar", file));
    }
}

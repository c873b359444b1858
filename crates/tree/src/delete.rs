// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--delete`: what is in the folders of a transfer, and was not named by it. No link is followed, no other file system
//! entered, and what is excluded stays, as do parts of unfinished transfers.

use crate::case;
use crate::names::{PATH_BYTES, is_ours};
use crate::patterns::Patterns;
use crate::system::{Within, open_below};
use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, Stat, Timespec, Timestamps, fchmod, fstat, futimens,
    statat, unlinkat,
};
use rustix::io::Errno;
use std::collections::HashSet;
use std::io;
use std::os::fd::OwnedFd;

/// Names that are remembered, at most: some 100 MB.
const MOST_NAMED: usize = 1 << 22;
/// Why nothing is deleted in a folder.
const CASE: &str = "names of other case are the same in this folder, so that what was sent is not told from what was not: delete by \
                    hand";

/// What a transfer has named, by checksums of the paths.
#[derive(Debug, Default)]
pub struct Named {
    paths: HashSet<[u8; 16]>,
    /// Folders that no other one is above.
    tops: Vec<Vec<u8>>,
    is_too_much: bool,
}

impl Named {
    /// This one is named.
    pub fn add(&mut self, path: &[u8], is_folder: bool) {
        if is_folder && !path.contains(&b'/') {
            self.tops.push(path.to_vec());
        }
        match self.paths.len() < MOST_NAMED {
            true => _ = self.paths.insert(key(path)),
            false => self.is_too_much = true,
        }
    }

    /// The folders in which something may be deleted.
    ///
    /// # Errors
    /// More was named than is remembered.
    pub fn tops(&self) -> Result<&[Vec<u8>], String> {
        match self.is_too_much {
            false => Ok(&self.tops),
            true => Err(format!(
                "nothing was deleted: the transfer has more than {MOST_NAMED} names"
            )),
        }
    }

    fn has(&self, path: &[u8]) -> bool {
        self.paths.contains(&key(path))
    }
}

fn key(path: &[u8]) -> [u8; 16] {
    let mut key = [0; 16];
    key.copy_from_slice(&blake3::hash(path).as_bytes()[..16]);
    key
}

/// What became of one path.
#[derive(Debug)]
pub enum Deleted {
    /// It is gone, or would be.
    Gone(Vec<u8>),
    /// It is there still, and why.
    Stays(Vec<u8>, String),
}

/// Deletes in folders.
pub struct Deleter<'a> {
    /// What stays.
    pub named: &'a Named,
    /// What stays too.
    pub patterns: &'a Patterns,
    /// Nothing is deleted: it is said what would be.
    pub is_dry: bool,
    /// Is told of each.
    pub told: &'a mut dyn FnMut(Deleted),
}

impl Deleter<'_> {
    /// Deletes what is in `folder`, which the transfer calls `path`, and below, and was not named. The folders keep their
    /// times.
    pub fn clean(&mut self, folder: &OwnedFd, path: &[u8]) {
        if let Err(error) = self.try_clean(folder, path) {
            self.stays(path, error);
        }
    }

    fn try_clean(&mut self, folder: &OwnedFd, path: &[u8]) -> io::Result<()> {
        let (names, before) = (names(folder)?, fstat(folder)?);
        let is_candidate = |name: &Vec<u8>| {
            let whole = [path, b"/", name].concat();
            !self.named.has(&whole) && !self.is_kept(name, &whole)
        };
        let has_candidates = names.iter().any(is_candidate);
        let may_change = has_candidates && !self.is_dry;
        if may_change {
            permit(folder, &before);
        }
        let is_ignored = has_candidates
            .then(|| case::is_ignored(folder, &names, self.is_dry))
            .transpose();
        let cleaned = match is_ignored {
            Ok(Some(true)) => Err(io::Error::other(CASE)),
            Ok(_) => names
                .iter()
                .try_for_each(|name| self.clean_name(folder, &before, name, path)),
            Err(error) => Err(error.into()),
        };
        if may_change {
            restore(folder, &before)?;
        }
        cleaned
    }

    /// Whatever was named.
    fn is_kept(&self, name: &[u8], whole: &[u8]) -> bool {
        is_ours(name) || self.patterns.leave_out(whole)
    }

    fn clean_name(
        &mut self,
        folder: &OwnedFd,
        before: &Stat,
        name: &[u8],
        path: &[u8],
    ) -> io::Result<()> {
        let whole = [path, b"/", name].concat();
        let is_named = self.named.has(&whole);
        match self.look(folder, before, name, &whole, is_named)? {
            Some(is_folder) if !is_named => {
                self.remove(folder, before, name, &whole, is_folder);
            }
            Some(true) => match below(folder, name) {
                Ok(inner) => self.clean(&inner, &whole),
                Err(Errno::XDEV) => {} // something is mounted there
                Err(error) => self.stays(&whole, error.into()),
            },
            _ => {}
        }
        Ok(())
    }

    /// Whether it is a folder; `None`: it stays.
    fn look(
        &mut self,
        folder: &OwnedFd,
        above: &Stat,
        name: &[u8],
        whole: &[u8],
        is_named: bool,
    ) -> io::Result<Option<bool>> {
        if self.is_kept(name, whole) {
            return Ok(None);
        }
        let stat = match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(None), // it is gone since
            stat => stat?,
        };
        let is_elsewhere = stat.st_dev != above.st_dev;
        if is_elsewhere && is_named {
            return Ok(None); // what is mounted there stays as it is
        }
        if is_elsewhere || whole.len() > PATH_BYTES {
            let why = "another file system, or a path that is too long: it is left alone";
            self.stays(whole, io::Error::other(why));
            return Ok(None);
        }
        let kind = FileType::from_raw_mode(stat.st_mode);
        Ok(Some(kind == FileType::Directory))
    }

    /// Says whether it is gone, or would be.
    fn remove(
        &mut self,
        folder: &OwnedFd,
        above: &Stat,
        name: &[u8],
        whole: &[u8],
        is_folder: bool,
    ) -> bool {
        let removed = match is_folder {
            true => self.remove_folder(folder, above, name, whole),
            false if self.is_dry => Ok(true),
            false => unlinkat(folder, name, AtFlags::empty())
                .map(|()| true)
                .map_err(io::Error::from),
        };
        match removed {
            Ok(true) => (self.told)(Deleted::Gone(whole.to_vec())),
            Ok(false) => {}
            Err(error) => {
                self.stays(whole, error);
                return false;
            }
        }
        removed.is_ok_and(|is_gone| is_gone)
    }

    /// With what is in it, unless some of that stays.
    fn remove_folder(
        &mut self,
        folder: &OwnedFd,
        above: &Stat,
        name: &[u8],
        whole: &[u8],
    ) -> io::Result<bool> {
        let inner = below(folder, name).map_err(|error| match error {
            Errno::XDEV => io::Error::other("something is mounted there: it is left alone"),
            error => error.into(),
        })?;
        let before = fstat(&inner)?;
        if !self.is_dry {
            permit(&inner, &before);
        }
        let is_gone = match self.empty(&inner, above, whole) {
            Ok(true) if !self.is_dry => unlinkat(folder, name, AtFlags::REMOVEDIR)
                .map(|()| true)
                .map_err(io::Error::from),
            is_empty => is_empty,
        };
        if !self.is_dry && !matches!(is_gone, Ok(true)) {
            restore(&inner, &before)?;
        }
        is_gone
    }

    /// Says whether nothing stays in it.
    fn empty(&mut self, inner: &OwnedFd, above: &Stat, whole: &[u8]) -> io::Result<bool> {
        let mut is_empty = true;
        for name in names(inner)? {
            let whole = [whole, b"/", &name].concat();
            let is_folder = self.look(inner, above, &name, &whole, false)?;
            is_empty &= is_folder
                .is_some_and(|is_folder| self.remove(inner, above, &name, &whole, is_folder));
        }
        Ok(is_empty)
    }

    fn stays(&mut self, path: &[u8], error: io::Error) {
        (self.told)(Deleted::Stays(
            path.to_vec(),
            format!("not deleted: {error}"),
        ));
    }
}

/// A folder that its owner made read-only, as one of `--preserve` may be, is writable while something in it is deleted.
fn permit(folder: &OwnedFd, before: &Stat) {
    let mode = before.st_mode | 0o700;
    if mode != before.st_mode {
        // Where that is refused, so is what is deleted, and that is told.
        let _ = fchmod(folder, Mode::from_raw_mode(mode));
    }
}

/// It gets the mode and times again that it had.
fn restore(folder: &OwnedFd, before: &Stat) -> io::Result<()> {
    let now = fstat(folder)?;
    if now.st_mode != before.st_mode {
        fchmod(folder, Mode::from_raw_mode(before.st_mode))?;
    }
    let modified = |stat: &Stat| (stat.st_mtime, stat.st_mtime_nsec);
    if modified(&now) != modified(before) {
        futimens(folder, &times(before))?;
    }
    Ok(())
}

fn below(folder: &OwnedFd, name: &[u8]) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
    open_below(folder, name, flags, Within::FileSystem)
}

/// In order, so that what is said of a folder is the same each time.
fn names(folder: &OwnedFd) -> io::Result<Vec<Vec<u8>>> {
    let names = Dir::read_from(folder)?.map(|entry| Ok(entry?.file_name().to_bytes().to_vec()));
    let mut names = names.collect::<io::Result<Vec<_>>>()?;
    names.retain(|name| name != b"." && name != b"..");
    names.sort_unstable();
    Ok(names)
}

fn times(stat: &Stat) -> Timestamps {
    Timestamps {
        last_access: Timespec {
            tv_sec: stat.st_atime,
            tv_nsec: stat.st_atime_nsec as _,
        },
        last_modification: Timespec {
            tv_sec: stat.st_mtime,
            tv_nsec: stat.st_mtime_nsec as _,
        },
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test ends where it cannot go on
mod tests {
    use super::*;
    use crate::system::MODE_BITS;
    use rustix::fs::{CWD, openat};
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;
    use std::thread;

    /// A folder `top` that is to have `kept` and `deep/kept` alone, and beside it what nothing may touch.
    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for below in ["top/deep/old", "top/gone/deep", "top/stays", "outside"] {
            fs::create_dir_all(folder.path().join(below)).unwrap();
        }
        for file in [
            "outside/file",
            "top/kept",
            "top/old",
            "top/deep/kept",
            "top/deep/old/1",
            "top/gone/deep/2",
            "top/gone/3",
            "top/stays/4",
            "top/stays/5.log",
            "top/.fatpath-1.part",
        ] {
            fs::write(folder.path().join(file), file).unwrap();
        }
        symlink("../outside", folder.path().join("top/link")).unwrap();
        symlink("../../outside", folder.path().join("top/gone/link")).unwrap();
        folder
    }

    fn delete(folder: &Path, is_dry: bool) -> Vec<String> {
        let mut named = Named::default();
        for path in ["top", "top/deep"] {
            named.add(path.as_bytes(), true);
        }
        for path in ["top/kept", "top/deep/kept"] {
            named.add(path.as_bytes(), false);
        }
        assert_eq!(named.tops().unwrap(), [b"top"]);
        let patterns = Patterns::new(&["*.log".to_owned()], &[]).unwrap();
        let mut gone = vec![];
        let mut deleter = Deleter {
            named: &named,
            patterns: &patterns,
            is_dry,
            told: &mut |deleted| match deleted {
                Deleted::Gone(path) => gone.push(String::from_utf8(path).unwrap()),
                Deleted::Stays(path, why) => panic!("{}: {why}", crate::shown(&path)),
            },
        };
        deleter.clean(&below(&open(folder), b"top").unwrap(), b"top");
        gone
    }

    fn open(folder: &Path) -> OwnedFd {
        openat(CWD, folder, OFlags::DIRECTORY, Mode::empty()).unwrap()
    }

    #[test]
    fn what_was_not_named_is_deleted_and_nothing_else() {
        let folder = folder();
        let top = folder.path().join("top");
        let before = fs::metadata(&top).unwrap().modified().unwrap();
        let gone = [
            "top/deep/old/1",
            "top/deep/old",
            "top/gone/3",
            "top/gone/deep/2",
            "top/gone/deep",
            "top/gone/link",
            "top/gone",
            "top/link",
            "top/old",
            "top/stays/4",
        ];
        assert_eq!(delete(folder.path(), true), gone);
        assert!(
            gone.iter()
                .all(|path| folder.path().join(path).symlink_metadata().is_ok())
        );
        assert_eq!(delete(folder.path(), false), gone);
        assert!(
            gone.iter()
                .all(|path| folder.path().join(path).symlink_metadata().is_err())
        );
        for path in [
            "top/kept",
            "top/deep/kept",
            "top/stays/5.log",
            "top/.fatpath-1.part",
            "outside/file",
        ] {
            assert_eq!(fs::read_to_string(folder.path().join(path)).unwrap(), path);
        }
        assert_eq!(fs::metadata(&top).unwrap().modified().unwrap(), before);
        assert_eq!(delete(folder.path(), false), [""; 0]);
    }

    /// As its owner, not as root, whom a mode does not bind.
    #[test]
    fn what_is_in_read_only_folders_is_deleted_and_they_stay_read_only() {
        let folder = folder();
        let at = |path: &str| folder.path().join(path);
        let read_only = fs::Permissions::from_mode(0o555);
        for path in ["top", "top/deep", "top/gone"] {
            fs::set_permissions(at(path), read_only.clone()).unwrap();
        }
        let deleted = thread::scope(|scope| {
            let delete = || {
                let mut sets = capabilities(None).unwrap();
                sets.effective = CapabilitySet::empty();
                set_capabilities(None, sets).unwrap();
                assert!(fs::write(at("top/new"), "").is_err());
                delete(folder.path(), false)
            };
            scope.spawn(delete).join().unwrap()
        });
        assert_eq!(deleted.len(), 10);
        for path in ["top", "top/deep"] {
            let mode = fs::metadata(at(path)).unwrap().permissions().mode();
            assert_eq!(mode & MODE_BITS, 0o555, "{path}");
        }
        assert!(!at("top/gone").exists());
    }

    #[test]
    fn beyond_what_is_remembered_nothing_is_deleted() {
        let named = Named {
            is_too_much: true,
            ..Named::default()
        };
        assert!(named.tops().unwrap_err().contains("nothing was deleted"));
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a folder takes names of other case for the same, as on vfat, over CIFS, and on ext4 with `+F`.

use crate::names::OURS;
use rustix::fs::{AtFlags, Mode, OFlags, openat, statat, unlinkat};
use rustix::io::Errno;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::os::fd::OwnedFd;

/// `names`: all that are in the folder, in order. Where none of them shows it, a file is made for that, unless nothing is to be
/// written: then it is not known, and no.
///
/// # Errors
/// The kernel's.
pub fn is_ignored(folder: &OwnedFd, names: &[Vec<u8>], is_dry: bool) -> rustix::io::Result<bool> {
    let is_free = |other: &Vec<u8>| names.binary_search(other).is_err();
    match names.iter().map(|name| other_case(name)).find(is_free) {
        Some(other) => exists(folder, &other),
        None if is_dry => Ok(false),
        None => probe(folder),
    }
}

fn probe(folder: &OwnedFd) -> rustix::io::Result<bool> {
    let random = RandomState::new().hash_one(0);
    let name = [OURS, format!("{random:016x}.probe").as_bytes()].concat();
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    openat(folder, &name, flags, Mode::RUSR)?;
    let is_ignored = exists(folder, &other_case(&name));
    unlinkat(folder, &name, AtFlags::empty())?;
    is_ignored
}

fn exists(folder: &OwnedFd, name: &[u8]) -> rustix::io::Result<bool> {
    match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(_) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(error),
    }
}

fn other_case(name: &[u8]) -> Vec<u8> {
    let other = |byte: &u8| match byte.is_ascii_lowercase() {
        true => byte.to_ascii_uppercase(),
        false => byte.to_ascii_lowercase(),
    };
    name.iter().map(other).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test ends where it cannot go on
mod tests {
    use super::*;
    use rustix::fs::CWD;
    use std::fs;

    /// What is found under a name that the folder does not list is found by its other case. No file system of this host does
    /// that, so a name is left out of the list.
    #[test]
    fn a_name_of_other_case_that_is_found_and_not_listed_tells() {
        let folder = tempfile::tempdir().unwrap();
        let fd = openat(CWD, folder.path(), OFlags::DIRECTORY, Mode::empty()).unwrap();
        let is_ignored = |names: &[&str], is_dry| {
            let names: Vec<_> = names.iter().map(|name| name.as_bytes().to_vec()).collect();
            super::is_ignored(&fd, &names, is_dry).unwrap()
        };
        for name in ["1", "A", "a", "b"] {
            fs::write(folder.path().join(name), name).unwrap();
        }
        assert!(is_ignored(&["1", "a", "b"], true));
        assert!(!is_ignored(&["1", "A", "a", "b"], true));
        for is_dry in [true, false] {
            assert!(
                !is_ignored(&["1"], is_dry),
                "the file that is made is found under its own name alone"
            );
        }
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count(),
            4,
            "it is gone"
        );
    }
}

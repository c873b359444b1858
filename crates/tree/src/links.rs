// SPDX-License-Identifier: MIT OR Apache-2.0
//! Links. Several names of one file (hard links): which files of a transfer others may become names of, and how they do; and
//! symbolic ones.

use crate::Identity;
use rustix::fs::{AtFlags, Stat, linkat, renameat, statat, symlinkat, unlinkat};
use rustix::io::Errno;
use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;

/// Files with several names whose other ones may still come, at most.
const MOST_KNOWN: usize = 1 << 20;
/// What is remembered of files that were found takes no more, and each of them this beside its name.
const MOST_FOUND_BYTES: usize = 64 << 20;
const FOUND_BYTES: usize = 160;

/// A file, whatever it is called: device and inode.
pub type Inode = (u64, u64);

/// Of what the kernel says.
pub fn inode(stat: &Stat) -> Inode {
    (stat.st_dev as _, stat.st_ino as _)
}

/// The files of one transfer that may get more names. What waits for one is a `W`.
#[derive(Debug)]
pub struct Links<W> {
    arriving: HashMap<Vec<u8>, Arriving<W>>,
    /// By the path's checksum: a path may be long.
    there: HashMap<[u8; 16], Inode>,
}

#[derive(Debug)]
struct Arriving<W> {
    inode: Inode,
    waiting: Vec<W>,
}

impl<W> Default for Links<W> {
    fn default() -> Links<W> {
        Links {
            arriving: HashMap::new(),
            there: HashMap::new(),
        }
    }
}

impl<W> Links<W> {
    /// The file `path` arrives from now on, and will be this one.
    pub fn begin(&mut self, path: &[u8], inode: Inode) {
        let waiting = vec![];
        self.arriving
            .insert(path.to_vec(), Arriving { inode, waiting });
    }

    /// It is there: whole and of this transfer.
    pub fn is_there(&mut self, path: &[u8], inode: Inode) {
        if self.there.len() < MOST_KNOWN {
            self.there.insert(key(path), inode);
        }
    }

    /// It does not arrive any more, and may be there; gives what waited for it.
    pub fn ended(&mut self, path: &[u8], is_there: bool) -> Vec<W> {
        let Some(Arriving { inode, waiting }) = self.arriving.remove(path) else {
            return vec![];
        };
        if is_there {
            self.is_there(path, inode);
        }
        waiting
    }

    /// `one` waits for the file `path`, if that arrives; else it is given back.
    pub fn wait(&mut self, path: &[u8], one: W) -> Option<W> {
        match self.arriving.get_mut(path) {
            Some(arriving) => {
                arriving.waiting.push(one);
                None
            }
            None => Some(one),
        }
    }

    /// The file of this transfer that is there under this path.
    pub fn get(&self, path: &[u8]) -> Option<Inode> {
        self.there.get(&key(path)).copied()
    }
}

fn key(path: &[u8]) -> [u8; 16] {
    let mut key = [0; 16];
    key.copy_from_slice(&blake3::hash(path).as_bytes()[..16]);
    key
}

/// Gives the file `from`, which is to be `inode`, the name `to` too, in the place of what was there; by way of the name
/// `meanwhile` in the same folder. What is no more the file that it was is left alone.
///
/// # Errors
/// The kernel's.
pub fn link(
    (from_folder, from): (&OwnedFd, &[u8]),
    inode_of: Inode,
    (folder, to): (&OwnedFd, &[u8]),
    meanwhile: &[u8],
) -> io::Result<()> {
    make_room(folder, meanwhile)?;
    linkat(from_folder, from, folder, meanwhile, AtFlags::empty())?;
    let linked = statat(folder, meanwhile, AtFlags::SYMLINK_NOFOLLOW);
    let named = match linked {
        Ok(linked) if inode(&linked) == inode_of => {
            renameat(folder, meanwhile, folder, to).map_err(io::Error::from)
        }
        Ok(_) => Err(io::Error::other(
            "the file that it is another name of was replaced",
        )),
        Err(error) => Err(error.into()),
    };
    // Two names of one file are not renamed to one another: the one that is too much would stay.
    let _ = unlinkat(folder, meanwhile, AtFlags::empty());
    named
}

/// A symbolic link to `target` appears whole, in the place of what was there; by way of the name `meanwhile`.
///
/// # Errors
/// The kernel's.
pub fn make_symbolic(
    folder: &OwnedFd,
    name: &[u8],
    target: &[u8],
    meanwhile: &[u8],
) -> rustix::io::Result<()> {
    make_room(folder, meanwhile)?;
    symlinkat(target, folder, meanwhile)?;
    renameat(folder, meanwhile, folder, name)
}

/// An earlier transfer may have left something.
fn make_room(folder: &OwnedFd, name: &[u8]) -> rustix::io::Result<()> {
    match unlinkat(folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Files with several names that were found here, and the first of these names.
#[derive(Debug, Default)]
pub struct Found {
    files: HashMap<Identity, (Vec<u8>, u64)>,
    bytes: usize,
}

impl Found {
    /// A file is called `name`, and has so many `names` in all. Gives the name that it was found by before, where that is
    /// remembered, and the file has not changed since.
    pub fn name(&mut self, file: Identity, names: u64, name: &[u8]) -> Option<Vec<u8>> {
        let weight = |name: &[u8]| FOUND_BYTES + name.len();
        match self.files.remove(&file) {
            Some((first, 1)) => {
                self.bytes -= weight(&first); // there are no more
                Some(first)
            }
            Some((first, left)) => {
                self.files.insert(file, (first.clone(), left - 1));
                Some(first)
            }
            None if self.bytes + weight(name) > MOST_FOUND_BYTES || names < 2 => None, // it goes once more
            None => {
                self.bytes += weight(name);
                self.files.insert(file, (name.to_vec(), names - 1));
                None
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test ends where it cannot go on
mod tests {
    use super::*;
    use rustix::fs::{CWD, Mode, OFlags, openat};
    use std::fs;
    use std::path::Path;

    #[test]
    fn a_name_waits_for_the_file_that_arrives() {
        let mut links = Links::default();
        links.begin(b"a", (1, 2));
        assert_eq!(links.wait(b"a", "b"), None);
        assert_eq!(links.wait(b"c", "d"), Some("d"));
        assert_eq!(links.get(b"a"), None, "it is not whole");
        assert_eq!(links.ended(b"a", true), ["b"]);
        assert_eq!((links.get(b"a"), links.get(b"c")), (Some((1, 2)), None));
        links.begin(b"e", (1, 3));
        assert_eq!(links.wait(b"e", "f"), None);
        assert_eq!(links.ended(b"e", false), ["f"]);
        assert_eq!(links.get(b"e"), None);
    }

    #[test]
    fn names_of_one_file_are_found() {
        let [file, other] = [(), ()].map(|()| tempfile::tempfile().unwrap());
        let identity = |file: &fs::File| Identity::of(&file.metadata().unwrap());
        let (one, two) = (identity(&file), identity(&other));
        let mut found = Found::default();
        assert_eq!(found.name(one, 3, b"a"), None);
        assert_eq!(found.name(two, 2, b"x"), None);
        assert_eq!(found.name(one, 3, b"b"), Some(b"a".to_vec()));
        assert_eq!(found.name(one, 3, b"c"), Some(b"a".to_vec()));
        assert_eq!(found.files.len(), 1, "what has no more names is forgotten");
        assert_eq!(found.bytes, FOUND_BYTES + 1);
        other.set_len(1).unwrap();
        assert_eq!(found.name(identity(&other), 2, b"y"), None, "it changed");
    }

    #[test]
    fn what_is_remembered_of_long_names_is_bounded() {
        let (file, name) = (tempfile::tempfile().unwrap(), vec![b'a'; 4096]);
        let mut found = Found::default();
        let most = (MOST_FOUND_BYTES / name.len()) as u64;
        for size in 0..most {
            file.set_len(size).unwrap(); // as another file
            let identity = Identity::of(&file.metadata().unwrap());
            assert_eq!(found.name(identity, 2, &name), None);
        }
        assert!(found.bytes <= MOST_FOUND_BYTES && found.files.len() > 15_000);
        assert!((found.files.len() as u64) < most);
    }

    #[test]
    fn a_file_gets_another_name_and_no_other_file_does() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let open = |path: &Path| openat(CWD, path, OFlags::DIRECTORY, Mode::empty()).unwrap();
        let fd = open(folder.path());
        fs::write(at("a"), "a").unwrap();
        fs::write(at("b"), "b").unwrap();
        let stat = |name: &str| inode(&statat(&fd, name, AtFlags::SYMLINK_NOFOLLOW).unwrap());
        let a = stat("a");
        for _ in 0..2 {
            link((&fd, b"a"), a, (&fd, b"b"), b"meanwhile").unwrap();
            assert_eq!(stat("b"), a);
            assert!(!at("meanwhile").exists());
        }
        fs::write(at("other"), "other").unwrap();
        fs::rename(at("other"), at("a")).unwrap();
        let error = link((&fd, b"a"), a, (&fd, b"c"), b"meanwhile").unwrap_err();
        assert!(error.to_string().contains("was replaced"), "{error}");
        assert!(!at("meanwhile").exists() && !at("c").exists());
    }
}

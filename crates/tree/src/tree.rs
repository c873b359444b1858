// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where files are read: anywhere, as the user's other programs do, or below a folder, by no link.

use crate::attributes::{self, Attribute, Which};
use crate::system::{PLACE, Within, open_below};
use rustix::fs::{CWD, Dir, Mode, OFlags, openat, readlinkat};
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

const NOT_FOLLOWED: &str = "a symbolic link, and none is followed";

/// Files to read, by their paths.
#[derive(Debug)]
pub enum Tree {
    /// All that the user may read.
    Everywhere,
    /// What is below this folder; paths are relative to it, and no link is followed.
    Below(OwnedFd),
}

impl Tree {
    /// Below `folder`.
    ///
    /// # Errors
    /// The kernel's.
    pub fn below(folder: &Path) -> io::Result<Tree> {
        let flags = PLACE | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Tree::Below(openat(CWD, folder, flags, Mode::empty())?))
    }

    /// A file or folder, to be read.
    ///
    /// # Errors
    /// The kernel's, or a link is in the way.
    pub fn open(&self, path: &Path, flags: OFlags) -> io::Result<File> {
        let flags = flags | OFlags::CLOEXEC;
        let opened = match self {
            Tree::Everywhere => openat(CWD, path, flags, Mode::empty()),
            Tree::Below(folder) => {
                open_below(folder, path.as_os_str().as_bytes(), flags, Within::Folder)
            }
        };
        match (self, opened) {
            (Tree::Below(_), Err(Errno::LOOP)) => Err(io::Error::other(NOT_FOLLOWED)),
            (_, opened) => Ok(File::from(opened?)),
        }
    }

    /// Of what somebody names: anywhere, a link stands for what it leads to.
    ///
    /// # Errors
    /// As [`Tree::open`].
    pub fn metadata_of_named(&self, path: &Path) -> io::Result<Metadata> {
        match self {
            Tree::Everywhere => path.metadata(),
            Tree::Below(_) => {
                let metadata = self.metadata(path)?;
                match metadata.is_symlink() {
                    true => Err(io::Error::other(NOT_FOLLOWED)),
                    false => Ok(metadata),
                }
            }
        }
    }

    /// Of what is in a folder: a link is one.
    ///
    /// # Errors
    /// As [`Tree::open`].
    pub fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        match self {
            Tree::Everywhere => path.symlink_metadata(),
            Tree::Below(_) => self.itself(path)?.metadata(),
        }
    }

    /// What is in a folder, in the order of the names.
    ///
    /// # Errors
    /// As [`Tree::open`].
    pub fn names(&self, folder: &Path) -> io::Result<Vec<OsString>> {
        let folder = self.open(folder, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let names = Dir::new(folder)?.map(|entry| Ok(entry?.file_name().to_bytes().to_vec()));
        let mut names = names.collect::<io::Result<Vec<_>>>()?;
        names.retain(|name| name != b"." && name != b"..");
        names.sort_unstable();
        Ok(names.into_iter().map(OsString::from_vec).collect())
    }

    /// What a link names.
    ///
    /// # Errors
    /// As [`Tree::open`], or it is none.
    pub fn link(&self, path: &Path) -> io::Result<Vec<u8>> {
        Ok(match self {
            Tree::Everywhere => path.read_link()?.into_os_string().into_vec(),
            Tree::Below(_) => readlinkat(self.itself(path)?, c"", vec![])?.into_bytes(),
        })
    }

    /// The attributes of a file or folder.
    ///
    /// # Errors
    /// As [`Tree::open`], or as [`attributes::read`].
    pub fn attributes(&self, path: &Path, which: Which) -> io::Result<Vec<Attribute>> {
        attributes::read(&self.open(path, PLACE)?, which)
    }

    fn itself(&self, path: &Path) -> io::Result<File> {
        self.open(path, PLACE | OFlags::NOFOLLOW)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test ends where it cannot go on
mod tests {
    use super::*;
    use std::fs;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    /// A folder with a file, a folder, and links out of it, below it and to nothing; beside it a secret.
    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("top/deep")).unwrap();
        fs::write(folder.path().join("secret"), "secret").unwrap();
        fs::write(folder.path().join("top/deep/file"), "file").unwrap();
        for (name, target) in [
            ("out", ".."),
            ("in", "deep"),
            ("none", "nowhere"),
            ("whole", "/"),
        ] {
            symlink(target, folder.path().join("top").join(name)).unwrap();
        }
        folder
    }

    #[test]
    fn below_a_folder_nothing_leads_out_of_it() {
        let folder = folder();
        let tree = Tree::below(&folder.path().join("top")).unwrap();
        for path in [
            "..",
            "../secret",
            "out/secret",
            "in/file",
            "whole",
            "/",
            "out",
            "deep/../../secret",
        ] {
            let path = Path::new(path);
            assert!(tree.open(path, OFlags::RDONLY).is_err(), "{path:?}");
            assert!(tree.metadata_of_named(path).is_err(), "{path:?}");
            assert!(tree.names(path).is_err(), "{path:?}");
        }
        let why = tree
            .metadata_of_named(Path::new("in"))
            .unwrap_err()
            .to_string();
        assert_eq!(why, NOT_FOLLOWED);
        assert!(tree.metadata(Path::new("in")).unwrap().is_symlink());
        assert_eq!(tree.link(Path::new("whole")).unwrap(), b"/");
    }

    #[test]
    fn what_is_there_is_read_alike() {
        let folder = folder();
        let top = folder.path().join("top");
        let below = Tree::below(&top).unwrap();
        for (tree, top) in [(&below, Path::new(".")), (&Tree::Everywhere, &top)] {
            assert_eq!(
                tree.names(top).unwrap(),
                ["deep", "in", "none", "out", "whole"]
            );
            let file = top.join("deep/file");
            assert_eq!(tree.metadata_of_named(&file).unwrap().len(), 4);
            assert_eq!(tree.metadata(&file).unwrap().len(), 4);
            assert_eq!(tree.link(&top.join("none")).unwrap(), b"nowhere");
            let mut text = String::new();
            let mut opened = tree.open(&file, OFlags::RDONLY).unwrap();
            opened.read_to_string(&mut text).unwrap();
            assert_eq!(text, "file");
        }
    }
}

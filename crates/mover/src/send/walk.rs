// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds what there is to send, folders before what is in them, in a thread of its own that waits when it is far ahead.

use crate::protocol::{Entry, Kind, Problem, Sends};
use anyhow::{Result, bail};
use fatpath_tree::attributes::{Attribute, Which};
use fatpath_tree::links::Found;
use fatpath_tree::system::MODE_BITS;
use fatpath_tree::{Identity, Patterns, Tree, is_ours};
use std::cell::RefCell;
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, TryRecvError};
use std::thread;

/// How far it goes ahead, entries.
const AHEAD: usize = 1024;

/// What was found.
pub enum Walked {
    /// Something to send; its object's number is still to be given.
    Entry {
        entry: Entry,
        /// Where it is here.
        path: PathBuf,
        identity: Identity,
    },
    /// What cannot be sent.
    Problem(Problem),
    /// There is no more.
    End,
}

/// What comes next; `None`: it is not found yet.
///
/// # Errors
/// The thread died before the end: what is not named may be there, and is not to be deleted at the other end.
pub fn next(walked: &mpsc::Receiver<Walked>) -> Result<Option<Walked>> {
    match walked.try_recv() {
        Ok(walked) => Ok(Some(walked)),
        Err(TryRecvError::Empty) => Ok(None),
        Err(TryRecvError::Disconnected) => bail!(
            "the search for what is to be sent ended early, by an error of fatpath: what has arrived stays, and the same command \
             goes on"
        ),
    }
}

/// Begins to walk through what is named of `tree`.
///
/// # Errors
/// A pattern is none.
pub fn start(sends: &Sends, tree: Arc<Tree>) -> Result<mpsc::Receiver<Walked>> {
    let (found, walked) = mpsc::sync_channel(AHEAD);
    let walk = Walk {
        tree,
        is_recursive: sends.is_recursive,
        patterns: Patterns::new(&sends.patterns.exclude, &sends.patterns.include)?,
        linked: sends.hard_links.then(RefCell::default),
        attributes: sends.attributes,
        found,
    };
    let paths: Vec<_> = sends
        .paths
        .iter()
        .map(|path| PathBuf::from(OsStr::from_bytes(path)))
        .collect();
    thread::spawn(move || {
        // Where nobody listens any more, the transfer has ended.
        let all = paths.iter().try_for_each(|path| walk.top(path));
        let _ = all.and_then(|()| walk.say(Walked::End));
    });
    Ok(walked)
}

/// The last name of what was given; `..` and the like have that of the folder that they lead to, and the root has none.
///
/// # Errors
/// It leads nowhere.
pub fn own_name(path: &Path) -> io::Result<Vec<u8>> {
    let name = match path.file_name() {
        Some(name) => name.as_bytes().to_vec(),
        None => {
            let whole = fs::canonicalize(path)?;
            whole.file_name().unwrap_or_default().as_bytes().to_vec()
        }
    };
    Ok(name)
}

struct Walk {
    tree: Arc<Tree>,
    is_recursive: bool,
    patterns: Patterns,
    /// Files with several names; `None`: each name is a file of its own.
    linked: Option<RefCell<Found>>,
    attributes: Which,
    found: mpsc::SyncSender<Walked>,
}

/// Nobody listens any more.
struct Gone;

type Sent = Result<(), Gone>;

impl Walk {
    /// What was named: a link stands for what it names.
    fn top(&self, path: &Path) -> Sent {
        let name = match own_name(path) {
            Ok(name) => name,
            Err(error) => return self.problem(path.as_os_str().as_bytes(), &error.to_string()),
        };
        if name.is_empty() {
            return self.problem(
                path.as_os_str().as_bytes(),
                "has no name of its own: name what is in it",
            );
        }
        match self.tree.metadata_of_named(path) {
            Ok(metadata) if metadata.is_dir() && !self.is_recursive => {
                self.problem(&name, "is a folder: give -r")
            }
            Ok(metadata) => self.visit(path, name, &metadata),
            Err(error) => self.problem(&name, &error.to_string()),
        }
    }

    fn visit(&self, path: &Path, name: Vec<u8>, metadata: &Metadata) -> Sent {
        if self.patterns.leave_out(&name) {
            return Ok(());
        }
        let kind = match self.kind(path, &name, metadata) {
            Ok(Some(kind)) => kind,
            Ok(None) => return self.problem(&name, "is no file, folder or symbolic link"),
            Err(error) => return self.problem(&name, &error.to_string()),
        };
        let is_folder = kind == Kind::Folder;
        let attributes = match self.attributes(path, &kind) {
            Ok(attributes) => attributes,
            Err(error) => {
                self.problem(&name, &format!("attributes: {error}"))?;
                vec![]
            }
        };
        self.say(Walked::Entry {
            entry: Entry {
                object: 0,
                path: name.clone(),
                kind,
                mode: metadata.mode() & MODE_BITS,
                modified: (metadata.mtime(), metadata.mtime_nsec() as u32),
                accessed: (metadata.atime(), metadata.atime_nsec() as u32),
                attributes,
            },
            path: path.to_owned(),
            identity: Identity::of(metadata),
        })?;
        match is_folder {
            true => self.folder(path, &name),
            false => Ok(()),
        }
    }

    fn folder(&self, path: &Path, name: &[u8]) -> Sent {
        let names = match self.tree.names(path) {
            Ok(names) => names,
            Err(error) => return self.problem(name, &error.to_string()),
        };
        for below in names {
            // Others put their files there meanwhile.
            if matches!(*self.tree, Tree::Below(_)) && is_ours(below.as_bytes()) {
                continue;
            }
            let path = path.join(&below);
            let name = [name, b"/", below.as_bytes()].concat();
            match self.tree.metadata(&path) {
                Ok(metadata) => self.visit(&path, name, &metadata)?,
                Err(error) => self.problem(&name, &error.to_string())?,
            }
        }
        Ok(())
    }

    fn kind(&self, path: &Path, name: &[u8], metadata: &Metadata) -> io::Result<Option<Kind>> {
        Ok(match metadata.file_type() {
            kind if kind.is_file() => Some(self.file(name, metadata)),
            kind if kind.is_dir() => Some(Kind::Folder),
            kind if kind.is_symlink() => Some(Kind::Link {
                target: self.tree.link(path)?,
            }),
            _ => None,
        })
    }

    fn attributes(&self, path: &Path, kind: &Kind) -> io::Result<Vec<Attribute>> {
        match kind {
            Kind::File { .. } | Kind::Folder if self.attributes.is_any() => {
                self.tree.attributes(path, self.attributes)
            }
            _ => Ok(vec![]),
        }
    }

    fn file(&self, name: &[u8], metadata: &Metadata) -> Kind {
        let names = metadata.nlink();
        let linked = self.linked.as_ref().filter(|_| names > 1);
        let file = Identity::of(metadata);
        match linked.and_then(|linked| linked.borrow_mut().name(file, names, name)) {
            Some(of) => Kind::HardLink { of },
            None => Kind::File {
                size: metadata.size(),
                is_linked: linked.is_some(),
            },
        }
    }

    fn say(&self, walked: Walked) -> Sent {
        self.found.send(walked).map_err(|_| Gone)
    }

    fn problem(&self, name: &[u8], why: &str) -> Sent {
        self.say(Walked::Problem(Problem {
            path: name.to_owned(),
            why: why.to_owned(),
        }))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test ends where it cannot go on
mod tests {
    use super::*;
    use crate::protocol::LeftOut;

    #[test]
    fn what_is_excluded_is_left_out_unless_it_is_included() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().join("top");
        fs::create_dir_all(top.join("a/tmp")).unwrap();
        for name in ["a/x.o", "a/keep.o", "a/tmp/y", "z"] {
            fs::write(top.join(name), name).unwrap();
        }
        std::os::unix::fs::symlink("/etc", top.join("link")).unwrap();
        let found = |exclude: &[&str], include: &[&str]| {
            let sends = Sends {
                paths: vec![top.as_os_str().as_bytes().to_vec()],
                is_recursive: true,
                patterns: LeftOut {
                    exclude: exclude.iter().map(|text| (*text).to_owned()).collect(),
                    include: include.iter().map(|text| (*text).to_owned()).collect(),
                },
                ..Sends::default()
            };
            let mut walked: Vec<_> = start(&sends, Arc::new(Tree::Everywhere))
                .unwrap()
                .into_iter()
                .collect();
            assert!(matches!(walked.pop(), Some(Walked::End)));
            let entries = walked.into_iter().map(|walked| match walked {
                Walked::Entry { entry, .. } => String::from_utf8(entry.path).unwrap(),
                Walked::Problem(problem) => panic!("{}", problem.why),
                Walked::End => panic!("an end before the last"),
            });
            entries.collect::<Vec<_>>()
        };
        let all = [
            "top",
            "top/a",
            "top/a/keep.o",
            "top/a/tmp",
            "top/a/tmp/y",
            "top/a/x.o",
            "top/link",
            "top/z",
        ];
        assert_eq!(found(&[], &[]), all);
        let some = ["top", "top/a", "top/a/keep.o", "top/link"];
        assert_eq!(found(&["*.o", "tmp", "/top/z", "/a"], &["a/keep.o"]), some);
    }

    #[test]
    fn a_thread_that_died_is_not_the_end() {
        let (found, walked) = mpsc::sync_channel(1);
        assert!(matches!(next(&walked), Ok(None)));
        assert!(found.send(Walked::End).is_ok());
        assert!(matches!(next(&walked), Ok(Some(Walked::End))));
        drop(found);
        assert!(next(&walked).is_err());
    }
}

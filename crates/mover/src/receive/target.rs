// SPDX-License-Identifier: MIT OR Apache-2.0
//! The target folder: everything is opened below it, and by nothing that leads out of it.

use super::folders::{Folder, Folders};
use super::part::{ENDLESS, Part, PartSpec};
use crate::limits::MOST_ATTRIBUTE_BYTES;
use crate::protocol::{Entry, Kind, Outcome, Problem, Receives};
use anyhow::{Context, Result};
use fatpath_tree::attributes;
use fatpath_tree::delete::{Deleted, Deleter, Named};
use fatpath_tree::journal::{Header, Journal};
use fatpath_tree::links::{self, Inode, Links, inode, link};
use fatpath_tree::system::{Within, change_mode, mode, open_below, open_place};
use fatpath_tree::{OURS, Patterns, checked, own, shown};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, fstat, mkdirat, statat};
use rustix::io::Errno;
use rustix::process::geteuid;
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
/// Folders that wait for what is arriving in them; beyond that nothing more is looked at.
const MOST_WAITING: usize = 8192;
/// Folders that stay open.
const MOST_FOLDERS: usize = 128;
const NO_SUCH_FILE: &str = "it is another name of a file that this transfer did not bring";
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
    /// Those whose mode and times are to be set when all is in them.
    waiting: Folders,
    /// Files that may get more names, and these.
    links: Links<Entry>,
    /// What was named, and what stays beside; `None`: nothing is deleted.
    deletes: Option<(Named, Patterns)>,
    /// What failed of that, and is to be told.
    problems: Vec<Problem>,
}

/// What is to be done for an entry.
pub enum Prepared {
    /// Nothing more.
    Done(Outcome),
    /// These are to be written.
    Part(Box<Part>, Vec<(u64, u64)>),
    /// Nothing until the file has arrived that it is another name of.
    Waits,
    /// It has its name; this folder is to be synced.
    Named(Arc<OwnedFd>),
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
        let deletes = receives.deletes.as_ref().map(|left_out| {
            let patterns = Patterns::new(&left_out.exclude, &left_out.include)?;
            anyhow::Ok((Named::default(), patterns))
        });
        Ok(Target {
            deletes: deletes.transpose()?,
            root: root.map(Arc::new),
            receives,
            boot: boot_id(),
            umask: umask(),
            folders: HashMap::new(),
            waiting: Folders::default(),
            links: Links::default(),
            problems: vec![],
        })
    }

    /// There is room to remember what more entries need.
    pub fn has_room(&self) -> bool {
        self.waiting.count() < MOST_WAITING && self.waiting.attribute_bytes() < MOST_ATTRIBUTE_BYTES
    }

    /// What is to be done for `entry`.
    pub fn prepare(&mut self, entry: &Entry) -> Prepared {
        let complete = self.waiting.named(&entry.path);
        self.dress(complete);
        let prepared = self
            .try_prepare(entry)
            .unwrap_or_else(|why| Prepared::Done(Outcome::Failed(why)));
        if let Some((named, _)) = &mut self.deletes
            && !matches!(prepared, Prepared::Done(Outcome::Failed(_)))
        {
            named.add(&entry.path, entry.kind == Kind::Folder);
        }
        if !matches!(prepared, Prepared::Done(_)) {
            self.waiting.awaits(&entry.path);
        }
        prepared
    }

    /// What was prepared is a file now, or is given up; gives what becomes of its other names.
    pub fn ended(&mut self, path: &[u8], is_there: bool) -> Vec<(u32, Prepared)> {
        let names = self.links.ended(path, is_there);
        let names = names.into_iter().map(|entry| {
            let outcome = match self.try_prepare(&entry) {
                Ok(named @ Prepared::Named(_)) => return (entry.object, named),
                Ok(Prepared::Done(outcome)) => outcome,
                Ok(_) => Outcome::Failed(NO_SUCH_FILE.to_owned()),
                Err(why) => Outcome::Failed(why),
            };
            self.arrived(&entry.path);
            (entry.object, Prepared::Done(outcome))
        });
        let prepared = names.collect();
        self.arrived(path);
        prepared
    }

    fn arrived(&mut self, path: &[u8]) {
        let complete = self.waiting.ended(path);
        self.dress(complete);
    }

    /// Deletes what was asked for; or, if not all `is_there`, nothing.
    pub fn delete(&mut self, is_there: bool, told: &mut dyn FnMut(Deleted)) {
        let Some((named, patterns)) = self.deletes.take() else {
            return;
        };
        let why_not = "nothing was deleted: something failed before".to_owned();
        let tops = match named.tops() {
            Ok(tops) if is_there => tops,
            tops => {
                let why = tops.err().unwrap_or(why_not);
                let path = self.receives.folder.clone();
                return self.note(Problem { path, why });
            }
        };
        let is_dry = self.receives.is_dry;
        for top in tops {
            match self.folder(&[top]) {
                Ok(folder) => Deleter {
                    named: &named,
                    patterns: &patterns,
                    is_dry,
                    told: &mut *told,
                }
                .clean(&folder, top),
                Err(Errno::NOENT) if is_dry => {} // it would be made
                Err(error) => told(Deleted::Stays(
                    top.clone(),
                    io::Error::from(error).to_string(),
                )),
            }
        }
    }

    /// Nothing more comes.
    pub fn finish(&mut self) {
        let left = self.waiting.end();
        self.dress(left);
    }

    /// Something of a file could not be stored.
    pub fn note(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    /// What failed of folders and attributes since this was asked last.
    pub fn take_problems(&mut self) -> Vec<Problem> {
        std::mem::take(&mut self.problems)
    }

    fn try_prepare(&mut self, entry: &Entry) -> Result<Prepared, String> {
        let names = self.permitted(entry)?;
        let (name, above) = names.split_last().ok_or("an empty path")?;
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
                    links::make_symbolic(&folder, name, target, &temporary(name, b".link"))
                        .map_err(text)?;
                }
                Ok(Prepared::Done(self.stored()))
            }
            Kind::File { size, is_linked } => {
                let there = there.filter(|there| is_same(Some(there), entry, *size));
                self.file(entry, &folder, name, there, (*size, *is_linked))
            }
            Kind::HardLink { of } => self.another_name(entry, of, &folder, name, there.as_ref()),
            Kind::Stream if self.receives.is_dry => Ok(Prepared::Done(Outcome::WouldStore)),
            Kind::Stream => self
                .open_part(entry, &folder, name, ENDLESS)
                .map_err(|error| error.to_string()),
        }
    }

    /// The names of its path, if the other end may offer it.
    fn permitted<'e>(&self, entry: &'e Entry) -> Result<Vec<&'e [u8]>, String> {
        let names = checked(&entry.path).map_err(|why| why.to_string())?;
        let asked = &self.receives.names;
        if !asked.is_empty() && !asked.iter().any(|name| name == names[0]) {
            return Err("the other end offers what was not asked for".to_owned());
        }
        let is_file = matches!(
            entry.kind,
            Kind::File { .. } | Kind::Stream | Kind::HardLink { .. }
        );
        let is_plain = names.len() == 1 && is_file;
        if !self.receives.is_recursive && !is_plain {
            return Err("it is no file, and --recursive was not given".to_owned());
        }
        Ok(names)
    }

    /// A file; `same`: one that is there, and is taken for it.
    fn file(
        &mut self,
        entry: &Entry,
        folder: &Arc<OwnedFd>,
        name: &[u8],
        same: Option<Stat>,
        (size, is_linked): (u64, bool),
    ) -> Result<Prepared, String> {
        if let Some(same) = same.filter(|_| !self.receives.ignores_times) {
            if is_linked {
                self.links.is_there(&entry.path, inode(&same));
            }
            self.attribute(entry, folder, name);
            return Ok(Prepared::Done(Outcome::Skipped));
        }
        if self.receives.is_dry {
            return Ok(Prepared::Done(Outcome::WouldStore));
        }
        let opened = self
            .open_part(entry, folder, name, size)
            .and_then(|prepared| {
                if let (Prepared::Part(part, _), true) = (&prepared, is_linked) {
                    let stat = fstat(&*part.spec.file)?;
                    self.links.begin(&entry.path, inode(&stat));
                }
                Ok(prepared)
            });
        opened.map_err(|error| error.to_string())
    }

    /// Of a file of this transfer, and of nothing else that may be there.
    fn another_name(
        &mut self,
        entry: &Entry,
        of: &[u8],
        folder: &Arc<OwnedFd>,
        name: &[u8],
        there: Option<&Stat>,
    ) -> Result<Prepared, String> {
        if self.receives.is_dry {
            return Ok(Prepared::Done(Outcome::WouldStore));
        }
        if self.links.wait(of, entry.clone()).is_none() {
            return Ok(Prepared::Waits);
        }
        let is_it = |file: &Inode| there.is_some_and(|there| inode(there) == *file);
        match self.links.get(of) {
            None => Err(NO_SUCH_FILE.to_owned()),
            Some(file) if is_it(&file) => Ok(Prepared::Done(Outcome::Skipped)),
            Some(file) => {
                let names = checked(of).map_err(|why| why.to_string())?;
                let (first, above) = names.split_last().ok_or("an empty path")?;
                let linked = self.folder(above).map_err(io::Error::from);
                let linked = linked.and_then(|above| {
                    link(
                        (&above, first),
                        file,
                        (folder, name),
                        &temporary(name, b".link"),
                    )
                });
                linked.map_err(|error| error.to_string())?;
                Ok(Prepared::Named(folder.clone()))
            }
        }
    }

    /// A file that is there already gets its attributes, with ACLs its mode too, where it is this user's.
    fn attribute(&mut self, entry: &Entry, folder: &OwnedFd, name: &[u8]) {
        let which = self.receives.attributes;
        if !which.is_any() || self.receives.is_dry {
            return;
        }
        let opened = open_place(folder, name).and_then(|file| Ok((fstat(&file)?, file)));
        let wanted = &entry.attributes;
        let done = match opened {
            Ok((stat, file)) if stat.st_uid == geteuid().as_raw() => {
                let changes =
                    which.acls && Mode::from_raw_mode(stat.st_mode) != mode(self.mode(entry));
                match changes {
                    true => change_mode(&file, mode(self.mode(entry))),
                    false => Ok(()),
                }
                .map_err(|error| format!("mode: {}", io::Error::from(error)))
                .and_then(|()| attributes::apply(&file, which, wanted))
            }
            Ok((_, file)) if attributes::are(&file, which, wanted) => Ok(()),
            Ok(_) => Err("attributes: the file is another user's".to_owned()),
            Err(error) => Err(format!("attributes: {}", io::Error::from(error))),
        };
        self.note_refused(&entry.path, done);
    }

    fn note_refused(&mut self, path: &[u8], done: Result<(), String>) {
        if let Err(why) = done {
            let path = path.to_owned();
            self.note(Problem { path, why });
        }
    }

    /// What a file gets: nobody else's programs run with this user's rights.
    fn mode(&self, entry: &Entry) -> u32 {
        match self.receives.preserves {
            true => entry.mode & 0o1777,
            false => entry.mode & 0o777 & !self.umask,
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
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        // A link in the way may be the sender's own, and lead to a folder of ours.
        let folder = open_below(&root, &path, flags, Within::Folder)?;
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
        let mode = mode(entry.mode & 0o777 | 0o700);
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
        if self.receives.preserves || self.receives.attributes.is_any() {
            self.waiting.begin(Folder {
                path: entry.path.clone(),
                mode: entry.mode & 0o1777,
                modified: entry.modified,
                accessed: entry.accessed,
                attributes: entry.attributes.clone(),
            });
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
        let file = File::from(own::open(folder, &part_name, OFlags::empty())?);
        own::lock(&file, folder, &part_name)?;
        let is_stream = size == ENDLESS;
        let journal = match size >= JOURNAL_FROM_BYTES && !is_stream {
            false => None,
            true => {
                let journal = own::open(folder, &journal_name, OFlags::APPEND)?;
                let header = Header {
                    file: file_key,
                    boot: self.boot,
                };
                Some(Journal::open(File::from(journal), header)?)
            }
        };
        let (journal, there) = journal.unzip();
        let part_bytes = file.metadata()?.len().min(size);
        // A journal whose part is gone, or was cut, tells nothing; nor does one of more than the file has.
        let there = there.filter(|there| there.iter().all(|(_, until)| until <= part_bytes));
        let part = Part::new(PartSpec {
            object: entry.object,
            size,
            modified: (!is_stream).then_some(entry.modified),
            accessed: (self.receives.preserves && !is_stream).then_some(entry.accessed),
            mode: self.mode(entry),
            attributes: (self.receives.attributes, entry.attributes.clone()),
            file: Arc::new(file),
            folder: folder.clone(),
            name: name.to_vec(),
            path: entry.path.clone(),
            part_name,
            journal_name,
            journal,
            there: there.unwrap_or_default(),
        });
        let wanted = match is_stream {
            true => vec![],
            false => part.missing(MOST_RANGES),
        };
        Ok(Prepared::Part(Box::new(part), wanted))
    }

    /// Gives folders their modes and times. What fails stays as it is, and is told.
    fn dress(&mut self, complete: Vec<Folder>) {
        for folder in complete {
            let names: Vec<_> = folder.path.split(|byte| *byte == b'/').collect();
            let set = self.folder(&names).and_then(|open| {
                if self.receives.preserves {
                    rustix::fs::fchmod(&*open, mode(folder.mode))?;
                    let times = super::part::times(Some(folder.modified), Some(folder.accessed));
                    rustix::fs::futimens(&*open, &times)?;
                }
                Ok(open)
            });
            let which = self.receives.attributes;
            let done = match set {
                Ok(open) if which.is_any() => attributes::apply(&open, which, &folder.attributes),
                set => set
                    .map(drop)
                    .map_err(|error| io::Error::from(error).to_string()),
            };
            self.note_refused(&folder.path, done);
        }
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

/// What is to have this name is called so before.
fn temporary(name: &[u8], end: &[u8]) -> Vec<u8> {
    let stem = hex(&blake3::hash(name).as_bytes()[..12]);
    [OURS, stem.as_bytes(), end].concat()
}

/// Of this boot of the kernel; random bytes where it is not told, and then nothing counts that was not synced.
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
    mask.as_raw_mode() as _
}

#[cfg(test)]
mod tests;

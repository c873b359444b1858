// SPDX-License-Identifier: MIT OR Apache-2.0
//! The thread that waits for the disk: it syncs what has arrived, and gives verified parts their names, many small ones at
//! a time. Nothing else waits for it: a disk may stand still for long.

use super::part::{Part, times};
use crate::protocol::Problem;
use fatpath_tree::system::{self, mode, sync_data};
use fatpath_tree::{attributes, shown};
use rustix::fs::{fchmod, futimens, renameat};
use rustix::io::Errno;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// Files are synced by so many threads at once: a file system commits together what is asked for together. `syncfs` would
/// wait for everybody's data.
const SYNC_THREADS: usize = 8;
/// Files wait for one another's sync, so many or so long at most.
const MOST_WAITING: usize = 512;
const MOST_WAIT: Duration = Duration::from_millis(50);

/// What the thread is asked.
pub enum Ask {
    /// A verified part is to become its file.
    Store(Box<Part>),
    /// The data, and then the journal, are to be on the disk.
    Sync {
        object: u32,
        file: Arc<File>,
        journal: Arc<File>,
        stretches: u64,
    },
    /// This folder has another name of a file that is stored.
    Named { object: u32, folder: Arc<OwnedFd> },
    /// Nothing will come of it.
    Forget(u32),
}

/// What it answers, and the thread that verifies before it.
pub enum Finished {
    /// The part became the file, or the other name is on the disk.
    Stored(u32),
    /// It did not.
    Failed(u32, String),
    /// Something of a file that is stored could not be.
    Lacks(Problem),
    /// So many stretches of the journal are on the disk; `None`: the disk refused, which is told when the part is whole.
    Synced(u32, Option<u64>),
}

/// Starts the thread. It ends when nobody can ask any more; once `is_given_up`, without doing what was asked.
pub fn start(
    answer: mpsc::Sender<Finished>,
    is_given_up: Arc<AtomicBool>,
) -> (mpsc::Sender<Ask>, thread::JoinHandle<()>) {
    let (ask, asked) = mpsc::channel();
    let thread = thread::spawn(move || {
        let mut store = Store {
            answer,
            is_given_up,
            unsynced: HashMap::new(),
            waiting: vec![],
            names: vec![],
            since: Instant::now(),
        };
        store.run(&asked);
    });
    (ask, thread)
}

struct Store {
    answer: mpsc::Sender<Finished>,
    is_given_up: Arc<AtomicBool>,
    /// Of which the disk refused something.
    unsynced: HashMap<u32, Errno>,
    /// To be synced together, other names and their folders with them, and since when the first of all waits.
    waiting: Vec<Part>,
    names: Vec<(u32, Arc<OwnedFd>)>,
    since: Instant,
}

impl Store {
    fn run(&mut self, asked: &mpsc::Receiver<Ask>) {
        loop {
            let ask = match self.count() == 0 {
                true => asked
                    .recv()
                    .map_err(|_| mpsc::RecvTimeoutError::Disconnected),
                false => asked.recv_timeout(MOST_WAIT.saturating_sub(self.since.elapsed())),
            };
            match ask {
                _ if self.is_given_up.load(Ordering::Relaxed) => return, // the parts stay for the next transfer
                Ok(ask) => self.take(ask),
                Err(mpsc::RecvTimeoutError::Timeout) => self.commit(),
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
            }
            if self.count() >= MOST_WAITING {
                self.commit();
            }
        }
        self.commit();
    }

    fn count(&self) -> usize {
        self.waiting.len() + self.names.len()
    }

    fn take(&mut self, ask: Ask) {
        if self.count() == 0 {
            self.since = Instant::now();
        }
        match ask {
            Ask::Store(part) => self.waiting.push(*part),
            Ask::Named { object, folder } => self.names.push((object, folder)),
            Ask::Sync {
                object,
                file,
                journal,
                stretches,
            } => {
                let synced = sync_data(&file).and_then(|()| sync_data(&journal));
                if let Err(error) = synced {
                    // The kernel tells of it once: the last sync of the file would succeed.
                    self.unsynced.entry(object).or_insert(error);
                }
                self.say(Finished::Synced(object, synced.ok().map(|()| stretches)));
            }
            Ask::Forget(object) => _ = self.unsynced.remove(&object),
        }
    }

    /// What keeps a part from its name before it is synced. What the disk has of one that an earlier sync refused is not
    /// known: no later transfer is to build on it.
    fn refused(&mut self, part: &Part) -> Option<io::Error> {
        let unsynced = self.unsynced.remove(&part.spec.object);
        unsynced.map(io::Error::from).or_else(|| dress(part).err())
    }

    /// A file without all its attributes is stored, and that is told.
    fn attribute(&self, part: &Part) {
        let (which, wanted) = &part.spec.attributes;
        if which.is_any()
            && let Err(why) = attributes::apply(&part.spec.file, *which, wanted)
        {
            let path = part.spec.path.clone();
            self.say(Finished::Lacks(Problem { path, why }));
        }
    }

    /// Syncs what waits, and gives it its names.
    fn commit(&mut self) {
        let mut parts = std::mem::take(&mut self.waiting);
        let mut failed: Vec<Option<io::Error>> =
            parts.iter().map(|part| self.refused(part)).collect();
        let sound = parts
            .iter()
            .zip(&failed)
            .filter(|(_, failed)| failed.is_none());
        sound.for_each(|(part, _)| self.attribute(part));
        sync(&parts, &mut failed);
        let mut folders = HashMap::new();
        for (part, failed) in parts.iter_mut().zip(&mut failed) {
            if failed.is_some() {
                part.discard();
            } else {
                *failed = name(part).err();
                folders.insert(Arc::as_ptr(&part.spec.folder), part.spec.folder.clone());
            }
        }
        let names = std::mem::take(&mut self.names);
        let others = names.iter().map(|(_, folder)| folder.clone());
        folders.extend(others.map(|folder| (Arc::as_ptr(&folder), folder)));
        // The names themselves are on the disk, too.
        let unsynced: HashMap<_, _> = folders
            .values()
            .filter_map(|folder| Some((Arc::as_ptr(folder), system::sync(folder).err()?)))
            .collect();
        let unsynced = |folder: &Arc<OwnedFd>| unsynced.get(&Arc::as_ptr(folder)).copied();
        for (part, failed) in parts.into_iter().zip(failed) {
            let failed = failed.or(unsynced(&part.spec.folder).map(io::Error::from));
            let object = part.spec.object;
            let finished = match failed {
                None => Finished::Stored(object),
                Some(error) => {
                    Finished::Failed(object, format!("{}: {error}", shown(&part.spec.path)))
                }
            };
            drop(part); // nothing changes its folder after the answer
            self.say(finished);
        }
        for (object, folder) in names {
            self.say(match unsynced(&folder) {
                None => Finished::Stored(object),
                Some(error) => Finished::Failed(object, io::Error::from(error).to_string()),
            });
        }
    }

    fn say(&self, finished: Finished) {
        let _ = self.answer.send(finished); // nobody asks any more
    }
}

/// Size, times and mode.
fn dress(part: &Part) -> io::Result<()> {
    let spec = &part.spec;
    if spec.file.metadata()?.size() != spec.size {
        spec.file.set_len(spec.size)?;
    }
    fchmod(&*spec.file, mode(spec.mode))?;
    futimens(&*spec.file, &times(spec.modified, spec.accessed))?;
    Ok(())
}

/// Where there are several, at once.
fn sync(parts: &[Part], failed: &mut [Option<io::Error>]) {
    let each = parts.len().div_ceil(SYNC_THREADS).max(1);
    let one = |parts: &[Part], failed: &mut [Option<io::Error>]| {
        for (part, failed) in parts.iter().zip(failed) {
            if failed.is_none() {
                *failed = system::sync(&part.spec.file).err().map(io::Error::from);
            }
        }
    };
    thread::scope(|scope| {
        let mut shares = parts.chunks(each).zip(failed.chunks_mut(each));
        let own = shares.next();
        for (parts, failed) in shares {
            scope.spawn(move || one(parts, failed));
        }
        if let Some((parts, failed)) = own {
            one(parts, failed);
        }
    });
}

fn name(part: &mut Part) -> io::Result<()> {
    let spec = &part.spec;
    renameat(
        &*spec.folder,
        &spec.part_name[..],
        &*spec.folder,
        &spec.name[..],
    )?;
    part.has_become_the_file();
    Ok(())
}

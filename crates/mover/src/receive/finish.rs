// SPDX-License-Identifier: MIT OR Apache-2.0
//! The thread that makes parts files: it hashes what has arrived, compares, syncs, and renames, many small ones at a time.

use super::part::{Part, times};
use crate::names::shown;
use rustix::fs::{Mode, fchmod, fdatasync, fsync, futimens, renameat};
use rustix::io::Errno;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// Read at a time for hashing.
const HASH_BYTES: usize = 1 << 20;
/// Files are synced by so many threads at once: a file system commits together what is asked for together. `syncfs` would
/// wait for everybody's data.
const SYNC_THREADS: usize = 8;
/// Files wait for one another's sync, so many or so long at most.
const MOST_WAITING: usize = 512;
const MOST_WAIT: Duration = Duration::from_millis(50);

/// What the thread is asked.
pub enum Ask {
    /// The file's bytes up to this one are there and can be hashed.
    Hash {
        object: u32,
        file: Arc<File>,
        until: u64,
    },
    /// All bytes are there.
    Whole(Box<Part>),
    /// What the sender read.
    Checksum(u32, [u8; 32]),
    /// The sender could not read it; or, with nothing to say, it failed here.
    Forget(u32, Option<String>),
    /// Its data, and then its journal, are to be on the disk.
    Sync {
        object: u32,
        file: Arc<File>,
        journal: File,
        stretches: u64,
    },
}

/// What it answers.
pub enum Finished {
    /// The part became the file.
    Stored(u32),
    /// It did not.
    Failed(u32, String),
    /// So many stretches of the journal are on the disk.
    Synced(u32, u64),
}

/// Starts the thread. It ends when nobody can ask any more.
pub fn start() -> (
    mpsc::Sender<Ask>,
    mpsc::Receiver<Finished>,
    thread::JoinHandle<()>,
) {
    let (ask, asked) = mpsc::channel();
    let (answer, answered) = mpsc::channel();
    let thread = thread::spawn(move || {
        let mut finisher = Finisher {
            answer,
            hashing: HashMap::new(),
            checksums: HashMap::new(),
            unsynced: HashMap::new(),
            whole: HashMap::new(),
            waiting: vec![],
            since: Instant::now(),
            buffer: vec![0; HASH_BYTES],
        };
        finisher.run(&asked);
    });
    (ask, answered, thread)
}

struct Finisher {
    answer: mpsc::Sender<Finished>,
    /// Of files that arrive: what was hashed, and up to where.
    hashing: HashMap<u32, (blake3::Hasher, u64)>,
    checksums: HashMap<u32, [u8; 32]>,
    /// Of which the disk refused something.
    unsynced: HashMap<u32, Errno>,
    /// Whole, but the sender has not said what it read.
    whole: HashMap<u32, Box<Part>>,
    /// Verified, to be synced together, and since when the first of them waits.
    waiting: Vec<Part>,
    since: Instant,
    buffer: Vec<u8>,
}

impl Finisher {
    fn run(&mut self, asked: &mpsc::Receiver<Ask>) {
        loop {
            let ask = match self.waiting.is_empty() {
                true => asked
                    .recv()
                    .map_err(|_| mpsc::RecvTimeoutError::Disconnected),
                false => asked.recv_timeout(MOST_WAIT.saturating_sub(self.since.elapsed())),
            };
            match ask {
                Ok(ask) => self.take(ask),
                Err(mpsc::RecvTimeoutError::Timeout) => self.commit(),
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
            }
            if self.waiting.len() >= MOST_WAITING {
                self.commit();
            }
        }
        self.commit();
    }

    fn take(&mut self, ask: Ask) {
        match ask {
            Ask::Hash {
                object,
                file,
                until,
            } => {
                // What cannot be read is said when the file is whole.
                let _ = self.hash(object, &file, until);
            }
            Ask::Whole(part) => {
                let object = part.spec.object;
                self.whole.insert(object, part);
                self.judge(object);
            }
            Ask::Checksum(object, checksum) => {
                self.checksums.insert(object, checksum);
                self.judge(object);
            }
            Ask::Forget(object, why) => {
                self.hashing.remove(&object);
                self.checksums.remove(&object);
                self.unsynced.remove(&object);
                if let (Some(mut part), Some(why)) = (self.whole.remove(&object), why) {
                    part.discard();
                    self.say(Finished::Failed(object, why));
                }
            }
            Ask::Sync {
                object,
                file,
                journal,
                stretches,
            } => {
                match fdatasync(&*file).and_then(|()| fdatasync(&journal)) {
                    Ok(()) => self.say(Finished::Synced(object, stretches)),
                    // The kernel tells of it once: the last sync of the file would succeed.
                    Err(error) => _ = self.unsynced.entry(object).or_insert(error),
                }
            }
        }
    }

    fn hash(&mut self, object: u32, file: &File, until: u64) -> io::Result<()> {
        let (hasher, at) = self.hashing.entry(object).or_default();
        while *at < until {
            let most = (until - *at).min(self.buffer.len() as u64) as usize;
            let bytes = &mut self.buffer[..most];
            file.read_exact_at(bytes, *at)?;
            hasher.update(bytes);
            *at += most as u64;
        }
        Ok(())
    }

    /// Both the file and the sender's checksum may be there.
    fn judge(&mut self, object: u32) {
        let Some(checksum) = self.checksums.get(&object).copied() else {
            return;
        };
        let Some(mut part) = self.whole.remove(&object) else {
            return;
        };
        self.checksums.remove(&object);
        let synced = self.unsynced.remove(&object).map_or(Ok(()), Err);
        let hashed = self.hash(object, &part.spec.file.clone(), part.spec.size);
        let (hasher, _) = self.hashing.remove(&object).unwrap_or_default();
        match synced.map_err(io::Error::from).and(hashed) {
            Ok(()) if *hasher.finalize().as_bytes() == checksum => {
                if self.waiting.is_empty() {
                    self.since = Instant::now();
                }
                self.waiting.push(*part);
            }
            Ok(()) => {
                part.discard();
                let why = "what arrived is not what was read there: it changed meanwhile, or a disk or memory is faulty";
                self.say(Finished::Failed(object, why.to_owned()));
            }
            // What the disk has of it is not known: no later transfer is to build on it.
            Err(error) => {
                part.discard();
                self.say(Finished::Failed(object, error.to_string()));
            }
        }
    }

    /// Syncs what waits, and gives it its names.
    fn commit(&mut self) {
        let mut parts = std::mem::take(&mut self.waiting);
        let mut failed: Vec<Option<io::Error>> =
            parts.iter().map(|part| dress(part).err()).collect();
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
        // The names themselves are on the disk, too.
        let folders: HashMap<_, _> = folders
            .into_iter()
            .map(|(folder, fd)| (folder, fsync(&*fd).err()))
            .collect();
        for (part, failed) in parts.iter().zip(failed) {
            let unsynced = folders
                .get(&Arc::as_ptr(&part.spec.folder))
                .copied()
                .flatten();
            let failed = failed.or(unsynced.map(io::Error::from));
            let object = part.spec.object;
            self.say(match failed {
                None => Finished::Stored(object),
                Some(error) => {
                    Finished::Failed(object, format!("{}: {error}", shown(&part.spec.path)))
                }
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
    fchmod(&*spec.file, Mode::from_raw_mode(spec.mode))?;
    futimens(&*spec.file, &times(spec.modified, spec.accessed))?;
    Ok(())
}

/// Where there are several, at once.
fn sync(parts: &[Part], failed: &mut [Option<io::Error>]) {
    let each = parts.len().div_ceil(SYNC_THREADS).max(1);
    let one = |parts: &[Part], failed: &mut [Option<io::Error>]| {
        for (part, failed) in parts.iter().zip(failed) {
            if failed.is_none() {
                *failed = fsync(&*part.spec.file).err().map(io::Error::from);
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

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The threads that make parts files: this one hashes what has arrived and compares, the one of `store.rs` syncs and
//! renames. Each works while the other waits.

use super::part::Part;
use super::store::{self, Finished};
use fatpath_bottleneck::hashing::{Hashing, Unstored};
use fatpath_bottleneck::receiver::Finishing;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

/// Read at a time for hashing.
const HASH_BYTES: usize = 1 << 20;
/// Beginnings of files that wait to be hashed, at most: those of a disk that reads slowly are hashed when the file is whole.
const MOST_BEGINNINGS: usize = 256;

/// What the threads are asked.
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
        journal: Arc<File>,
        stretches: u64,
    },
    /// Another name of a file that is stored: it is to be on the disk, in this folder.
    Named { object: u32, folder: Arc<OwnedFd> },
}

/// Both threads.
pub struct Threads {
    ask: mpsc::Sender<Ask>,
    store: mpsc::Sender<store::Ask>,
    is_given_up: Arc<AtomicBool>,
    beginnings: Arc<AtomicUsize>,
    hashing: Arc<Hashing>,
    threads: [thread::JoinHandle<()>; 2],
}

impl Threads {
    /// Starts them; what they finish is received.
    pub fn start() -> (Threads, mpsc::Receiver<Finished>) {
        let (ask, asked) = mpsc::channel();
        let (answer, answered) = mpsc::channel();
        let is_given_up = Arc::new(AtomicBool::new(false));
        let (store, storing) = store::start(answer.clone(), is_given_up.clone());
        let beginnings = Arc::new(AtomicUsize::new(0));
        let hashing = Arc::new(Hashing::default());
        let mut finisher = Finisher {
            beginnings: beginnings.clone(),
            hashing_now: hashing.clone(),
            answer,
            store: store.clone(),
            is_given_up: is_given_up.clone(),
            hashing: HashMap::new(),
            checksums: HashMap::new(),
            whole: HashMap::new(),
            buffer: vec![0; HASH_BYTES],
        };
        let finishing = thread::spawn(move || finisher.run(&asked));
        let threads = Threads {
            ask,
            store,
            is_given_up,
            beginnings,
            hashing,
            threads: [finishing, storing],
        };
        (threads, answered)
    }

    /// The beginning of a file may be given to be hashed: few wait.
    pub fn hash_early(&self) -> bool {
        self.beginnings.load(Ordering::Relaxed) < MOST_BEGINNINGS
    }

    /// What they do for files that are whole, and of which the sender has said what it read.
    pub fn finishing(&self) -> Finishing {
        self.hashing.finishing()
    }

    /// Asks them.
    pub fn ask(&self, ask: Ask) {
        if matches!(ask, Ask::Hash { .. }) {
            self.beginnings.fetch_add(1, Ordering::Relaxed);
        }
        // They live as long as this.
        let _ = match ask {
            Ask::Sync {
                object,
                file,
                journal,
                stretches,
            } => {
                let ask = store::Ask::Sync {
                    object,
                    file,
                    journal,
                    stretches,
                };
                self.store.send(ask).is_ok()
            }
            Ask::Named { object, folder } => self
                .store
                .send(store::Ask::Named { object, folder })
                .is_ok(),
            ask => self.ask.send(ask).is_ok(),
        };
    }

    /// Waits until what was asked is done; or, where the session failed, only for what has begun.
    pub fn end(self, has_failed: bool) {
        self.is_given_up.store(has_failed, Ordering::Relaxed);
        drop((self.ask, self.store));
        for thread in self.threads {
            let _ = thread.join();
        }
    }
}

struct Finisher {
    /// Asked for, and not hashed.
    beginnings: Arc<AtomicUsize>,
    /// What it does, for the thread that writes.
    hashing_now: Arc<Hashing>,
    answer: mpsc::Sender<Finished>,
    store: mpsc::Sender<store::Ask>,
    is_given_up: Arc<AtomicBool>,
    /// Of files that arrive: what was hashed, and up to where.
    hashing: HashMap<u32, (blake3::Hasher, u64)>,
    checksums: HashMap<u32, [u8; 32]>,
    /// Whole, but the sender has not said what it read.
    whole: HashMap<u32, Box<Part>>,
    buffer: Vec<u8>,
}

impl Finisher {
    fn run(&mut self, asked: &mpsc::Receiver<Ask>) {
        for ask in asked {
            if self.is_given_up.load(Ordering::Relaxed) {
                return; // the parts stay for the next transfer
            }
            self.take(ask);
        }
    }

    fn take(&mut self, ask: Ask) {
        match ask {
            Ask::Hash {
                object,
                file,
                until,
            } => {
                self.beginnings.fetch_sub(1, Ordering::Relaxed);
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
                let _ = self.store.send(store::Ask::Forget(object));
                if let (Some(mut part), Some(why)) = (self.whole.remove(&object), why) {
                    part.discard();
                    drop(part);
                    self.say(Finished::Failed(object, why));
                }
            }
            Ask::Sync { .. } | Ask::Named { .. } => {} // the other thread's
        }
    }

    fn hash(&mut self, object: u32, file: &File, until: u64) -> io::Result<()> {
        let shown = self.hashing_now.clone();
        shown.busy(|| self.hash_on(object, file, until))
    }

    fn hash_on(&mut self, object: u32, file: &File, until: u64) -> io::Result<()> {
        let (hasher, at) = self.hashing.entry(object).or_default();
        while *at < until {
            if self.is_given_up.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let most = (until - *at).min(self.buffer.len() as u64) as usize;
            let bytes = &mut self.buffer[..most];
            self.hashing_now.read(|| file.read_exact_at(bytes, *at))?;
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
        part.unstored = Some(Unstored::of(&self.hashing_now));
        let hashed = self.hash(object, &part.spec.file.clone(), part.spec.size);
        let (hasher, _) = self.hashing.remove(&object).unwrap_or_default();
        match hashed {
            Ok(()) if *hasher.finalize().as_bytes() == checksum => {
                let _ = self.store.send(store::Ask::Store(part)); // it lives as long as this sender
            }
            Err(_) if self.is_given_up.load(Ordering::Relaxed) => {} // the part stays
            Ok(()) => {
                part.discard();
                drop(part);
                let why = "what arrived is not what was read there: it changed meanwhile, or a disk or memory is faulty";
                self.say(Finished::Failed(object, why.to_owned()));
            }
            Err(error) => {
                part.discard();
                drop(part);
                self.say(Finished::Failed(object, error.to_string()));
            }
        }
    }

    fn say(&self, finished: Finished) {
        let _ = self.answer.send(finished); // nobody asks any more
    }
}

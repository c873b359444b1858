// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files that are being sent: their bytes, read again for what is lost, and their checksums.
//!
//! New data come in the order of the file, so that what is read for sending is hashed too. A file of which only a part is
//! wanted is hashed by a thread of its own. A file is the one that was found, from before its first byte to after its last,
//! or it fails.

use super::input::{Ended, Input};
use crate::protocol::Checksum;
use fatpath_bottleneck::hashing::Hashing;
use fatpath_driver::Source;
use fatpath_transport::Run;
use fatpath_tree::{Identity, Tree, holes};
use rustix::fs::OFlags;
use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::thread;

/// Read at a time: it stays in the processor's cache until it has left.
const CHUNK_BYTES: u64 = 128 << 10;

/// Chunks that are kept for each flow beside others: as far as they are apart.
const CHUNKS_OF_FLOW: usize = 4;

/// What was a file may be a pipe by now, which an opening would wait for.
pub const READING: OFlags = (OFlags::RDONLY.union(OFlags::NONBLOCK)).union(OFlags::NOCTTY);

const CHANGED: &str = "it changed while it was being sent";

/// One file.
struct SourceFile {
    file: Arc<File>,
    identity: Identity,
    size: u64,
    has_holes: bool,
    /// What is read is hashed; `None`: the thread does it.
    hasher: Option<blake3::Hasher>,
    /// All before this was read for sending.
    read_until: u64,
    has_failed: bool,
}

/// What was read together.
#[derive(Default)]
struct Chunk {
    object: u32,
    from: u64,
    bytes: Vec<u8>,
}

/// The files that are being sent.
pub struct Files {
    pub tree: Arc<Tree>,
    files: HashMap<u32, SourceFile>,
    /// What was read last, the newest first: a flow that is behind others finds there what they passed over.
    chunks: VecDeque<Chunk>,
    checksums: Vec<Checksum>,
    /// Holes are not sent.
    pub tells_holes: bool,
    /// What is no file, and is sent by itself.
    pub input: Option<Input>,
    to_hash: mpsc::Sender<ToHash>,
    hashed: mpsc::Receiver<Checksum>,
    /// What the thread does that hashes.
    pub hashing: Arc<Hashing>,
}

struct ToHash {
    object: u32,
    file: Arc<File>,
    identity: Identity,
}

impl Files {
    /// Of `tree`, to be read by so many flows.
    pub fn new(tree: Arc<Tree>, flows: usize) -> Files {
        let chunks = if flows > 1 { CHUNKS_OF_FLOW * flows } else { 1 };
        let (to_hash, asked) = mpsc::channel::<ToHash>();
        let (done, hashed) = mpsc::channel();
        let hashing = Arc::new(Hashing::default());
        let shown = hashing.clone();
        thread::spawn(move || {
            for ToHash {
                object,
                file,
                identity,
            } in asked
            {
                let blake3 = shown.busy(|| hash(&file, &identity, &shown));
                let blake3 = blake3.map_err(|error| error.to_string());
                if done.send(Checksum { object, blake3 }).is_err() {
                    break;
                }
            }
        });
        Files {
            tree,
            files: HashMap::new(),
            chunks: (0..chunks).map(|_| Chunk::default()).collect(),
            checksums: vec![],
            tells_holes: false,
            input: None,
            to_hash,
            hashed,
            hashing,
        }
    }

    /// A file is wanted, all of it or a part. Where it cannot be read, its checksum tells why.
    pub fn open(&mut self, object: u32, found: &Found) {
        let identity = found.identity;
        let opened = self.open_same(found).and_then(|file| {
            let file = Arc::new(file);
            let has_holes = self.tells_holes && holes::may_have(&file.metadata()?);
            // What is not read for sending is hashed by the thread.
            let is_whole = found.is_wanted_whole && !has_holes;
            if !is_whole {
                let to_hash = ToHash {
                    object,
                    file: file.clone(),
                    identity,
                };
                self.to_hash.send(to_hash).map_err(io::Error::other)?;
            }
            Ok((file, has_holes, is_whole))
        });
        let (file, has_holes, is_whole) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                let blake3 = Err(error.to_string());
                self.checksums.push(Checksum { object, blake3 });
                return;
            }
        };
        if is_whole && found.size == 0 {
            let blake3 = Ok(*blake3::hash(b"").as_bytes());
            self.checksums.push(Checksum { object, blake3 });
        }
        let file = SourceFile {
            file,
            identity,
            size: found.size,
            has_holes,
            hasher: is_whole.then(blake3::Hasher::new),
            read_until: 0,
            has_failed: false,
        };
        self.files.insert(object, file);
    }

    /// Opens what was found, and nothing that has taken its place.
    fn open_same(&self, found: &Found) -> io::Result<File> {
        let file = self.tree.open(&found.path, READING)?;
        match Identity::of(&file.metadata()?) == found.identity {
            true => Ok(file),
            false => Err(io::Error::other(CHANGED)),
        }
    }

    /// Files that are open.
    pub fn count(&self) -> usize {
        self.files.len()
    }

    /// The first stretch of it, from `from` to before `until`, that is to be sent, `most` bytes of it at most; an empty one at
    /// the end: none is.
    pub fn data(&mut self, object: u32, from: u64, until: u64, most: u64) -> (u64, u64) {
        let file = self.files.get(&object).filter(|file| file.has_holes);
        let data = file.map(|file| holes::data(&file.file, from, until, most));
        match data {
            None => (from, until.min(from + most)),
            Some(Ok(data)) => data.unwrap_or((until, until)),
            Some(Err(error)) => {
                self.fail(object, error.to_string());
                (until, until)
            }
        }
    }

    /// Nothing more is wanted of it.
    pub fn close(&mut self, object: u32) {
        self.files.remove(&object);
    }

    /// Its bytes are still wanted, and can be read.
    pub fn is_open(&self, object: u32) -> bool {
        self.files.get(&object).is_some_and(|file| !file.has_failed)
    }

    /// Checksums that became known.
    pub fn take_checksums(&mut self) -> Vec<Checksum> {
        self.checksums.extend(self.hashed.try_iter());
        std::mem::take(&mut self.checksums)
    }

    fn fail(&mut self, object: u32, why: String) {
        if let Some(file) = self.files.get_mut(&object)
            && !std::mem::replace(&mut file.has_failed, true)
        {
            let blake3 = Err(why);
            self.checksums.push(Checksum { object, blake3 });
        }
    }

    /// The input has ended.
    pub fn ended(&mut self, ended: Ended) {
        let Ended { object, blake3, .. } = ended;
        self.checksums.push(Checksum { object, blake3 });
    }

    fn fill(&mut self, run: &Run, into: &mut [u8]) -> io::Result<()> {
        if self
            .input
            .as_ref()
            .is_some_and(|input| input.copy(run, into))
        {
            return Ok(());
        }
        let Some(file) = self.files.get_mut(&run.object) else {
            return Ok(());
        };
        if file.has_failed {
            return Ok(());
        }
        if self.chunks.iter().any(|chunk| chunk.copy(run, into)) {
            return Ok(());
        }
        let end = run.offset + into.len() as u64;
        if end <= file.read_until {
            return read_exact(&file.file, into, run.offset); // sent again
        }
        while file.read_until < end {
            self.chunks.rotate_right(1);
            self.chunks[0].load(run, file)?;
        }
        if file.hasher.is_some() && file.read_until == file.size {
            file.check()?;
            let hasher = file.hasher.take();
            let blake3 = hasher.map(|hasher| *hasher.finalize().as_bytes());
            self.checksums.extend(blake3.map(|blake3| Checksum {
                object: run.object,
                blake3: Ok(blake3),
            }));
        }
        match self.chunks[0].copy(run, into) {
            true => Ok(()),
            false => read_exact(&file.file, into, run.offset), // across the chunk's beginning
        }
    }
}

impl Source for Files {
    fn read(&mut self, run: &Run, into: &mut [u8]) {
        if let Err(error) = self.fill(run, into) {
            self.fail(run.object, error.to_string());
        }
    }
}

impl Chunk {
    /// Says whether it has the run.
    fn copy(&self, run: &Run, into: &mut [u8]) -> bool {
        let place = run
            .offset
            .checked_sub(self.from)
            .and_then(|place| usize::try_from(place).ok());
        let bytes = place.and_then(|place| self.bytes.get(place..place + into.len()));
        match bytes {
            Some(bytes) if self.object == run.object => into.copy_from_slice(bytes),
            _ => return false,
        }
        true
    }

    /// Reads on, and hashes it; over what is not wanted it goes where nothing is hashed.
    fn load(&mut self, run: &Run, file: &mut SourceFile) -> io::Result<()> {
        let from = match file.hasher {
            Some(_) => file.read_until,
            None => file.read_until.max(run.offset),
        };
        let length = CHUNK_BYTES.min(file.size - from);
        (self.object, self.from) = (run.object, from);
        self.bytes.resize(length as usize, 0);
        let read = read_exact(&file.file, &mut self.bytes, from);
        if read.is_err() {
            self.bytes.clear();
        }
        read?;
        if let Some(hasher) = &mut file.hasher {
            hasher.update(&self.bytes);
        }
        file.read_until = from + length;
        Ok(())
    }
}

impl SourceFile {
    fn check(&self) -> io::Result<()> {
        match Identity::of(&self.file.metadata()?) == self.identity {
            true => Ok(()),
            false => Err(io::Error::other(CHANGED)),
        }
    }
}

fn hash(file: &File, identity: &Identity, shown: &Hashing) -> io::Result<[u8; 32]> {
    let (mut hasher, mut at) = (blake3::Hasher::new(), 0);
    let mut bytes = vec![0; 1 << 20];
    loop {
        let read = shown.read(|| file.read_at(&mut bytes, at))?;
        if read == 0 {
            break;
        }
        hasher.update(&bytes[..read]);
        at += read as u64;
    }
    match Identity::of(&file.metadata()?) == *identity {
        true => Ok(*hasher.finalize().as_bytes()),
        false => Err(io::Error::other(CHANGED)),
    }
}

/// A file that ends early has changed.
fn read_exact(file: &File, into: &mut [u8], offset: u64) -> io::Result<()> {
    file.read_exact_at(into, offset)
        .map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => io::Error::other(CHANGED),
            _ => error,
        })
}

/// A file that was found, and has no final answer.
pub struct Found {
    /// As the other end knows it.
    pub name: Vec<u8>,
    pub path: PathBuf,
    pub identity: Identity,
    /// Of a file; 0 of anything else.
    pub size: u64,
    pub attribute_bytes: usize,
    pub is_file: bool,
    /// Its bytes were asked for, all of them or a part, and it was opened for that.
    pub is_wanted: bool,
    pub is_wanted_whole: bool,
    pub is_opened: bool,
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A segment that grows: a file, and what is to be written to it.

use crate::Kind;
use crate::sealed::Sealed;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Frames are written together at this size.
const WRITE_BYTES: usize = 256 << 10;

/// One for each kind of event.
#[derive(Debug)]
pub(super) struct Active {
    path: PathBuf,
    file: Option<File>,
    first_sequence: u64,
    begun_us: i64,
    events: u64,
    /// Bytes of whole frames in the file.
    written_bytes: u64,
    pending: Vec<u8>,
    is_dirty: bool,
    /// The folder was not synced since the file was created.
    is_new: bool,
}

impl Active {
    /// Begins with the header, in memory.
    pub(super) fn new(path: PathBuf, first_sequence: u64, begun_us: i64, head: Vec<u8>) -> Active {
        Active {
            path,
            file: None,
            first_sequence,
            begun_us,
            events: 0,
            written_bytes: 0,
            pending: head,
            is_dirty: false,
            is_new: false,
        }
    }

    pub(super) fn push(&mut self, frame: &[u8]) {
        self.pending.extend(frame);
        self.events += 1;
    }

    /// Enough is pending to be written. Memory is bounded: without a successful write no more is taken.
    pub(super) fn wants_write(&self) -> bool {
        self.pending.len() >= WRITE_BYTES
    }

    /// All of what is pending, or nothing of it.
    pub(super) fn write(&mut self) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        if self.file.is_none() {
            self.file = Some(create(&self.path)?);
            self.is_new = true;
        }
        let file = self.file.as_mut().expect("it was created above");
        if let Err(error) = file.write_all(&self.pending) {
            // The next attempt begins where whole frames end. The file is opened for appending.
            let _ = file.set_len(self.written_bytes);
            return Err(error);
        }
        self.written_bytes += self.pending.len() as u64;
        self.pending.clear();
        self.is_dirty = true;
        Ok(())
    }

    pub(super) fn sync(&mut self) -> io::Result<()> {
        if let (true, Some(file)) = (self.is_dirty, &self.file) {
            file.sync_data()?;
            self.is_dirty = false;
        }
        Ok(())
    }

    pub(super) fn is_durable(&self) -> bool {
        self.pending.is_empty() && !self.is_dirty
    }

    pub(super) fn is_new(&self) -> bool {
        self.is_new
    }

    /// The folder was synced.
    pub(super) fn note_named(&mut self) {
        self.is_new = false;
    }

    pub(super) fn bytes(&self) -> u64 {
        self.written_bytes + self.pending.len() as u64
    }

    pub(super) fn events(&self) -> u64 {
        self.events
    }

    pub(super) fn begun_us(&self) -> i64 {
        self.begun_us
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn into_sealed(self, kind: Kind) -> Sealed {
        Sealed {
            path: self.path,
            kind,
            first_sequence: self.first_sequence,
            begun_us: self.begun_us,
            bytes: self.written_bytes,
            events: self.events,
            is_claimed: false,
        }
    }
}

/// 0640: who may read the flow log may read it.
fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create_new(true).mode(0o640).open(path)
}

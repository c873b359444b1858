// SPDX-License-Identifier: MIT OR Apache-2.0
//! A file that is arriving: its bytes are written where they belong as they come, and noted in its journal.

use crate::protocol::Hole;
use fatpath_bottleneck::hashing::Unstored;
use fatpath_transport::frame::Write;
use fatpath_tree::attributes::{Attribute, Which};
use fatpath_tree::journal::Journal;
use fatpath_tree::{Ranges, holes};
use rustix::fs::{AtFlags, Timespec, Timestamps, UTIME_OMIT, unlinkat};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Noted in the journal at the latest when so many bytes are not.
const NOTE_BYTES: u64 = 1 << 20;

/// The size of a stream that has not ended.
pub const ENDLESS: u64 = u64::MAX;

/// What a part is of.
pub struct PartSpec {
    pub object: u32,
    /// Or [`ENDLESS`].
    pub size: u64,
    /// `None`: it has none.
    pub modified: Option<(i64, u32)>,
    /// `None`: it is not kept.
    pub accessed: Option<(i64, u32)>,
    pub mode: u32,
    /// What is stored of attributes, and those.
    pub attributes: (Which, Vec<Attribute>),
    pub file: Arc<File>,
    pub folder: Arc<OwnedFd>,
    pub name: Vec<u8>,
    pub path: Vec<u8>,
    pub part_name: Vec<u8>,
    pub journal_name: Vec<u8>,
    pub journal: Option<Journal>,
    /// What an earlier transfer has brought.
    pub there: Ranges,
}

/// A file that is arriving.
pub struct Part {
    pub spec: PartSpec,
    there: Ranges,
    /// Written, and not noted.
    unnoted: Ranges,
    failed: Option<io::Error>,
    /// It goes to the file's name, or is kept for a later transfer.
    is_kept: bool,
    /// Bytes from the beginning that were given to be hashed.
    pub hashed_until: u64,
    /// Stretches that the last sync was asked to cover.
    pub synced_stretches: u64,
    /// That sync has no answer.
    pub is_syncing: bool,
    /// From when its checksum is known until it is stored.
    pub unstored: Option<Unstored>,
}

impl Part {
    pub fn new(mut spec: PartSpec) -> Part {
        Part {
            there: std::mem::take(&mut spec.there),
            is_kept: spec.journal.is_some(),
            spec,
            unnoted: Ranges::default(),
            failed: None,
            hashed_until: 0,
            synced_stretches: 0,
            is_syncing: false,
            unstored: None,
        }
    }

    /// What lacks, in `most` stretches at most.
    pub fn missing(&self, most: usize) -> Vec<(u64, u64)> {
        self.there.missing(self.spec.size, most)
    }

    /// Bytes that are there.
    pub fn bytes(&self) -> u64 {
        self.there.bytes()
    }

    /// All bytes from the beginning to here are there.
    pub fn prefix(&self) -> u64 {
        self.there.prefix()
    }

    pub fn is_whole(&self) -> bool {
        self.there.bytes() == self.spec.size
    }

    /// It is a stream, and has ended.
    fn end(&mut self, size: u64) {
        self.spec.size = size;
        if self.there.iter().any(|(_, until)| until > size) {
            self.fail_too_long();
        }
    }

    fn fail_too_long(&mut self) {
        self.failed
            .get_or_insert_with(|| io::Error::other("the other end sends more than it said"));
    }

    /// What went wrong; it is said once.
    pub fn take_failure(&mut self) -> Option<io::Error> {
        self.failed.take()
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) {
        let end = offset.saturating_add(bytes.len() as u64);
        self.fill(offset, end, |file, from, until| {
            let bytes = &bytes[(from - offset) as usize..(until - offset) as usize];
            file.write_all_at(bytes, from)
        });
    }

    /// Has what lacks of these bytes made by `make`.
    fn fill(&mut self, from: u64, until: u64, make: impl Fn(&File, u64, u64) -> io::Result<()>) {
        if until > self.spec.size {
            self.fail_too_long();
        }
        if self.failed.is_some() {
            return;
        }
        // What came before may be hashed already: what comes again, by another flow, does not replace it.
        for (from, until) in self.there.missing_of(from, until) {
            if let Err(error) = make(&self.spec.file, from, until) {
                self.failed = Some(error);
                return;
            }
            self.unnoted.insert(from, until);
        }
        self.there.insert(from, until);
        if self.unnoted.bytes() >= NOTE_BYTES {
            self.note();
        }
    }

    /// Notes in the journal what was written since.
    pub fn note(&mut self) {
        let unnoted = std::mem::take(&mut self.unnoted);
        if let Some(journal) = &mut self.spec.journal
            && unnoted.bytes() > 0
            && let Err(error) = journal.note(&unnoted)
        {
            self.failed.get_or_insert(error);
        }
    }

    /// What is in it is of no use.
    pub fn discard(&mut self) {
        self.is_kept = false;
    }

    /// It has its name now; its journal goes.
    pub fn has_become_the_file(&mut self) {
        self.spec.journal = None;
        self.is_kept = true;
        self.unlink(&self.spec.journal_name);
    }

    fn unlink(&self, name: &[u8]) {
        // What is not there need not go.
        let _ = unlinkat(&*self.spec.folder, name, AtFlags::empty());
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.note();
        if !self.is_kept {
            self.unlink(&self.spec.part_name);
            self.unlink(&self.spec.journal_name);
        }
    }
}

/// What `futimens` takes.
pub fn times(modified: Option<(i64, u32)>, accessed: Option<(i64, u32)>) -> Timestamps {
    let time = |(tv_sec, tv_nsec): (i64, u32)| Timespec {
        tv_sec,
        tv_nsec: i64::from(tv_nsec).min(999_999_999),
    };
    let omitted = Timespec {
        tv_sec: 0,
        tv_nsec: UTIME_OMIT,
    };
    Timestamps {
        last_access: accessed.map_or(omitted, time),
        last_modification: modified.map_or(omitted, time),
    }
}

/// The files that are arriving.
#[derive(Default)]
pub struct Parts {
    pub parts: HashMap<u32, Box<Part>>,
    /// Parts that became whole, or failed, since this was looked at last.
    pub ready: Vec<u32>,
    /// Bytes that were written.
    pub bytes: u64,
}

impl Parts {
    /// Of what has ended already nothing is wanted.
    pub fn write(&mut self, write: &Write<'_>) {
        self.bytes += self.change(write.object, |part| part.write(write.offset, write.bytes));
    }

    /// Gives how many bytes are there by that.
    pub fn hole(&mut self, hole: &Hole) -> u64 {
        self.change(hole.object, |part| {
            part.fill(hole.from, hole.until, holes::make)
        })
    }

    /// Gives how many bytes more are there.
    fn change(&mut self, object: u32, change: impl FnOnce(&mut Part)) -> u64 {
        let Some(part) = self.parts.get_mut(&object) else {
            return 0;
        };
        let was_done = part.is_whole() || part.failed.is_some();
        let before = part.bytes();
        change(part);
        if !was_done && (part.is_whole() || part.failed.is_some()) {
            self.ready.push(object);
        }
        part.bytes() - before
    }

    /// A stream has ended, and was so long.
    pub fn end(&mut self, object: u32, size: u64) {
        if let Some(part) = self.parts.get_mut(&object)
            && part.spec.size == ENDLESS
            && part.failed.is_none()
        {
            part.end(size);
            if part.is_whole() || part.failed.is_some() {
                self.ready.push(object);
            }
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What shows that a file is still the one that it was.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// A file's inode, size, and when content or inode changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    inode: (u64, u64),
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Identity {
    /// Of what the kernel says.
    pub fn of(metadata: &Metadata) -> Identity {
        Identity {
            inode: (metadata.dev(), metadata.ino()),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What bounds memory and open files.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What an option gives in bytes.
///
/// # Errors
/// It has no unit, or is none.
pub fn size(text: &str) -> Result<u64, String> {
    let bytes = fatpath_units::bytes(text).and_then(|bytes| u64::try_from(bytes).ok());
    bytes.ok_or_else(|| "give bytes, such as 256MiB".to_owned())
}

/// Entries that a sender has named and that have no final answer, at most.
pub const MOST_UNANSWERED: usize = 16_384;
/// What the attributes of those take in memory: a sender names no more, and a receiver takes what one message more may have.
pub const MOST_ATTRIBUTE_BYTES: usize = 16 << 20;
/// Files that an end has open, at most.
const MOST_OPEN: usize = 4096;
/// Open files beside those.
const SPARE_FILES: u64 = 256; // folders that stay open among them
/// Of a part: its file, its journal, its folder.
const FILES_OF_PART: u64 = 3;

/// Raises the limit of open files as far as it goes, and gives how many files of a transfer an end may have open.
pub fn open_files() -> usize {
    let wanted = FILES_OF_PART * MOST_OPEN as u64 + SPARE_FILES;
    let holds = raise_open_files(wanted);
    (holds.saturating_sub(SPARE_FILES) / FILES_OF_PART).clamp(16, MOST_OPEN as u64) as usize
}

/// Raises the limit of open files to what is `wanted`, as far as it goes, and gives how many of these there may be.
pub fn raise_open_files(wanted: u64) -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(u64::MAX).min(wanted);
    let current = limit.current.unwrap_or(u64::MAX).max(most);
    // Refused, the old limit holds.
    let raised = Rlimit {
        current: Some(current),
        maximum: limit.maximum,
    };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => most,
        Err(_) => limit.current.unwrap_or(wanted),
    }
}

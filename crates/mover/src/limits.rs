// SPDX-License-Identifier: MIT OR Apache-2.0
//! What bounds memory and open files.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Entries that a sender has named and that have no final answer, at most.
pub const MOST_UNANSWERED: usize = 16_384;
/// Parts of files that a receiver has open, at most.
const MOST_OPEN: usize = 4096;
/// Open files beside those.
const SPARE_FILES: u64 = 64;

/// Raises the limit of open files as far as it goes, and gives how many files of a transfer may be open.
pub fn open_files() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let wanted = 2 * MOST_OPEN as u64 + SPARE_FILES; // a part, and its journal
    let most = limit.maximum.unwrap_or(u64::MAX).min(wanted);
    let current = limit.current.unwrap_or(u64::MAX).max(most);
    // Refused, the old limit holds.
    let raised = Rlimit {
        current: Some(current),
        maximum: limit.maximum,
    };
    let holds = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => most,
        Err(_) => limit.current.unwrap_or(wanted),
    };
    (holds.saturating_sub(SPARE_FILES) / 2).clamp(16, MOST_OPEN as u64) as usize
}

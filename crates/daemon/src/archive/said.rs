// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the daemon says of itself as a warning or an error is an event of its archive, too: beside the flows of that
//! time, and in the store of a site with what other hosts said.

use super::Archive;
use super::event::event_now;
use fatpath_archive::Kind;
use serde_json::json;
use std::sync::{Arc, OnceLock};

/// Of what is said, in characters.
const MOST_SAID: usize = 4096;

/// The log is of the process.
static ARCHIVE: OnceLock<Arc<Archive>> = OnceLock::new();

/// From now on it has what is said.
pub(crate) fn keep_said_in(archive: &Arc<Archive>) {
    // A process runs one daemon.
    let _ = ARCHIVE.set(Arc::clone(archive));
}

/// Archives a message of the log; where no daemon runs, or it keeps no archive, does nothing. `level` is `warning` or
/// `error`. Never waits.
pub fn archive_said(level: &str, message: &str) {
    let Some(archive) = ARCHIVE.get() else {
        return;
    };
    let message: String = message.chars().take(MOST_SAID).collect();
    let body = json!({ "level": level, "message": message });
    archive.put(Kind::Event, event_now(&format!("log.{level}"), &body));
}

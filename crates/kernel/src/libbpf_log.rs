// SPDX-License-Identifier: MIT OR Apache-2.0
//! What libbpf has to say, kept for the error that it explains.

use libbpf_rs::PrintLevel;
use std::sync::Mutex;

/// The log of a program that the verifier refuses, at the level asked for, is some KiB.
const MOST_SAID_BYTES: usize = 1 << 20;

static LIBBPF_SAID: Mutex<String> = Mutex::new(String::new());

/// libbpf prints to stderr by itself; kept instead, and shown with the error that it explains.
pub(crate) fn quieten_libbpf() {
    libbpf_rs::set_print(Some((PrintLevel::Warn, |_, line| {
        if let Ok(mut said) = LIBBPF_SAID.lock() {
            // A daemon runs for months; the end is what is shown.
            if said.len() > MOST_SAID_BYTES {
                said.clear();
            }
            said.push_str(&line);
        }
    })));
}

/// What it said of an earlier object explains no error of the next.
pub(crate) fn forget_what_was_said() {
    LIBBPF_SAID.lock().map(|mut said| said.clear()).ok();
}

/// The end of what libbpf said; the verifier's verdict is in its last lines.
pub(crate) fn last_said() -> Option<String> {
    let said = LIBBPF_SAID.lock().ok()?;
    let lines: Vec<_> = said.lines().collect();
    let from = lines.len().saturating_sub(25);
    (!lines.is_empty()).then(|| lines[from..].join("\n"))
}

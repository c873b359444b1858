// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a capture file says beside its packets.

use serde::Serialize;

/// What a file says beside its packets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct About {
    /// Program, system and hardware that captured.
    pub captured_by: Vec<String>,
    /// Names of interfaces.
    pub interfaces: Vec<String>,
    /// Comments: of sections, interfaces and packets. Texts are somebody else's: escape them.
    pub comments: Vec<String>,
    /// Packets that the capturing program or kernel dropped, where the file says so.
    pub dropped_packets: Option<u64>,
}

/// How many texts of a kind are kept.
const MAX_TEXTS: usize = 100;

/// How much of each.
const MAX_CHARS: usize = 1000;

impl About {
    pub(crate) fn keep(texts: &mut Vec<String>, text: &str) {
        let text: String = text.chars().take(MAX_CHARS).collect();
        if texts.len() < MAX_TEXTS && !texts.contains(&text) {
            texts.push(text);
        }
    }
}

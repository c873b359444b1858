// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a host that sends late is told to pace at.

use crate::raw;

/// How much more than the law's rate a host is told, so that it sends at that rate (bpf/cc/pace.h).
#[derive(Clone, Debug, Default)]
pub struct Pace(raw::cc_pace);

// SAFETY of the calls below: the pointer lives for the call, and the C touches what it points to only.
impl Pace {
    /// The rate to tell the host, bytes/s, where the law wants this one.
    pub fn rate(&self, bytes_per_s: u64) -> u64 {
        unsafe { raw::fatpath_pace_rate(&self.0, bytes_per_s) }
    }

    /// At an acknowledgement: the rate that the law wanted until now, all bytes that the flow sent, and whether the
    /// window, the peer or the program held it back. `now_us` never goes back.
    pub fn note(&mut self, now_us: u64, bytes_per_s: u64, sent_bytes: u64, is_held: bool) {
        let is_held = is_held.into();
        unsafe { raw::fatpath_pace_note(&mut self.0, now_us, bytes_per_s, sent_bytes, is_held) }
    }
}

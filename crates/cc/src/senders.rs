// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many flows of a group send.

use crate::raw;

/// The flows of a group that send (bpf/cc/senders.h).
#[derive(Clone, Debug, Default)]
pub struct Senders(raw::cc_senders);

// SAFETY of the calls below: the pointers live for the call, and the C touches what they point to only.
impl Senders {
    /// A flow sends, or what it sent is acknowledged. `counted_in` is the flow's own, 0 at first. Answers how many send,
    /// this one too.
    pub fn note(&mut self, counted_in: &mut u32, now_ns: u64, rtt_us: u32) -> u32 {
        unsafe { raw::fatpath_senders_note(&mut self.0, counted_in, now_ns, rtt_us) }
    }

    /// What each of so many flows has of a rate that they share, bytes a second.
    pub fn share_of_rate(bytes_per_s: u64, flows: u32) -> u64 {
        unsafe { raw::fatpath_share_of_rate(bytes_per_s, flows) }
    }
}

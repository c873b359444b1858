// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel counts how long BPF programs run (kernel.bpf_stats_enabled), at a cost of its own.

use anyhow::Result;

const STATS: &str = "/proc/sys/kernel/bpf_stats_enabled";

/// It counts while this lives.
pub struct Counting(String);

impl Counting {
    /// Begins.
    pub fn start() -> Result<Counting> {
        let before = std::fs::read_to_string(STATS)?;
        std::fs::write(STATS, "1")?;
        Ok(Counting(before))
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        let _ = std::fs::write(STATS, self.0.trim());
    }
}

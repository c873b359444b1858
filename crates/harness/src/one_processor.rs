// SPDX-License-Identifier: MIT OR Apache-2.0
//! Staying on one processor, so that its time is what the work costs.

use anyhow::Result;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// This thread stays on one processor while it lives.
pub struct OneProcessor {
    before: CpuSet,
}

impl OneProcessor {
    /// The last one: the first serves most interrupts.
    pub fn keep() -> Result<OneProcessor> {
        let before = sched_getaffinity(None)?;
        let last = (0..CpuSet::MAX_CPU).rev().find(|cpu| before.is_set(*cpu));
        let mut one = CpuSet::new();
        one.set(last.unwrap_or(0));
        sched_setaffinity(None, &one)?;
        Ok(OneProcessor { before })
    }
}

impl Drop for OneProcessor {
    fn drop(&mut self) {
        // It was taken a moment ago, so it is given back.
        let _ = sched_setaffinity(None, &self.before);
    }
}

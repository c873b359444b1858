// SPDX-License-Identifier: MIT OR Apache-2.0
//! Penalties of a policer: flows of which everything is dropped for a time.
//!
//! The kernel half compares the clock itself, so that a penalty ends also when nobody watches any more. Their number
//! is bounded by the map.

use crate::abi;
use crate::error::KernelError;
use crate::pod::value_of;
use crate::police::Police;
use fatpath_clock::monotonic_ns;
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use std::time::Duration;
use zerocopy::IntoBytes;

/// The penalties of one policer.
pub(crate) struct Penalties {
    until_ns: MapHandle,
    lasts: Duration,
}

impl Penalties {
    /// Each lasts so long.
    pub(crate) fn of(police: &Police, lasts: Duration) -> Result<Penalties, KernelError> {
        Ok(Penalties {
            until_ns: police.map("fp_penalties")?,
            lasts,
        })
    }

    /// From now on; false when there are as many as the map holds.
    pub(crate) fn impose(&self, flow: &abi::fp_watched_flow) -> Result<bool, KernelError> {
        if self.remove_expired()? >= self.until_ns.max_entries() as usize {
            return Ok(false);
        }
        let until_ns = monotonic_ns() + self.lasts.as_nanos() as u64;
        self.until_ns
            .update(flow.as_bytes(), until_ns.as_bytes(), MapFlags::ANY)
            .map_err(KernelError::bpf("write a penalty of the policer"))?;
        Ok(true)
    }

    /// Answers how many are left.
    fn remove_expired(&self) -> Result<usize, KernelError> {
        let now_ns = monotonic_ns();
        let mut left = 0;
        for flow in self.until_ns.keys().collect::<Vec<_>>() {
            let until_ns = self.until_ns.lookup(&flow, MapFlags::ANY);
            let until_ns = until_ns.map_err(KernelError::bpf("read the penalties"))?;
            let until_ns: Option<u64> = until_ns.and_then(|value| value_of(&value));
            match until_ns.is_some_and(|until_ns| until_ns > now_ns) {
                true => left += 1,
                // Another watcher may have removed it meanwhile.
                false => drop(self.until_ns.delete(&flow)),
            }
        }
        Ok(left)
    }
}

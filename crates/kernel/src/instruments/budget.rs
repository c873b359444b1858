// SPDX-License-Identifier: MIT OR Apache-2.0
//! The budget of samples of the host: how many a second it may make, and what they cost.
//!
//! The kernel half keeps to it (bpf/include/budget.h); how many samples a share of a processor pays for is decided by
//! whoever calls [`Kernel::set_sample_budget`].

use crate::KernelError;
use crate::abi::{fp_instruments, fp_sampling};
use crate::handle::Kernel;
use fatpath_clock::monotonic_ns;

/// After so long without a sample nothing holds flows back.
const QUIET_NS: u64 = 2_000_000_000;

/// What the programs took for some of the samples, since the load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimedSamples {
    /// How many were timed.
    pub samples: u64,
    /// What they took together, ns.
    pub ns: u64,
}

impl Kernel {
    /// At most so many samples a second from the next second on; 0 = no budget.
    ///
    /// # Errors
    /// When the instruments are not loaded.
    pub fn set_sample_budget(&self, samples_per_s: u32) -> Result<(), KernelError> {
        self.table("fp_sample_budget")?.set(0, &samples_per_s)
    }

    pub(crate) fn sample_budget(&self) -> Result<u32, KernelError> {
        self.table("fp_sample_budget")?.get(0)
    }

    /// What samples cost.
    ///
    /// # Errors
    /// When the instruments are not loaded.
    pub fn timed_samples(&self) -> Result<TimedSamples, KernelError> {
        let sampling: fp_sampling = self.table("fp_sampling")?.get(0)?;
        Ok(TimedSamples {
            samples: sampling.timed_samples,
            ns: sampling.timed_ns,
        })
    }

    /// The least time between two samples of a flow: in force, and as configured.
    pub(crate) fn sample_intervals_us(&self) -> Result<(u64, u64), KernelError> {
        let sampling: fp_sampling = self.table("fp_sampling")?.get(0)?;
        let config: fp_instruments = self.table("fp_instruments")?.get(0)?;
        let is_quiet = monotonic_ns().saturating_sub(sampling.began_ns) > QUIET_NS;
        let in_force_ns = match is_quiet {
            true => config.interval_ns,
            false => config.interval_ns.max(sampling.interval_ns),
        };
        Ok((in_force_ns / 1000, config.interval_ns / 1000))
    }
}

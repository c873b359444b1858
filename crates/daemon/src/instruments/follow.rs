// SPDX-License-Identifier: MIT OR Apache-2.0
//! The two workers that fill the table: one reads samples as they come, one walks over all sockets now and
//! then, for flows that are idle, only receive, or are not sampled.

use super::Instruments;
use anyhow::Result;
use fatpath_api::Sample;
use fatpath_kernel::{Kernel, monotonic_ns};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// They ask at least this often whether they are to end.
const TICK: Duration = Duration::from_millis(100);

/// From one walk to the next, at least.
const WALK_INTERVAL: Duration = Duration::from_secs(5);

/// And so many times as long as a walk takes: at most 1/150 is what walks use of a processor, however many sockets
/// there are. The time that passes, not a thread's: each network namespace is walked by a thread of its own.
const WALK_REST: u32 = 150;

/// Samples of a walk that the table takes together: it is locked for a few milliseconds at most.
const TAKEN_AT_ONCE: usize = 512;

/// Takes samples as they come.
///
/// # Errors
/// When their ring buffer cannot be read.
pub(crate) fn read(
    kernel: &Kernel,
    instruments: &Instruments,
    shutdown: &CancellationToken,
) -> Result<()> {
    let stop = || shutdown.is_cancelled();
    let mut samples = kernel.samples()?;
    samples.follow(TICK, stop, |sample| instruments.take([sample]))?;
    Ok(())
}

/// Walks over all sockets now and then. A walk that fails is logged when failing begins; the next may succeed.
pub(crate) fn walk(
    kernel: &Kernel,
    instruments: &Instruments,
    shutdown: &CancellationToken,
) -> Result<()> {
    let mut has_failed = false;
    while !shutdown.is_cancelled() {
        let begun = Instant::now();
        let walked = walk_once(kernel, instruments);
        let interval = WALK_INTERVAL.max(begun.elapsed() * WALK_REST);
        match walked {
            // After an unload there is nothing to walk with, and nothing to say.
            Err(error) if !has_failed && kernel.has_instruments() => {
                tracing::error!("cannot walk over the sockets: {error}");
                has_failed = true;
            }
            Err(_) => {}
            Ok(()) => has_failed = false,
        }
        while begun.elapsed() < interval && !shutdown.is_cancelled() {
            std::thread::sleep(TICK);
        }
    }
    Ok(())
}

fn walk_once(
    kernel: &Kernel,
    instruments: &Instruments,
) -> Result<(), fatpath_kernel::KernelError> {
    let since_ns = monotonic_ns();
    let is_wanted = instruments.wants_untracked();
    let mut some: Vec<Sample> = Vec::with_capacity(TAKEN_AT_ONCE);
    kernel.walk_samples(|sample| {
        if is_wanted || sample.is_tracked {
            some.push(sample);
        }
        if some.len() == TAKEN_AT_ONCE {
            instruments.take(some.drain(..));
        }
    })?;
    instruments.take(some);
    instruments.end_unheard(since_ns);
    Ok(())
}

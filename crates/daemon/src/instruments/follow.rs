// SPDX-License-Identifier: MIT OR Apache-2.0
//! The two workers that fill the table: one reads samples as they come, one walks over all sockets now and
//! then, for flows that are idle, not read by their programs, or not sampled.

use super::Instruments;
use anyhow::Result;
use fatpath_api::Sample;
use fatpath_clock::monotonic_ns;
use fatpath_kernel::{Kernel, KernelError};
use fatpath_supervisor::Heartbeat;
use rustix::time::{ClockId, clock_gettime};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// What samples cost is looked at so often.
const COST_INTERVAL: Duration = Duration::from_secs(1);

/// From one walk to the next, at least.
const WALK_INTERVAL: Duration = Duration::from_secs(5);

/// And so many times as long as the walk before took, when it left idle flows out: at most 1/750 is what such walks use
/// of a processor, however many sockets there are. The time that passes, not a thread's: each network namespace is
/// walked by a thread of its own.
const MOVED_REST: u32 = 750;

/// The same after a walk over all.
const ALL_REST: u32 = 150;

/// A flow that did nothing for so long is left out of a walk: what was told of it is as it was. Its rates are over 2 s at
/// most, and its findings judge 30 s at most (`record.rs` of fatpath-estats).
const QUIET_NS: u64 = 40_000_000_000;

/// From one walk that leaves no socket out to the next, at least: some things change while a flow does nothing, such as
/// options that its program sets.
const FULL_INTERVAL: Duration = Duration::from_secs(60);

/// And so many times as long as the last one took: at most 1/2000 of a processor.
const FULL_REST: u32 = 2000;

/// Samples of a walk that the table takes together: it is locked for a few milliseconds at most.
const TAKEN_AT_ONCE: usize = 512;

/// Takes samples as they come.
///
/// # Errors
/// When their ring buffer cannot be read.
pub(crate) fn read(
    kernel: &Kernel,
    instruments: &Instruments,
    heartbeat: &Heartbeat,
) -> Result<()> {
    let mut looked = Instant::now();
    let wait = |samples: BorrowedFd, at_most| {
        if looked.elapsed() >= COST_INTERVAL {
            looked = Instant::now();
            instruments.follow_cost(thread_ns());
        }
        heartbeat.wait_for(samples, at_most)
    };
    let mut samples = kernel.samples()?;
    samples.follow(wait, |sample| instruments.take([sample]))?;
    Ok(())
}

/// Processor time of this thread.
fn thread_ns() -> u64 {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    used.tv_sec as u64 * 1_000_000_000 + used.tv_nsec as u64
}

/// Walks over all sockets now and then. A walk that fails is logged when failing begins; the next may succeed.
pub(crate) fn walk(
    kernel: &Kernel,
    instruments: &Instruments,
    heartbeat: &Heartbeat,
) -> Result<()> {
    let mut has_failed = false;
    let mut full = FullWalks::default();
    while heartbeat.goes_on() {
        let begun = Instant::now();
        let state = State::of(instruments);
        let is_full = full.is_due(state, begun);
        let walked = match is_full {
            true => walk_all(kernel, instruments),
            false => walk_moved(kernel, instruments),
        };
        if is_full && walked.is_ok() {
            full.note(state, begun);
        }
        let rest = if is_full { ALL_REST } else { MOVED_REST };
        let interval = WALK_INTERVAL.max(begun.elapsed() * rest);
        match walked.and_then(|()| kernel.rest_instruments()) {
            // After an unload there is nothing to walk with, and nothing to say.
            Err(error) if !has_failed && kernel.has_instruments() => {
                tracing::error!("cannot walk over the sockets: {error}");
                has_failed = true;
            }
            Err(_) => {}
            Ok(()) => has_failed = false,
        }
        heartbeat.rest(interval.saturating_sub(begun.elapsed()))?;
    }
    Ok(())
}

/// When no socket may be left out: at first, under a new policy, when ends of flows may have been lost, and now and
/// then.
#[derive(Debug, Default)]
struct FullWalks {
    last: Option<FullWalk>,
}

#[derive(Debug)]
struct FullWalk {
    begun: Instant,
    took: Duration,
    state: State,
}

/// A change of it asks for a full walk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct State {
    policies: u64,
    samples_lost: u64,
}

impl State {
    fn of(instruments: &Instruments) -> State {
        let counts = instruments.counts();
        State {
            policies: instruments.policies(),
            samples_lost: counts.map_or(0, |counts| counts.samples_lost),
        }
    }
}

impl FullWalks {
    fn is_due(&self, state: State, now: Instant) -> bool {
        self.last.as_ref().is_none_or(|last| {
            let interval = FULL_INTERVAL.max(last.took * FULL_REST);
            last.state != state || now.saturating_duration_since(last.begun) >= interval
        })
    }

    fn note(&mut self, state: State, begun: Instant) {
        let took = begun.elapsed();
        self.last = Some(FullWalk { begun, took, state });
    }
}

fn walk_all(kernel: &Kernel, instruments: &Instruments) -> Result<(), KernelError> {
    let since_ns = monotonic_ns();
    taking(instruments, |take| kernel.walk_samples(take))?;
    instruments.end_unheard(since_ns);
    Ok(())
}

fn walk_moved(kernel: &Kernel, instruments: &Instruments) -> Result<(), KernelError> {
    let since_ns = monotonic_ns().saturating_sub(QUIET_NS);
    taking(instruments, |take| kernel.walk_moved(since_ns, take))
}

/// The table takes what the walk gives.
fn taking(
    instruments: &Instruments,
    walk: impl FnOnce(&mut (dyn FnMut(Sample) + Send)) -> Result<(), KernelError>,
) -> Result<(), KernelError> {
    let is_wanted = instruments.wants_untracked();
    let mut some: Vec<Sample> = Vec::with_capacity(TAKEN_AT_ONCE);
    walk(&mut |sample| {
        if is_wanted || sample.is_tracked {
            some.push(sample);
        }
        if some.len() == TAKEN_AT_ONCE {
            instruments.take(some.drain(..));
        }
    })?;
    instruments.take(some);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(took: Duration, state: State) -> (FullWalks, Instant) {
        let begun = Instant::now();
        let last = Some(FullWalk { begun, took, state });
        (FullWalks { last }, begun)
    }

    #[test]
    fn the_first_walk_is_full_and_then_one_a_minute() {
        let state = State::default();
        assert!(FullWalks::default().is_due(state, Instant::now()));
        let (walks, begun) = after(Duration::from_millis(1), state);
        assert!(!walks.is_due(state, begun + Duration::from_secs(59)));
        assert!(walks.is_due(state, begun + Duration::from_secs(60)));
    }

    #[test]
    fn full_walks_take_no_more_than_1_2000_of_a_processor() {
        let state = State::default();
        let (walks, begun) = after(Duration::from_millis(500), state);
        assert!(!walks.is_due(state, begun + Duration::from_secs(999)));
        assert!(walks.is_due(state, begun + Duration::from_secs(1000)));
    }

    #[test]
    fn a_new_policy_and_lost_samples_ask_for_one() {
        let (walks, begun) = after(Duration::from_millis(1), State::default());
        let (policies, samples_lost) = (1, 1);
        for state in [
            State {
                policies,
                ..State::default()
            },
            State {
                samples_lost,
                ..State::default()
            },
        ] {
            assert!(walks.is_due(state, begun));
        }
    }
}

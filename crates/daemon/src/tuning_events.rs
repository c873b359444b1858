// SPDX-License-Identifier: MIT OR Apache-2.0
//! Follows the events of the kernel half: flows that end are logged, divided buffers are divided again.

use crate::flow_log::end_of;
use crate::state::DaemonState;
use anyhow::Result;
use fatpath_api::TunedFlow;
use fatpath_kernel::{Event, Kernel};
use std::time::{Duration, Instant};

/// The wait for events ends at least this often, to see whether the daemon is to end.
const TICK: Duration = Duration::from_millis(100);

/// Buffers are divided again between their flows at most this often: each time walks all sockets.
const SHARE_INTERVAL: Duration = Duration::from_millis(100);

/// # Errors
/// When their ring buffer cannot be read.
pub(crate) fn follow_tuning_events(kernel: &Kernel, state: &DaemonState) -> Result<()> {
    let is_stale = std::cell::Cell::new(false);
    let mut last = Instant::now();
    let mut share_or_stop = || {
        if is_stale.get() && last.elapsed() >= SHARE_INTERVAL {
            is_stale.set(false);
            last = Instant::now();
            if let Err(error) = kernel.share_again() {
                tracing::error!("cannot divide the buffers again between the flows: {error}");
            }
        }
        state.shutdown.is_cancelled()
    };
    let on_event = |event| match event {
        Event::FlowEnd(flow) => log_end(state, *flow),
        Event::ShareChanged => is_stale.set(true),
        _ => {}
    };
    kernel
        .events()?
        .follow(TICK, &mut share_or_stop, on_event)?;
    Ok(())
}

fn log_end(state: &DaemonState, flow: TunedFlow) {
    let line = end_of(flow, &state.cgroups);
    if let Some(said) = state.logs.flows.lock().write(&line) {
        tracing::error!("{said}");
    }
}

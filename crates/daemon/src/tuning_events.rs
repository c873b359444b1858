// SPDX-License-Identifier: MIT OR Apache-2.0
//! Follows the events of the kernel half: flows that end are logged, and that flows of a divided rule came or went is
//! passed on.

use crate::flow_log::end_of;
use crate::state::DaemonState;
use anyhow::Result;
use fatpath_api::TunedFlow;
use fatpath_kernel::{Event, Kernel};
use fatpath_supervisor::Heartbeat;
use std::os::fd::BorrowedFd;
use tokio::sync::Notify;

/// # Errors
/// When their ring buffer cannot be read.
pub(crate) fn follow_tuning_events(
    kernel: &Kernel,
    state: &DaemonState,
    share_changed: &Notify,
    heartbeat: &Heartbeat,
) -> Result<()> {
    // After each batch of events.
    let wait = |events: BorrowedFd, at_most| {
        state.logs.flows.flush();
        heartbeat.wait_for(events, at_most)
    };
    let on_event = |event| match event {
        Event::FlowEnd(flow) => log_end(state, *flow),
        Event::ShareChanged => share_changed.notify_one(),
        _ => {}
    };
    kernel.events()?.follow(wait, on_event)?;
    Ok(())
}

fn log_end(state: &DaemonState, flow: TunedFlow) {
    let line = end_of(flow, &state.cgroups);
    state.archive.put_flow(&line);
    state.logs.flows.write(&line);
}

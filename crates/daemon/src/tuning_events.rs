// SPDX-License-Identifier: MIT OR Apache-2.0
//! Follows the events of the kernel half: flows that end are logged, and that flows of a divided rule came or went is
//! passed on.

use crate::flow_log::end_of;
use crate::state::DaemonState;
use anyhow::Result;
use fatpath_api::TunedFlow;
use fatpath_kernel::{Event, Kernel};
use fatpath_supervisor::Heartbeat;
use std::time::Duration;
use tokio::sync::Notify;

/// The wait for events ends at least this often, to see whether the daemon is to end.
const TICK: Duration = Duration::from_millis(100);

/// # Errors
/// When their ring buffer cannot be read.
pub(crate) fn follow_tuning_events(
    kernel: &Kernel,
    state: &DaemonState,
    share_changed: &Notify,
    heartbeat: &Heartbeat,
) -> Result<()> {
    // It is asked after each batch of events.
    let stop = || {
        state.logs.flows.flush();
        !heartbeat.goes_on()
    };
    let on_event = |event| match event {
        Event::FlowEnd(flow) => log_end(state, *flow),
        Event::ShareChanged => share_changed.notify_one(),
        _ => {}
    };
    kernel.events()?.follow(TICK, stop, on_event)?;
    Ok(())
}

fn log_end(state: &DaemonState, flow: TunedFlow) {
    let line = end_of(flow, &state.cgroups);
    state.archive.put_flow(&line);
    state.logs.flows.write(&line);
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Follows what changes on the host: interfaces, cgroups that rules name, routes.

use crate::engine::Engine;
use crate::state::SharedEngine;
use anyhow::{Context, Result};
use fatpath_netlink::InterfaceEvents;
use std::time::Duration;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// How often the daemon looks whether cgroups that rules name came or went, and routes changed.
const HOST_INTERVAL: Duration = Duration::from_secs(2);

/// The wait for interfaces ends at least this often, to see whether the daemon is to end.
const TICK: Duration = Duration::from_millis(100);

/// A new interface marks segments at once, because a flow may be rude over it.
///
/// # Errors
/// When the kernel tells of no more interfaces.
pub(crate) fn follow_interfaces(engine: &SharedEngine, shutdown: &CancellationToken) -> Result<()> {
    let events = InterfaceEvents::open().context("cannot listen for interfaces")?;
    while !shutdown.is_cancelled() {
        let has_changed = events.wait(TICK).context("cannot wait for interfaces")?;
        if has_changed
            && let Some(engine) = engine.lock().as_mut()
            && let Err(error) = engine.kernel.follow_marks()
        {
            tracing::error!("cannot mark a new interface: {error}");
        }
    }
    Ok(())
}

/// Has the engine follow the host. What it cannot do now it tries again the next time.
///
/// # Errors
/// When that panics.
pub(crate) async fn follow_host(engine: SharedEngine, shutdown: CancellationToken) -> Result<()> {
    while let Some(()) = shutdown.run_until_cancelled(sleep(HOST_INTERVAL)).await {
        let engine = engine.clone();
        let look = move || engine.lock().as_mut().map(Engine::follow_host);
        match tokio::task::spawn_blocking(look).await? {
            Some(Ok(said)) => said.iter().for_each(|what| tracing::info!("{what}")),
            Some(Err(error)) => tracing::error!("{error:#}"),
            None => {}
        }
    }
    Ok(())
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Follows what changes on the host: interfaces, cgroups that rules name, routes.

use crate::engine::Engine;
use crate::state::SharedEngine;
use anyhow::{Context, Result};
use fatpath_host::may_concern_routes;
use fatpath_netlink::{Notification, Notifications};
use fatpath_supervisor::Heartbeat;
use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// How often the daemon looks whether cgroups that rules name came or went.
const HOST_INTERVAL: Duration = Duration::from_secs(2);

/// A routing daemon changes many routes at once: their metrics follow when it is quiet for so long.
const QUIET: Duration = Duration::from_millis(100);

/// And after this long even so.
const MOST_PATIENCE: Duration = Duration::from_secs(1);

/// Of a wait that only a notification ends.
const LONG: Duration = Duration::from_secs(3600);

/// A new interface marks segments at once, because a flow may be rude over it.
///
/// # Errors
/// When the kernel tells of no more interfaces.
pub(crate) fn follow_interfaces(engine: &SharedEngine, heartbeat: &Heartbeat) -> Result<()> {
    let changes = Notifications::of_interfaces().context("cannot listen for interfaces")?;
    while heartbeat.goes_on() {
        let changed = next(&changes, heartbeat, LONG).context("cannot wait for interfaces")?;
        if !changed.is_empty()
            && let Some(engine) = engine.lock().as_mut()
            && let Err(error) = engine.kernel.follow_marks()
        {
            tracing::error!("cannot mark a new interface: {error}");
        }
    }
    Ok(())
}

/// Routes that changed get their metrics again.
///
/// # Errors
/// When the kernel notifies of no more routes.
pub(crate) fn follow_routes(engine: &SharedEngine, heartbeat: &Heartbeat) -> Result<()> {
    let changes = Notifications::of_routes().context("cannot listen for routes")?;
    let wait = |at_most| next(&changes, heartbeat, at_most).context("cannot wait for routes");
    let concerns = |changed: &[_]| {
        let engine = engine.lock();
        engine
            .as_ref()
            .is_some_and(|engine| may_concern_routes(changed, engine.metrics()))
    };
    // What changed before the first notification is not known.
    let mut changed = vec![Notification::Lost];
    while heartbeat.goes_on() {
        if !concerns(&changed) {
            changed = wait(LONG)?;
            continue;
        }
        changed.clear();
        let begun = Instant::now();
        while begun.elapsed() < MOST_PATIENCE && concerns(&wait(QUIET)?) {}
        match engine.lock().as_mut().map(Engine::follow_routes) {
            Some(Ok(said)) => said.iter().for_each(|what| tracing::info!("{what}")),
            Some(Err(error)) => tracing::error!("{error:#}"),
            None => {}
        }
    }
    Ok(())
}

/// What the kernel notifies of; nothing at the end of the time, or of the daemon.
fn next(
    changes: &Notifications,
    heartbeat: &Heartbeat,
    at_most: Duration,
) -> io::Result<Vec<Notification>> {
    heartbeat.wait_for(changes.as_fd(), at_most)?;
    changes.received()
}

/// Has the engine follow the host. What it cannot do now it tries again the next time.
///
/// # Errors
/// When that panics.
pub(crate) async fn follow_host(engine: SharedEngine, heartbeat: Heartbeat) -> Result<()> {
    while let Some(()) = heartbeat.wait(sleep(HOST_INTERVAL)).await {
        let engine = engine.clone();
        let look = move || engine.lock().as_mut().map(Engine::follow_host);
        if let Some(Err(error)) = tokio::task::spawn_blocking(look).await? {
            tracing::error!("{error:#}");
        }
    }
    Ok(())
}

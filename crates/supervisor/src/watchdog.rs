// SPDX-License-Identifier: MIT OR Apache-2.0
//! Feeds systemd's watchdog while every worker makes progress. It runs beside the API's requests, so it does
//! not feed while these stand still.

use crate::heartbeat::Heartbeats;
use crate::notify::{Notice, watchdog_limit};
use anyhow::Result;
use std::time::Duration;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// A worker's sign of life comes so often: several times in what it may stand still for; seldom where nobody watches.
pub fn tick() -> Duration {
    const UNWATCHED: Duration = Duration::from_secs(60);
    watchdog_limit().map_or(UNWATCHED, |limit| limit / 8)
}

/// Feeds until the daemon ends. A worker may stand still for half of `limit`; after that systemd waits `limit`
/// from the last feeding, and starts the daemon again.
///
/// # Errors
/// None.
pub async fn feed(limit: Duration, workers: Heartbeats, shutdown: CancellationToken) -> Result<()> {
    let mut known = Vec::new();
    while let Some(()) = shutdown.run_until_cancelled(sleep(limit / 8)).await {
        let still = workers.standing_still(limit / 2);
        if still.is_empty() {
            Notice::Lives.send();
        } else if still != known {
            let names = still.join(", ");
            let half = limit / 2;
            tracing::error!(
                "no progress for {half:?}: {names}; systemd is to start the daemon again"
            );
        }
        known = still;
    }
    Ok(())
}

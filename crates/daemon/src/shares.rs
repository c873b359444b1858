// SPDX-License-Identifier: MIT OR Apache-2.0
//! Divides the buffers of rules that `divide` again: soon after a flow came or went, and now and then for flows that
//! fell idle. Each time counts and walks over sockets, so the pauses grow while flows come and go all the time.

use anyhow::Result;
use fatpath_kernel::Kernel;
use fatpath_supervisor::Heartbeat;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

const LEAST: Duration = Duration::from_millis(100);
const MOST: Duration = Duration::from_secs(10);

/// A pause is so many times as long as what came before it: at most 1/50 of a processor is used.
const REST: u32 = 50;

/// # Errors
/// When the division panics. What it cannot do now it tries again the next time.
pub(crate) async fn follow_shares(
    kernel: Arc<Kernel>,
    changed: Arc<Notify>,
    heartbeat: Heartbeat,
) -> Result<()> {
    let mut pause = LEAST;
    let wait = async |pause| {
        let has_changed = timeout(MOST, changed.notified()).await.is_ok();
        sleep(pause).await;
        has_changed
    };
    while let Some(has_changed) = heartbeat.wait(wait(pause)).await {
        let begun = Instant::now();
        let kernel = Arc::clone(&kernel);
        let divided = tokio::task::spawn_blocking(move || kernel.share_again()).await?;
        if let Err(error) = divided {
            tracing::error!("cannot divide the buffers again between the flows: {error}");
        }
        pause = next_pause(pause, begun.elapsed(), has_changed);
    }
    Ok(())
}

/// Longer after each change, short again after a time without any.
fn next_pause(last: Duration, took: Duration, has_changed: bool) -> Duration {
    let grown = if has_changed { last * 2 } else { LEAST };
    grown.min(MOST).max(took * REST)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Flows that come and go all the time, for a minute, with 20 ms for each division.
    #[test]
    fn churn_does_not_divide_all_the_time() {
        let took = Duration::from_millis(20);
        let (mut time, mut pause, mut times) = (Duration::ZERO, LEAST, 0);
        while time < Duration::from_secs(60) {
            time += pause + took;
            pause = next_pause(pause, took, true);
            times += 1;
        }
        assert!(times < 15, "{times} times");
        assert!(next_pause(pause, took, false) <= took * REST, "at rest");
    }

    #[test]
    fn a_long_division_is_followed_by_a_long_pause() {
        let took = Duration::from_secs(1);
        for has_changed in [false, true] {
            assert_eq!(next_pause(LEAST, took, has_changed), took * REST);
        }
    }
}

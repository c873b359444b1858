// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether the daemon's workers make progress: each says so in every turn of its loop, and systemd's watchdog
//! is fed only while all of them do.

use parking_lot::Mutex;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// A worker that waits makes progress this often.
const TICK: Duration = Duration::from_millis(500);

/// One worker's sign of life, and what tells it to end.
#[derive(Clone, Debug)]
pub struct Heartbeat {
    last: Arc<Mutex<Instant>>,
    shutdown: CancellationToken,
}

impl Heartbeat {
    /// A worker asks this in every turn of its loop; false: it is to end.
    pub fn goes_on(&self) -> bool {
        *self.last.lock() = Instant::now();
        !self.shutdown.is_cancelled()
    }

    /// What `awaited` gives, however late: to wait is no standstill. `None` when the daemon is to end.
    pub async fn wait<T>(&self, awaited: impl Future<Output = T>) -> Option<T> {
        let waited = async {
            tokio::pin!(awaited);
            loop {
                self.goes_on();
                if let Ok(given) = timeout(TICK, &mut awaited).await {
                    return given;
                }
            }
        };
        self.shutdown.run_until_cancelled(waited).await
    }

    /// Since when there was no sign.
    fn silence(&self) -> Duration {
        self.last.lock().elapsed()
    }
}

/// The heartbeats of a daemon's workers.
#[derive(Debug, Default)]
pub struct Heartbeats(Vec<(&'static str, Heartbeat)>);

impl Heartbeats {
    /// One more worker's.
    pub fn add(&mut self, name: &'static str, shutdown: CancellationToken) -> Heartbeat {
        let last = Arc::new(Mutex::new(Instant::now()));
        let heartbeat = Heartbeat { last, shutdown };
        self.0.push((name, heartbeat.clone()));
        heartbeat
    }

    /// The workers without a sign of life for longer than `limit`.
    pub fn standing_still(&self, limit: Duration) -> Vec<&'static str> {
        let silent = self.0.iter().filter(|(_, beat)| beat.silence() > limit);
        silent.map(|(name, _)| *name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_millis(800);

    #[tokio::test]
    async fn who_waits_makes_progress_and_who_blocks_stands_still() {
        let mut all = Heartbeats::default();
        let shutdown = CancellationToken::new();
        let waiting = all.add("waits", shutdown.clone());
        all.add("blocks", shutdown.clone());
        let wait = tokio::spawn(async move { waiting.wait(std::future::pending::<()>()).await });
        let begun = Instant::now();
        while all.standing_still(LIMIT).is_empty() && begun.elapsed() < Duration::from_secs(30) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(all.standing_still(LIMIT), ["blocks"]);
        shutdown.cancel();
        assert_eq!(wait.await.unwrap(), None, "it is to end");
    }

    #[test]
    fn a_turn_is_progress_also_at_the_end() {
        let mut all = Heartbeats::default();
        let shutdown = CancellationToken::new();
        let worker = all.add("worker", shutdown.clone());
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!(all.standing_still(Duration::from_millis(1)), ["worker"]);
        assert!(worker.goes_on());
        assert!(all.standing_still(Duration::from_secs(30)).is_empty());
        shutdown.cancel();
        assert!(!worker.goes_on());
    }
}

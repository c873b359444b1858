// SPDX-License-Identifier: MIT OR Apache-2.0
//! Supervises the daemon's workers: none ends in silence.
//!
//! Every worker runs until the daemon is to end. One that ends before that, by an error, a panic or a return,
//! is logged with its cause and ends the daemon with an error, so that systemd starts it again. Whatever ends
//! the daemon cancels one token; all workers obey it, and are waited for together, until a deadline. One that stands
//! still is logged, and systemd's watchdog is fed no longer. Start at [`Supervisor`].

mod heartbeat;
mod notify;
mod watchdog;

pub use heartbeat::Heartbeat;
use heartbeat::Heartbeats;
pub use notify::Notice;
use notify::watchdog_limit;

use anyhow::{Context, Error, Result, anyhow};
use std::ffi::CString;
use std::time::Duration;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;
use tokio_util::task::JoinMap;

type Name = &'static str;

/// The workers of one daemon.
pub struct Supervisor {
    workers: JoinMap<Name, Result<()>>,
    heartbeats: Heartbeats,
    shutdown: CancellationToken,
}

impl Supervisor {
    /// `shutdown` is what the workers obey.
    ///
    /// # Errors
    /// Too many files are open.
    pub fn new(shutdown: CancellationToken) -> Result<Supervisor> {
        Ok(Supervisor {
            workers: JoinMap::new(),
            heartbeats: Heartbeats::new(watchdog::tick())?,
            shutdown,
        })
    }

    /// Starts a worker that only waits for others.
    pub fn spawn(&mut self, name: Name, work: impl Future<Output = Result<()>> + Send + 'static) {
        self.workers.spawn(name, work);
    }

    /// Starts a worker that never blocks, and shows that it makes progress.
    pub fn spawn_beating<F>(&mut self, name: Name, work: impl FnOnce(Heartbeat) -> F)
    where
        F: Future<Output = Result<()>> + Send + 'static,
    {
        let heartbeat = self.heartbeats.add(name, self.shutdown.clone());
        self.spawn(name, work(heartbeat));
    }

    /// Starts a worker on a thread of its own.
    pub fn spawn_thread(
        &mut self,
        name: Name,
        work: impl FnOnce(&Heartbeat) -> Result<()> + Send + 'static,
    ) {
        let heartbeat = self.heartbeats.add(name, self.shutdown.clone());
        self.spawn_named(name, move || work(&heartbeat));
    }

    /// The same for a worker that waits for a disk, however long that takes: the watchdog does not mind.
    pub fn spawn_disk_thread(
        &mut self,
        name: Name,
        work: impl FnOnce(&CancellationToken) -> Result<()> + Send + 'static,
    ) {
        let shutdown = self.shutdown.clone();
        self.spawn_named(name, move || work(&shutdown));
    }

    /// `ps -L` and `top -H` show the worker's name.
    fn spawn_named(&mut self, name: Name, work: impl FnOnce() -> Result<()> + Send + 'static) {
        self.workers.spawn_blocking(name, move || {
            CString::new(name).map(|name| rustix::thread::set_name(&name))??;
            work()
        });
    }

    /// Waits until the daemon is to end, and then at most `deadline` for the workers to do so.
    ///
    /// # Errors
    /// The worker that ended the daemon, with its cause.
    pub async fn run(mut self, deadline: Duration) -> Result<()> {
        if let Some(limit) = watchdog_limit() {
            let feed = watchdog::feed(limit, self.heartbeats.clone(), self.shutdown.clone());
            self.spawn("watchdog", feed);
        }
        let first = tokio::select! {
            biased;
            () = self.shutdown.cancelled() => None,
            ended = self.workers.join_next() => ended,
        };
        // A worker may have obeyed before this was polled.
        let may_end = self.shutdown.is_cancelled();
        let failure = first.and_then(|(name, ended)| Some((name, cause_of(ended, may_end)?)));
        if let Some((name, cause)) = &failure {
            tracing::error!("the worker `{name}` failed: {cause:#}; the daemon ends");
        }
        self.shutdown.cancel();
        self.heartbeats.wake();
        Notice::Ends.send();
        if tokio::time::timeout(deadline, self.join()).await.is_err() {
            let names: Vec<Name> = self.workers.keys().copied().collect();
            let names = names.join(", ");
            tracing::error!(
                "{names}: still running after {deadline:?}; the daemon ends without waiting for them"
            );
        }
        match failure {
            None => Ok(()),
            Some((name, cause)) => Err(cause).with_context(|| {
                format!(
                    "the worker `{name}` failed; the loaded programs go on tuning; start the daemon again"
                )
            }),
        }
    }

    /// A worker that fails on its way out changes nothing about why the daemon ends.
    async fn join(&mut self) {
        while let Some((name, ended)) = self.workers.join_next().await {
            if let Some(cause) = cause_of(ended, true) {
                tracing::error!("the worker `{name}` failed while the daemon ended: {cause:#}");
            }
        }
    }
}

/// Why a worker failed; `None`: it ended because it was to.
fn cause_of(ended: Result<Result<()>, JoinError>, may_end: bool) -> Option<Error> {
    match ended {
        Ok(Ok(())) if may_end => None,
        Ok(Ok(())) => Some(anyhow!("it ended without being asked to")),
        Ok(Err(error)) => Some(error),
        Err(lost) => Some(panic_of(lost)),
    }
}

/// What a panic said: text, unless somebody panicked with another value.
fn panic_of(lost: JoinError) -> Error {
    let payload = match lost.try_into_panic() {
        Ok(payload) => payload,
        Err(lost) => return lost.into(),
    };
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    anyhow!("it panicked: {}", text.unwrap_or("without a message"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    const SOON: Duration = Duration::from_secs(30);

    /// How a daemon ends that has this worker, and two others that obey.
    async fn message_of_end_with(
        work: impl FnOnce(&Heartbeat) -> Result<()> + Send + 'static,
    ) -> String {
        let shutdown = CancellationToken::new();
        let obeyed = Arc::new(AtomicU32::new(0));
        let mut supervisor = Supervisor::new(shutdown.clone()).unwrap();
        let counter = Arc::clone(&obeyed);
        supervisor.spawn_thread("thread", move |heartbeat| {
            while heartbeat.goes_on() {
                std::thread::sleep(Duration::from_millis(1));
            }
            counter.fetch_add(1, Ordering::Relaxed);
            Ok(())
        });
        let counter = Arc::clone(&obeyed);
        supervisor.spawn("task", async move {
            shutdown.cancelled().await;
            counter.fetch_add(1, Ordering::Relaxed);
            Ok(())
        });
        supervisor.spawn_thread("tested", work);
        let ended = supervisor.run(SOON).await;
        assert_eq!(obeyed.load(Ordering::Relaxed), 2, "they were waited for");
        format!("{:#}", ended.unwrap_err())
    }

    #[tokio::test]
    async fn a_worker_that_panics_ends_the_daemon() {
        let message = message_of_end_with(|_| panic!("no {}", "luck")).await;
        assert!(message.contains("the worker `tested` failed"), "{message}");
        assert!(message.ends_with("it panicked: no luck"), "{message}");
    }

    #[tokio::test]
    async fn a_worker_that_fails_ends_the_daemon() {
        let message = message_of_end_with(|_| Err(anyhow!("the ring is gone"))).await;
        assert!(message.contains("the worker `tested` failed"), "{message}");
        assert!(message.ends_with(": the ring is gone"), "{message}");
    }

    #[tokio::test]
    async fn a_worker_that_returns_early_ends_the_daemon() {
        let message = message_of_end_with(|_| Ok(())).await;
        assert!(message.contains("the worker `tested` failed"), "{message}");
        assert!(message.contains("without being asked"), "{message}");
    }

    #[tokio::test]
    async fn a_daemon_that_is_to_end_has_not_failed() {
        let shutdown = CancellationToken::new();
        let mut supervisor = Supervisor::new(shutdown.clone()).unwrap();
        let asks = shutdown.clone();
        supervisor.spawn_thread("asks for the end", move |_| {
            asks.cancel();
            Ok(())
        });
        // What fails after that is not why the daemon ends.
        supervisor.spawn("fails late", async move {
            shutdown.cancelled().await;
            Err(anyhow!("too late"))
        });
        let ended = supervisor.run(SOON).await;
        assert!(ended.is_ok(), "{ended:?}");
    }

    #[tokio::test]
    async fn a_worker_that_does_not_obey_is_not_waited_for() {
        let shutdown = CancellationToken::new();
        let mut supervisor = Supervisor::new(shutdown.clone()).unwrap();
        supervisor.spawn("deaf", std::future::pending());
        shutdown.cancel();
        let ended = supervisor.run(Duration::from_millis(10)).await;
        assert!(ended.is_ok(), "{ended:?}");
    }
}

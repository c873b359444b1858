// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether the daemon's workers make progress: each says so in every turn of its loop, and systemd's watchdog
//! is fed only while all of them do.

use parking_lot::Mutex;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// One worker's sign of life, and what tells it to end.
#[derive(Clone, Debug)]
pub struct Heartbeat {
    last: Arc<Mutex<Instant>>,
    shutdown: CancellationToken,
    /// A worker that waits makes progress this often. Each time costs a wake-up, of which an idle daemon's time consists.
    tick: Duration,
    /// Readable from the moment at which the workers are to end: a thread waits for it beside what it waits for.
    ended: Arc<OwnedFd>,
}

impl Heartbeat {
    /// A worker asks this in every turn of its loop; false: it is to end.
    pub fn goes_on(&self) -> bool {
        *self.last.lock() = Instant::now();
        !self.shutdown.is_cancelled()
    }

    /// On a thread: waits until `fd` can be read, for so long at most. False: the worker is to end.
    ///
    /// # Errors
    /// Those of poll(2).
    pub fn wait_for(&self, fd: BorrowedFd, at_most: Duration) -> io::Result<bool> {
        self.wait_until(&[fd], Instant::now() + at_most)
    }

    /// On a thread: rests for so long. False: the worker is to end.
    ///
    /// # Errors
    /// Those of poll(2).
    pub fn rest(&self, time: Duration) -> io::Result<bool> {
        self.wait_until(&[], Instant::now() + time)
    }

    fn wait_until(&self, fds: &[BorrowedFd], end: Instant) -> io::Result<bool> {
        while self.goes_on() {
            let left = end.saturating_duration_since(Instant::now());
            if poll_once(self.ended.as_fd(), fds, left.min(self.tick))? || left.is_zero() {
                break;
            }
        }
        Ok(self.goes_on())
    }

    /// What `awaited` gives, however late: to wait is no standstill. `None` when the daemon is to end.
    pub async fn wait<T>(&self, awaited: impl Future<Output = T>) -> Option<T> {
        let waited = async {
            tokio::pin!(awaited);
            loop {
                self.goes_on();
                if let Ok(given) = timeout(self.tick, &mut awaited).await {
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

/// Whether one of them can be read. A signal ends the wait, too.
fn poll_once(ended: BorrowedFd, fds: &[BorrowedFd], at_most: Duration) -> io::Result<bool> {
    let all = std::iter::once(&ended).chain(fds);
    let mut polled: Vec<PollFd> = all.map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
    let at_most = Timespec::try_from(at_most).map_err(io::Error::other)?;
    match poll(&mut polled, Some(&at_most)) {
        Err(rustix::io::Errno::INTR) => Ok(false),
        ready => Ok(ready? > 0),
    }
}

/// The heartbeats of a daemon's workers.
#[derive(Clone, Debug)]
pub struct Heartbeats {
    all: Vec<(&'static str, Heartbeat)>,
    tick: Duration,
    ended: Arc<OwnedFd>,
}

impl Heartbeats {
    /// Of no worker yet; one that waits makes progress each `tick`.
    ///
    /// # Errors
    /// Too many files are open.
    pub fn new(tick: Duration) -> io::Result<Heartbeats> {
        let ended = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Heartbeats {
            all: Vec::new(),
            tick,
            ended: Arc::new(ended),
        })
    }

    /// One more worker's.
    pub fn add(&mut self, name: &'static str, shutdown: CancellationToken) -> Heartbeat {
        let heartbeat = Heartbeat {
            last: Arc::new(Mutex::new(Instant::now())),
            shutdown,
            tick: self.tick,
            ended: Arc::clone(&self.ended),
        };
        self.all.push((name, heartbeat.clone()));
        heartbeat
    }

    /// Wakes the threads that wait, for good: `shutdown` is cancelled.
    pub fn wake(&self) {
        // The count of an eventfd is full long after it can be read.
        let _ = rustix::io::write(&self.ended, &1_u64.to_ne_bytes());
    }

    /// The workers without a sign of life for longer than `limit`.
    pub fn standing_still(&self, limit: Duration) -> Vec<&'static str> {
        let silent = self.all.iter().filter(|(_, beat)| beat.silence() > limit);
        silent.map(|(name, _)| *name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_millis(100);
    const LIMIT: Duration = Duration::from_millis(800);

    #[tokio::test]
    async fn who_waits_makes_progress_and_who_blocks_stands_still() {
        let mut all = Heartbeats::new(TICK).unwrap();
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
    fn a_thread_waits_for_a_file_a_time_or_the_end() {
        let mut all = Heartbeats::new(TICK).unwrap();
        let shutdown = CancellationToken::new();
        let worker = all.add("waits", shutdown.clone());
        let (near, far) = std::os::unix::net::UnixStream::pair().unwrap();
        let long = Duration::from_secs(60);
        assert!(worker.wait_for(near.as_fd(), Duration::ZERO).unwrap());
        assert!(worker.rest(Duration::from_millis(1)).unwrap());
        let begun = Instant::now();
        drop(far);
        assert!(worker.wait_for(near.as_fd(), long).unwrap());
        let waits = std::thread::spawn(move || worker.rest(long).unwrap());
        shutdown.cancel();
        all.wake();
        assert!(!waits.join().unwrap(), "it is to end");
        assert!(begun.elapsed() < long);
    }

    #[test]
    fn a_turn_is_progress_also_at_the_end() {
        let mut all = Heartbeats::new(TICK).unwrap();
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

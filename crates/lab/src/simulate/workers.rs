// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs on several threads: each takes the next one; what they made comes back to the one that keeps it.
//!
//! Runs share nothing, so their results are the same on any number of threads, and one that panics spoils no
//! other. Start with [`Work::share`].

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use crate::progress::Together;
use crate::results::{Row, Run};
use crate::run::ScenarioError;

/// How often the display moves while nothing is made.
const TICK: Duration = Duration::from_millis(100);
/// Shares of runs that are being made are counted in these.
const PARTS: f64 = 1e6;

/// A run that was made.
pub(super) struct Made {
    pub(super) run: Run,
    /// Its series as a file; `None` if it failed.
    pub(super) series: Option<Vec<u8>>,
}

impl Made {
    pub(super) fn failed(row: Row, error: String) -> Made {
        let error = Some(error);
        Made {
            run: Run {
                row: Row { error, ..row },
                ..Run::default()
            },
            series: None,
        }
    }
}

/// Runs that are to be made.
pub(super) struct Work<'w> {
    count: usize,
    next: AtomicUsize,
    /// What each thread has done of its run.
    shares: Vec<AtomicU64>,
    /// The user's wish.
    stop: &'w AtomicBool,
    /// What was made cannot be kept.
    failed: AtomicBool,
}

/// Runs by their numbers from 0.
pub(super) trait Runs: Sync {
    /// Makes it, or stops when the watcher says no; `None`: it was stopped.
    fn make(&self, index: usize, watch: &mut dyn FnMut(f64) -> bool) -> Option<Made>;

    /// What it is if that panicked.
    fn panicked(&self, index: usize, said: &str) -> Made;
}

impl<'w> Work<'w> {
    pub(super) fn new(count: usize, jobs: usize, stop: &'w AtomicBool) -> Work<'w> {
        let jobs = jobs.clamp(1, count.max(1));
        Work {
            count,
            next: AtomicUsize::new(0),
            shares: (0..jobs).map(|_| AtomicU64::new(0)).collect(),
            stop,
            failed: AtomicBool::new(false),
        }
    }

    /// Makes all runs and keeps each by `keep`, which tells of it in a line.
    pub(super) fn share(
        &self,
        runs: &impl Runs,
        progress: &mut Together,
        mut keep: impl FnMut(usize, Made) -> Result<String, ScenarioError>,
    ) -> Result<(), ScenarioError> {
        thread::scope(|scope| {
            let (made, all_made) = mpsc::sync_channel(self.shares.len());
            for share in &self.shares {
                let made = made.clone();
                scope.spawn(move || self.make_some(share, runs, &made));
            }
            drop(made);
            loop {
                match all_made.recv_timeout(TICK) {
                    Ok((index, made)) => match keep(index, made) {
                        Ok(told) => progress.end(&told),
                        Err(error) => {
                            self.failed.store(true, Ordering::Relaxed);
                            return Err(error);
                        }
                    },
                    Err(RecvTimeoutError::Timeout) => progress.tick(self.in_work()),
                    Err(RecvTimeoutError::Disconnected) => return Ok(()),
                }
            }
        })
    }

    fn make_some(
        &self,
        share: &AtomicU64,
        runs: &impl Runs,
        made: &mpsc::SyncSender<(usize, Made)>,
    ) {
        loop {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            if index >= self.count || self.is_over() {
                return;
            }
            let mut watch = |done: f64| {
                share.store((done * PARTS) as u64, Ordering::Relaxed);
                !self.is_over()
            };
            // What a run leaves behind when it panics, nobody sees.
            let one = catch_unwind(AssertUnwindSafe(|| runs.make(index, &mut watch)));
            let one = one.unwrap_or_else(|said| Some(runs.panicked(index, said_by(&*said))));
            share.store(0, Ordering::Relaxed);
            let is_kept = one.is_some_and(|one| made.send((index, one)).is_ok());
            if !is_kept {
                return;
            }
        }
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.failed.load(Ordering::Relaxed)
    }

    /// Runs that are being made, in parts of one.
    fn in_work(&self) -> f64 {
        let shares = self.shares.iter();
        shares
            .map(|share| share.load(Ordering::Relaxed) as f64 / PARTS)
            .sum()
    }
}

/// The words of a panic.
fn said_by(panic: &(dyn Any + Send)) -> &str {
    let literal = panic.downcast_ref::<&str>().copied();
    let formatted = || panic.downcast_ref::<String>().map(String::as_str);
    literal.or_else(formatted).unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every third run panics.
    struct Thirds;

    impl Runs for Thirds {
        fn make(&self, index: usize, _: &mut dyn FnMut(f64) -> bool) -> Option<Made> {
            assert!(index % 3 != 0, "run {index}");
            let run = Run::default();
            Some(Made { run, series: None })
        }

        fn panicked(&self, _: usize, said: &str) -> Made {
            Made::failed(Row::default(), said.to_owned())
        }
    }

    #[test]
    fn a_run_that_panics_is_a_failed_one_and_the_others_go_on() {
        let stop = AtomicBool::new(false);
        let work = Work::new(10, 2, &stop);
        let mut errors = vec![None; 10];
        let kept = work.share(&Thirds, &mut Together::new(10, true), |index, made| {
            errors[index] = Some(made.run.row.error);
            Ok(String::new())
        });
        kept.unwrap();
        for (index, error) in errors.into_iter().enumerate() {
            let expected = (index % 3 == 0).then(|| format!("run {index}"));
            assert_eq!(error, Some(expected));
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs on several threads: each takes the next one; what they made comes back to the one that keeps it.
//!
//! Runs share nothing, so their results are the same on any number of threads, and one that panics spoils no
//! other. Start with [`make_all`].

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use super::folder::Folder;
use super::order::Planned;
use super::runner::{Made, Runner, Watch};
use super::{ScenarioError, result_line};
use crate::progress::Together;

/// How often the display moves while nothing is made.
const TICK: Duration = Duration::from_millis(100);
/// Shares of runs that are being made are counted in these.
const PARTS: f64 = 1e6;

/// Makes all runs, so many at a time.
pub(super) fn make_all(
    (runner, jobs): (&dyn Runner, usize),
    folder: &mut Folder,
    sequence: &[Planned],
    quiet: bool,
    stop: &AtomicBool,
) -> Result<(), ScenarioError> {
    let part = folder.part(runner.folder())?;
    let mut progress = Together::new(sequence.len(), quiet);
    let work = Work::new(runner, sequence, &part, jobs, stop);
    let made = work.share(&mut progress, |planned, made| {
        folder.check_space()?;
        let line = result_line(planned, &made.run.row);
        folder.keep(planned, made, &part)?;
        Ok(line)
    });
    progress.finish();
    made
}

/// Runs that are to be made.
struct Work<'w> {
    runner: &'w dyn Runner,
    sequence: &'w [Planned<'w>],
    /// The folder of what runs write.
    part: &'w Path,
    next: AtomicUsize,
    /// What each thread has done of its run.
    shares: Vec<AtomicU64>,
    /// The user has asked for the end.
    stop: &'w AtomicBool,
    /// What was made cannot be kept.
    failed: AtomicBool,
}

/// A run of the sequence by its place, or why no more can be made.
type OneMade = Result<(usize, Made), ScenarioError>;

impl<'w> Work<'w> {
    fn new(
        runner: &'w dyn Runner,
        sequence: &'w [Planned<'w>],
        part: &'w Path,
        jobs: usize,
        stop: &'w AtomicBool,
    ) -> Work<'w> {
        let jobs = jobs.clamp(1, sequence.len().max(1));
        Work {
            runner,
            sequence,
            part,
            next: AtomicUsize::new(0),
            shares: (0..jobs).map(|_| AtomicU64::new(0)).collect(),
            stop,
            failed: AtomicBool::new(false),
        }
    }

    /// Makes all runs and keeps each by `keep`, which tells of it in a line.
    fn share(
        &self,
        progress: &mut Together,
        mut keep: impl FnMut(&Planned, Made) -> Result<String, ScenarioError>,
    ) -> Result<(), ScenarioError> {
        thread::scope(|scope| {
            let (made, all_made) = mpsc::sync_channel(self.shares.len());
            for share in &self.shares {
                let made = made.clone();
                scope.spawn(move || self.make_some(share, &made));
            }
            drop(made);
            loop {
                let kept = match all_made.recv_timeout(TICK) {
                    Ok(Ok((index, made))) => keep(&self.sequence[index], made),
                    Ok(Err(error)) => Err(error),
                    Err(RecvTimeoutError::Timeout) => {
                        progress.tick(self.in_work());
                        continue;
                    }
                    Err(RecvTimeoutError::Disconnected) => return Ok(()),
                };
                match kept {
                    Ok(line) => progress.end(&line),
                    Err(error) => {
                        self.failed.store(true, Ordering::Relaxed);
                        return Err(error);
                    }
                }
            }
        })
    }

    fn make_some(&self, share: &AtomicU64, made: &mpsc::SyncSender<OneMade>) {
        loop {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(planned) = self.sequence.get(index).filter(|_| !self.is_over()) else {
                return;
            };
            let mut watch = Watching { work: self, share };
            // What a run leaves behind when it panics, nobody sees.
            let make = AssertUnwindSafe(|| self.runner.make(planned, self.part, &mut watch));
            let one = catch_unwind(make);
            let one = one.unwrap_or_else(|said| Ok(Some(self.panicked(planned, said_by(&*said)))));
            share.store(0, Ordering::Relaxed);
            let one = one.map(|made| made.map(|made| (index, made))).transpose();
            let is_kept = one.is_some_and(|one| made.send(one).is_ok());
            if !is_kept {
                return;
            }
        }
    }

    fn panicked(&self, planned: &Planned, said: &str) -> Made {
        let name = self.runner.name();
        let error = format!("the {name} panicked, which is a bug in fatpath: {said}");
        self.runner.failed(planned, error).into()
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

/// The display takes the share that is done when it next moves.
struct Watching<'w> {
    work: &'w Work<'w>,
    share: &'w AtomicU64,
}

impl Watch for Watching<'_> {
    fn go_on(&mut self) -> bool {
        !self.work.is_over()
    }

    fn done(&mut self, share: f64) {
        self.share.store((share * PARTS) as u64, Ordering::Relaxed);
    }

    fn say(&mut self, line: &str) {
        eprintln!("{line}");
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
    use std::collections::HashSet;

    use fatpath_scenario::{Case, Experiment, Scenario};

    use super::super::history::Maker;
    use super::super::order::sequence;
    use super::super::shard::Shard;
    use super::*;
    use crate::results::{Row, Run};

    /// Every third run panics.
    struct Thirds(Scenario);

    impl Runner for Thirds {
        fn name(&self) -> &'static str {
            "test"
        }

        fn scenario(&self) -> &Scenario {
            &self.0
        }

        fn maker(&self, _: Option<Shard>) -> Maker {
            Maker::Lab
        }

        fn folder(&self) -> &'static str {
            "runs"
        }

        fn jobs(&self) -> Option<usize> {
            Some(2)
        }

        fn check<'c>(&self, _: &[&'c Case]) -> Result<HashSet<&'c str>, ScenarioError> {
            Ok(HashSet::new())
        }

        fn make(
            &self,
            planned: &Planned,
            _: &Path,
            _: &mut dyn Watch,
        ) -> Result<Option<Made>, ScenarioError> {
            let repeat = planned.repeat().unwrap_or(0);
            assert!(!repeat.is_multiple_of(3), "run {repeat}");
            let mut run = Run::default();
            run.row.repeat = repeat;
            Ok(Some(run.into()))
        }

        fn failed(&self, planned: &Planned, error: String) -> Row {
            Row {
                repeat: planned.repeat().unwrap_or(0),
                error: Some(error),
                ..Row::default()
            }
        }
    }

    #[test]
    fn a_run_that_panics_is_a_failed_one_and_the_others_go_on() {
        let text = "name = \"x\"\n[hosts.a]\n[experiment]\nrepeats = 10\n";
        let runner = Thirds(Scenario::parse("x.toml", text).unwrap());
        let cases: Vec<&Case> = runner.0.cases.iter().collect();
        let experiment: &Experiment = &runner.0.experiment;
        let sequence = sequence(&cases, experiment, |_, _| false);
        let stop = AtomicBool::new(false);
        let work = Work::new(&runner, &sequence, Path::new(""), 2, &stop);
        let mut errors = vec![None; 11];
        let kept = work.share(&mut Together::new(10, true), |planned, made| {
            let repeat = planned.repeat().unwrap();
            assert_eq!(made.run.row.repeat, repeat);
            errors[repeat as usize] = Some(made.run.row.error);
            Ok(String::new())
        });
        kept.unwrap();
        for (repeat, error) in errors.into_iter().enumerate().skip(1) {
            let expected = (repeat % 3 == 0)
                .then(|| format!("the test panicked, which is a bug in fatpath: run {repeat}"));
            assert_eq!(error, Some(expected));
        }
    }
}

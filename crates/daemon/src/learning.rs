// SPDX-License-Identifier: MIT OR Apache-2.0
//! The worker that learns paths from flows, and has the engine tune by what was learned.

use crate::instruments::Instruments;
use crate::paths::{Learned, Memory, PathsState, unix_minus_monotonic_us};
use crate::state::DaemonState;
use anyhow::Result;
use fatpath_policy::AutoMode;
use fatpath_supervisor::Heartbeat;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::time::sleep;

/// What flows tell is looked at so often.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// Flows of which the table tells at once: it is locked for some milliseconds at most.
const TOLD_AT_ONCE: usize = 512;

/// Learns while the policy says so, until the daemon ends.
///
/// # Errors
/// None that ends the daemon: what cannot be done is logged, and tried again.
pub(crate) fn follow_paths(state: &DaemonState, heartbeat: &Heartbeat) -> Result<()> {
    let runtime = Handle::current();
    let mut learner = Learner::default();
    let wait = || runtime.block_on(heartbeat.wait(sleep(LOOK_INTERVAL)));
    // The first turn at once: flows go without what was learned before until then.
    learner.turn(state);
    while wait().is_some() {
        learner.turn(state);
    }
    state.paths.store(&mut learner.memory, &state.archive, None);
    Ok(())
}

/// A server of the archive that is away is asked again so often: each time learning waits for it.
const RESTORE_INTERVAL: Duration = Duration::from_secs(60);

/// Whether what was known before is known again.
#[derive(Default)]
struct Restoring {
    is_done: bool,
    tried: Option<Instant>,
}

impl Restoring {
    /// Until the archive could be read, everything is learned anew.
    fn turn(&mut self, now: Instant, restore: impl FnOnce() -> Result<usize>) {
        let is_due = |tried: Instant| now.duration_since(tried) >= RESTORE_INTERVAL;
        if self.is_done || !self.tried.is_none_or(is_due) {
            return;
        }
        let is_first = self.tried.replace(now).is_none();
        match restore() {
            Ok(paths) => {
                self.is_done = true;
                if paths > 0 {
                    tracing::info!("{paths} paths are known from before");
                }
            }
            Err(error) if is_first => {
                tracing::error!(
                    "{error:#}; paths are learned anew, and it is tried again each minute"
                );
            }
            Err(_) => {}
        }
    }
}

#[derive(Default)]
struct Learner {
    /// Of the table of flows.
    mark: u64,
    memory: Memory,
    restoring: Restoring,
    mode: AutoMode,
    /// The kernel half is given all paths, and not what has changed: at first, and after it could not be changed.
    is_to_tell_all: bool,
    /// Said when it begins, and when it changes.
    failure: Option<String>,
    /// The same of rules whose path is measured.
    unmeasured: Option<String>,
}

impl Learner {
    fn turn(&mut self, state: &DaemonState) {
        let mode = state.paths.mode();
        if mode != self.mode {
            self.is_to_tell_all = true;
            self.mode = mode;
        }
        if mode != AutoMode::Off {
            self.restoring
                .turn(Instant::now(), || state.paths.restore(&state.archive));
            self.learn(&state.paths, &state.instruments);
            self.follow_measured(state);
            let now = Some(Instant::now());
            state.paths.store(&mut self.memory, &state.archive, now);
        }
        if mode == AutoMode::Tune {
            self.tune(state);
        }
    }

    /// Rules whose path is measured follow it.
    fn follow_measured(&mut self, state: &DaemonState) {
        if !state.paths.is_measured() {
            return;
        }
        let mut engine = state.engine.lock();
        let Some(engine) = engine.as_mut() else {
            return;
        };
        let failure = match engine.follow_measured() {
            Ok(false) => return,
            Ok(true) => None,
            Err(error) => Some(format!("{error:#}")),
        };
        if let Some(error) = failure.as_ref().filter(|_| failure != self.unmeasured) {
            tracing::error!(
                "measured paths: {error}; flows keep what they have, and it is tried again"
            );
        }
        self.unmeasured = failure;
    }

    fn learn(&mut self, paths: &PathsState, instruments: &Instruments) {
        let changed = instruments.changed(self.mark);
        self.mark = changed.mark;
        let is_measured = paths.is_measured();
        for cookies in changed.cookies.chunks(TOLD_AT_ONCE) {
            if is_measured {
                paths.follow(instruments.windows(cookies, unix_minus_monotonic_us()));
            }
            let told = instruments.evidence(cookies, unix_minus_monotonic_us());
            for key in paths.learn(told) {
                self.memory.note(key, Instant::now());
            }
        }
    }

    fn tune(&mut self, state: &DaemonState) {
        let are_all = self.is_to_tell_all;
        let paths = state.paths.assign(are_all);
        if paths.is_empty() && !are_all {
            return;
        }
        self.is_to_tell_all = true;
        let mut engine = state.engine.lock();
        let Some(engine) = engine.as_mut() else {
            return;
        };
        let rules = state.paths.rules();
        let tuned = rules.and_then(|rules| {
            engine.tune_learned(Learned {
                rules,
                paths,
                are_all,
            })
        });
        self.is_to_tell_all = tuned.is_err();
        let failure = tuned.err().map(|error| format!("{error:#}"));
        if let Some(error) = failure.as_ref().filter(|_| failure != self.failure) {
            tracing::error!(
                "learned paths: {error}; flows keep what they have, and it is tried again"
            );
        }
        self.failure = failure;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_that_is_away_is_asked_each_minute_until_it_answers() {
        let (mut restoring, begun, mut asked) = (Restoring::default(), Instant::now(), vec![]);
        for second in 0..300 {
            let now = begun + Duration::from_secs(second);
            restoring.turn(now, || {
                asked.push(second);
                anyhow::ensure!(second >= 120, "it is away");
                Ok(7)
            });
        }
        assert_eq!(asked, [0, 60, 120]);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scheduled tests: what `crates/measure` decides, done by `crates/perform`. Start at `worker`.

mod flows;
mod leases;
mod meshes;
mod passive;
mod plan_file;
mod worker;

use fatpath_api::{MeasureStatus, TestLevel, TestOutcome};
use fatpath_measure::Plan;
use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use tokio::sync::{Notify, mpsc, oneshot};

pub use meshes::mesh_grid;
pub(crate) use meshes::meshes;
pub use plan_file::{host_seed, parse_plan, read_plan_file};
pub(crate) use worker::{Parts, follow_tests};

/// Requests that wait to be looked at.
const MAX_REQUESTS: usize = 16;

/// The tests of this daemon.
pub(crate) struct Measurements {
    file: PathBuf,
    plan: Mutex<Option<Plan>>,
    /// Another plan holds.
    changed: Notify,
    status: Mutex<MeasureStatus>,
    requests: mpsc::Sender<Request>,
    /// Until the worker takes it.
    requested: Mutex<Option<mpsc::Receiver<Request>>>,
}

/// A test that is to run now, and where its outcome is waited for.
pub(crate) struct Request {
    test: String,
    reply: oneshot::Sender<Result<TestOutcome, Refusal>>,
}

/// Why a test does not run now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Unknown,
    Running,
    Busy,
    Ending,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Refusal::Unknown => "the file has no such test",
            Refusal::Running => "the test runs already, or waits for its resource",
            Refusal::Busy => "too many tests were asked for at once",
            Refusal::Ending => "the daemon ends",
        })
    }
}

impl Measurements {
    /// Reads the file; without one there are no tests.
    pub(crate) fn new(file: &Path) -> Measurements {
        let (requests, requested) = mpsc::channel(MAX_REQUESTS);
        let measurements = Measurements {
            file: file.to_path_buf(),
            plan: Mutex::default(),
            changed: Notify::new(),
            status: Mutex::default(),
            requests,
            requested: Mutex::new(Some(requested)),
        };
        measurements.reload();
        measurements
    }

    /// Reads the file again. While it is wrong the tests stay as they are.
    pub(crate) fn reload(&self) {
        let plan = match self.file.exists() {
            true => read_plan_file(&self.file).map(Some),
            false => Ok(None),
        };
        let mut status = self.status.lock();
        status.file_error = plan.as_ref().err().map(ToString::to_string);
        match plan {
            Ok(plan) => {
                status.tests = plan.as_ref().map_or(0, |plan| plan.tests.len() as u64);
                *self.plan.lock() = plan;
                self.changed.notify_one();
            }
            Err(error) => tracing::error!("{error:#}\nthe tests stay as they were"),
        }
    }

    /// How the tests fare; `None` without a file.
    pub(crate) fn status(&self) -> Option<MeasureStatus> {
        let status = self.status.lock().clone();
        let has_plan = self.plan.lock().is_some();
        (has_plan || status.file_error.is_some()).then_some(MeasureStatus {
            file: self.file.clone(),
            ..status
        })
    }

    /// Runs a test, which waits for its resource, and answers when it has ended.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub(crate) async fn run_now(&self, test: String) -> Result<TestOutcome, Refusal> {
        let (reply, outcome) = oneshot::channel();
        let request = Request { test, reply };
        let sent = self.requests.try_send(request);
        sent.map_err(|_| Refusal::Busy)?;
        outcome.await.unwrap_or(Err(Refusal::Ending))
    }

    fn plan(&self) -> Plan {
        self.plan.lock().clone().unwrap_or_default()
    }

    fn report(&self, running: Vec<String>, next: Option<(String, i64)>) {
        let mut status = self.status.lock();
        status.running = running;
        (status.next, status.next_due_us) = next.unzip();
    }

    fn count(&self, outcome: &TestOutcome) {
        let mut status = self.status.lock();
        let Some(note) = &outcome.note else {
            status.succeeded += 1;
            return;
        };
        let message = format!("{}: {}", outcome.test, note.message);
        match note.level {
            TestLevel::Error => {
                status.failed += 1;
                tracing::warn!("the test {message}");
                status.last_error = Some(message);
            }
            TestLevel::Info | TestLevel::Warning => status.left_out += 1,
        }
    }
}

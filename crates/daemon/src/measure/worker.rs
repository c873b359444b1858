// SPDX-License-Identifier: MIT OR Apache-2.0
//! The worker that runs tests when they are due. Without a file it waits, and is not woken.

use super::flows::sum_up;
use super::leases::LocalLeases;
use super::passive::enough_flows;
use super::{Measurements, Refusal, Request, host_seed};
use crate::archive::Archive;
use crate::flow_log::Logs;
use crate::instruments::Instruments;
use crate::paths::PathsState;
use anyhow::Result;
use fatpath_api::{TestLevel, TestNote, TestOutcome};
use fatpath_archive::{Event, Kind};
use fatpath_clock::{monotonic_ns, now_us};
use fatpath_measure::outcome::{is_failure, main_value, outcome};
use fatpath_measure::{Schedule, Test};
use fatpath_perform::{UNKNOWN_RTT_US, peer_address, perform};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// A clock that is set is noticed after this at most.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);

/// A lease ends so much later than its test is killed.
const LEASE_MARGIN_US: u64 = 10_000_000;

/// The parts of the daemon that it uses; a clone is another handle on them.
#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) measurements: Arc<Measurements>,
    pub(crate) archive: Arc<Archive>,
    pub(crate) paths: Arc<PathsState>,
    pub(crate) instruments: Arc<Instruments>,
    pub(crate) logs: Arc<Logs>,
    /// Cancelled when the daemon is to end.
    pub(crate) shutdown: CancellationToken,
}

/// One run, and what it is of.
struct Ended {
    test: Arc<Test>,
    peer: Option<IpAddr>,
    outcome: TestOutcome,
}

/// Runs tests until the daemon is to end; then it waits until those that run are killed.
///
/// # Errors
/// When a run panicked.
pub(crate) async fn follow_tests(parts: Parts) -> Result<()> {
    let shutdown = parts.shutdown.clone();
    let requested = parts.measurements.requested.lock().take();
    let (_, none) = mpsc::channel(1);
    let mut requested = requested.unwrap_or(none);
    let mut worker = Worker::new(parts);
    while !shutdown.is_cancelled() {
        worker.start_due();
        let pause = worker.pause();
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = worker.parts.measurements.changed.notified() => worker.follow_plan(),
            Some(request) = requested.recv() => worker.start_requested(request),
            Some(ended) = worker.runs.join_next() => worker.ended(ended?),
            () = sleep(pause) => {}
        }
    }
    while worker.runs.join_next().await.is_some() {}
    Ok(())
}

/// Without a time to wait for it waits for ever.
async fn sleep(pause: Option<Duration>) {
    match pause {
        Some(pause) => tokio::time::sleep(pause).await,
        None => std::future::pending().await,
    }
}

struct Worker {
    parts: Parts,
    leases: Arc<LocalLeases>,
    tests: Vec<Arc<Test>>,
    schedule: Schedule,
    runs: JoinSet<Ended>,
    running: BTreeSet<String>,
    replies: BTreeMap<String, oneshot::Sender<Result<TestOutcome, Refusal>>>,
    rtt_us: BTreeMap<String, u64>,
}

impl Worker {
    fn new(parts: Parts) -> Worker {
        let first_token = u64::try_from(now_us()).unwrap_or_default();
        let mut worker = Worker {
            parts,
            leases: Arc::new(LocalLeases::new(first_token)),
            tests: Vec::new(),
            schedule: Schedule::new(&[], 0, 0),
            runs: JoinSet::new(),
            running: BTreeSet::new(),
            replies: BTreeMap::new(),
            rtt_us: BTreeMap::new(),
        };
        worker.follow_plan();
        worker
    }

    fn follow_plan(&mut self) {
        let tests = self.parts.measurements.plan().tests;
        let mut schedule = Schedule::new(&tests, host_seed(), now_us());
        schedule.keep_failures(&self.schedule);
        self.schedule = schedule;
        self.tests = tests.into_iter().map(Arc::new).collect();
        self.report();
    }

    fn start_due(&mut self) {
        for (index, due_us) in self.schedule.take_due(now_us()) {
            let test = Arc::clone(&self.tests[index]);
            if self.running.insert(test.name.clone()) {
                self.start(test, Some(due_us));
                continue;
            }
            let outcome = left_out(
                &test,
                due_us,
                TestLevel::Warning,
                "left out: its last run lasts",
            );
            let outcome = TestOutcome {
                due_us: Some(due_us),
                ..outcome
            };
            self.keep(&Ended {
                test,
                peer: None,
                outcome,
            });
        }
        self.report();
    }

    fn start_requested(&mut self, request: Request) {
        let named = self.tests.iter().find(|test| test.name == request.test);
        let refusal = match named.cloned() {
            None => Refusal::Unknown,
            Some(test) if !self.running.insert(test.name.clone()) => Refusal::Running,
            Some(test) => {
                self.replies.insert(test.name.clone(), request.reply);
                self.start(test, None);
                return self.report();
            }
        };
        // Whoever asked may be gone.
        let _ = request.reply.send(Err(refusal));
    }

    /// `due_us` is none for a run that was asked for.
    fn start(&mut self, test: Arc<Test>, due_us: Option<i64>) {
        let rtt_us = test.to.as_ref().and_then(|to| self.rtt_us.get(to)).copied();
        let (parts, leases) = (self.parts.clone(), Arc::clone(&self.leases));
        self.runs
            .spawn_blocking(move || run(&parts, &leases, test, due_us, rtt_us));
    }

    fn ended(&mut self, ended: Ended) {
        self.running.remove(&ended.test.name);
        let tests = self.tests.iter();
        let index = tests.zip(0..).find(|(test, _)| **test == ended.test);
        if let Some((_, index)) = index {
            let failed = is_failure(&ended.outcome);
            self.schedule.ended(index, failed, now_us());
        }
        let rtt_ms = ended.outcome.values.get("rtt_avg");
        if let (Some(to), Some((rtt_ms, _))) = (&ended.test.to, rtt_ms) {
            self.rtt_us.insert(to.clone(), (rtt_ms * 1e3) as u64);
        }
        self.keep(&ended);
        if let Some(reply) = self.replies.remove(&ended.test.name) {
            // Whoever asked may be gone.
            let _ = reply.send(Ok(ended.outcome));
        }
        self.report();
    }

    /// Counts it, archives it and writes it to the event log.
    fn keep(&self, ended: &Ended) {
        let outcome = &ended.outcome;
        self.parts.measurements.count(outcome);
        let event = Event {
            time_us: outcome.start_us,
            name: format!("test.{}", outcome.tool),
            peer: ended.peer,
            rule: None,
            value: main_value(outcome),
            weight: 1,
            body: serde_json::to_string(outcome).unwrap_or_default(),
        };
        if let Some(log) = &self.parts.logs.events {
            crate::instruments::lines::write_test(log, &event, outcome);
        }
        if let Some(peer) = ended.peer {
            self.parts.paths.take_test(peer, outcome);
        }
        self.parts.archive.put(Kind::Test, event);
    }

    fn report(&self) {
        let next = self.tests.iter().enumerate();
        let next = next.filter_map(|(index, test)| Some((self.schedule.due_us(index)?, test)));
        let next = next.min_by_key(|(due_us, _)| *due_us);
        self.parts.measurements.report(
            self.running.iter().cloned().collect(),
            next.map(|(due_us, test)| (test.name.clone(), due_us)),
        );
    }

    fn pause(&self) -> Option<Duration> {
        let due_us = self.schedule.next_due_us()?;
        let wait_us = u64::try_from(due_us - now_us()).unwrap_or_default();
        Some(Duration::from_micros(wait_us).min(LONGEST_SLEEP))
    }
}

/// On a thread of its own.
fn run(
    parts: &Parts,
    leases: &LocalLeases,
    test: Arc<Test>,
    due_us: Option<i64>,
    rtt_us: Option<u64>,
) -> Ended {
    let peer = peer_address(&test);
    // Who asks for a test wants it, whatever flows said.
    let flows = due_us.and(peer);
    let flows = flows.and_then(|peer| {
        let archive = parts.archive.location().ok()?;
        let tests = parts.measurements.plan().tests;
        enough_flows(&archive, &test, &tests, peer, now_us())
    });
    let since_ns = monotonic_ns();
    let mut outcome = match flows {
        Some(flows) => {
            let message =
                format!("left out: {flows} flows of the last hour said enough of the path");
            left_out(&test, now_us(), TestLevel::Info, &message)
        }
        None => run_alone(parts, leases, &test, rtt_us),
    };
    sum_up(&mut outcome.flows, &parts.instruments, since_ns);
    Ended {
        test,
        peer,
        outcome: TestOutcome { due_us, ..outcome },
    }
}

/// While it holds a lease on each of the test's resources.
fn run_alone(parts: &Parts, leases: &LocalLeases, test: &Test, rtt_us: Option<u64>) -> TestOutcome {
    let goes_on = || !parts.shutdown.is_cancelled();
    let most_us = test.timeout_us(rtt_us.unwrap_or(UNKNOWN_RTT_US));
    let ttl = Duration::from_micros(most_us + LEASE_MARGIN_US);
    let (begun, patience) = (Instant::now(), Duration::from_micros(test.every_us));
    let waits_on = || goes_on() && begun.elapsed() < patience;
    match leases.acquire(&test.resources, ttl, waits_on) {
        Ok(Some(_held)) => perform(test, rtt_us, goes_on),
        Ok(None) => left_out(
            test,
            now_us(),
            TestLevel::Warning,
            "left out: its resource was in use",
        ),
        Err(failed) => {
            let message = format!("no lease on its resource: {failed}");
            left_out(test, now_us(), TestLevel::Error, &message)
        }
    }
}

fn left_out(test: &Test, time_us: i64, level: TestLevel, message: &str) -> TestOutcome {
    let message = message.to_owned();
    outcome(test, time_us, 0.0, Err(TestNote { level, message }))
}

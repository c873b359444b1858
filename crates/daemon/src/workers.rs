// SPDX-License-Identifier: MIT OR Apache-2.0
//! The daemon's workers: every one that there is, with what it takes of the state.

use crate::access::UnixSockets;
use crate::api::serve;
use crate::archive::{follow_events, follow_segments};
use crate::host_changes::{follow_host, follow_interfaces, follow_routes};
use crate::instruments::{follow, lines, otlp};
use crate::learning::follow_paths;
use crate::measure;
use crate::options::DaemonOptions;
use crate::phases::follow_phases;
use crate::shares::follow_shares;
use crate::signals::{follow_ends, follow_hangups};
use crate::state::DaemonState;
use crate::tuning_events::follow_tuning_events;
use anyhow::Result;
use fatpath_kernel::Kernel;
use fatpath_page::TcpEntrance;
use fatpath_supervisor::Supervisor;
use fatpath_trace::{choose_samples, write_samples};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// Starts them all.
///
/// # Errors
/// When a signal cannot be caught.
pub(crate) fn start(
    state: &DaemonState,
    kernel: &Arc<Kernel>,
    options: &DaemonOptions,
    sockets: UnixSockets,
    tcp: Option<TcpEntrance>,
) -> Result<Supervisor> {
    let mut workers = Supervisor::new(state.shutdown.clone())?;
    // Signals first: one that comes before its handler is there kills the daemon.
    workers.spawn("SIGTERM", follow_ends(state.shutdown.clone())?);
    let hangups = follow_hangups(state.clone(), options.policy.clone())?;
    workers.spawn("SIGHUP", hangups);
    start_followers(&mut workers, state, kernel);
    start_instruments(&mut workers, state, kernel);
    start_archive(&mut workers, state);
    start_traces(&mut workers, state);
    start_logs(&mut workers, state);
    let tests = measure::Parts {
        measurements: Arc::clone(&state.measurements),
        archive: Arc::clone(&state.archive),
        paths: Arc::clone(&state.paths),
        instruments: Arc::clone(&state.instruments),
        logs: Arc::clone(&state.logs),
        shutdown: state.shutdown.clone(),
    };
    workers.spawn("tests", measure::follow_tests(tests));
    if let Some(collector) = options.otlp.clone() {
        let interval = Duration::from_secs_f64(options.otlp_interval);
        let (instruments, shutdown) = (Arc::clone(&state.instruments), state.shutdown.clone());
        let export = otlp::export(instruments, collector, interval, shutdown);
        workers.spawn("OpenTelemetry", export);
    }
    workers.spawn("API", serve(sockets, tcp, state.clone()));
    Ok(workers)
}

/// What follows the kernel half and the host.
fn start_followers(workers: &mut Supervisor, state: &DaemonState, kernel: &Arc<Kernel>) {
    let share_changed = Arc::new(Notify::new());
    workers.spawn_beating("shares", |heartbeat| {
        follow_shares(Arc::clone(kernel), Arc::clone(&share_changed), heartbeat)
    });
    let (followed, of_events) = (Arc::clone(kernel), state.clone());
    workers.spawn_thread("flow ends", move |heartbeat| {
        follow_tuning_events(&followed, &of_events, &share_changed, heartbeat)
    });
    let (phases, followed) = (Arc::clone(&state.phases), Arc::clone(kernel));
    workers.spawn_thread("phases", move |heartbeat| {
        follow_phases(&phases, &followed, heartbeat)
    });
    let engine = state.engine.clone();
    workers.spawn_thread("interfaces", move |heartbeat| {
        follow_interfaces(&engine, heartbeat)
    });
    let engine = state.engine.clone();
    workers.spawn_thread("routes", move |heartbeat| follow_routes(&engine, heartbeat));
    let engine = state.engine.clone();
    workers.spawn_beating("host", |heartbeat| follow_host(engine, heartbeat));
}

/// What fills the table of flows, where the kernel took the instruments, and the event log.
fn start_instruments(workers: &mut Supervisor, state: &DaemonState, kernel: &Arc<Kernel>) {
    let jobs: [(_, fn(&Kernel, &_, &_) -> _); 2] =
        [("samples", follow::read), ("walks", follow::walk)];
    for (name, job) in jobs.into_iter().filter(|_| kernel.has_instruments()) {
        let (kernel, state) = (Arc::clone(kernel), state.clone());
        workers.spawn_thread(name, move |heartbeat| {
            job(&kernel, &state.instruments, heartbeat)
        });
    }
    let of_paths = state.clone();
    workers.spawn_thread("paths", move |heartbeat| follow_paths(&of_paths, heartbeat));
    let state = state.clone();
    if state.logs.events.is_some() {
        workers.spawn_thread("events", move |heartbeat| match &state.logs.events {
            Some(log) => lines::follow(&state.instruments, log, heartbeat),
            None => Ok(()),
        });
    }
}

/// What writes the logs.
fn start_logs(workers: &mut Supervisor, state: &DaemonState) {
    let flows = Arc::clone(&state.logs.flows);
    workers.spawn_disk_thread("flow log", move |shutdown| flows.follow(shutdown));
    if let Some(events) = state.logs.events.clone() {
        workers.spawn_disk_thread("event log", move |shutdown| events.follow(shutdown));
    }
}

/// What traces the flows that the policy chooses.
fn start_traces(workers: &mut Supervisor, state: &DaemonState) {
    let chooses = state.clone();
    workers.spawn_thread("traces", move |heartbeat| {
        let DaemonState {
            traces,
            instruments,
            cgroups,
            ..
        } = &chooses;
        let subscribe = || instruments.subscribe();
        choose_samples(traces, subscribe, |id| cgroups.path(id), heartbeat)
    });
    let traces = Arc::clone(&state.traces);
    workers.spawn_disk_thread("trace files", move |shutdown| {
        write_samples(&traces, shutdown)
    });
}

/// What keeps the archive, while the policy asks for one.
fn start_archive(workers: &mut Supervisor, state: &DaemonState) {
    let jobs: [(_, fn(&_, &_) -> _); 2] = [("spool", follow_events), ("store", follow_segments)];
    for (name, job) in jobs {
        let archive = Arc::clone(&state.archive);
        workers.spawn_disk_thread(name, move |shutdown| job(&archive, shutdown));
    }
    let state = state.clone();
    workers.spawn_thread("findings", move |heartbeat| {
        lines::follow_findings(&state.instruments, &state.archive, heartbeat)
    });
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the API's handlers and the workers share. Each takes the part that it needs: a handler by
//! `State<PART>`, a worker as an argument.

use crate::archive::Archive;
use crate::capture::Captures;
use crate::cgroup_paths::CgroupPaths;
use crate::engine::Engine;
use crate::flow_log::Logs;
use crate::instruments::Instruments;
use crate::instruments::samples::Recordings;
use crate::measure::Measurements;
use crate::paths::PathsState;
use crate::phases::PhasesState;
use axum::extract::FromRef;
use fatpath_kernel::Kernel;
use fatpath_page::{PageState, Streams};
use fatpath_trace::Traces;
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;
use std::time::Instant;
use tokio_util::sync::CancellationToken;

/// A clone is another handle on the same parts.
#[derive(Clone, FromRef)]
pub(crate) struct DaemonState {
    pub(crate) engine: SharedEngine,
    pub(crate) instruments: Arc<Instruments>,
    pub(crate) archive: Arc<Archive>,
    pub(crate) measurements: Arc<Measurements>,
    pub(crate) paths: Arc<PathsState>,
    pub(crate) phases: Arc<PhasesState>,
    pub(crate) traces: Arc<Traces>,
    pub(crate) kernel: Arc<Kernel>,
    pub(crate) logs: Arc<Logs>,
    pub(crate) cgroups: Arc<CgroupPaths>,
    pub(crate) streams: Arc<Streams>,
    pub(crate) recordings: Arc<Recordings>,
    pub(crate) captures: Captures,
    pub(crate) server: ServerInfo,
    /// Cancelled when the daemon is to end.
    pub(crate) shutdown: CancellationToken,
}

impl DaemonState {
    pub(crate) fn new(
        engine: Engine,
        measurements: Measurements,
        logs: Logs,
        captures: Captures,
        server: ServerInfo,
    ) -> DaemonState {
        DaemonState {
            instruments: Arc::clone(&engine.instruments),
            archive: Arc::clone(&engine.archive),
            paths: Arc::clone(&engine.paths),
            phases: Arc::clone(&engine.phases),
            traces: Arc::clone(&engine.traces),
            kernel: Arc::clone(&engine.kernel),
            engine: SharedEngine(Arc::new(Mutex::new(Some(engine)))),
            measurements: Arc::new(measurements),
            logs: Arc::new(logs),
            cgroups: Arc::default(),
            streams: Arc::default(),
            recordings: Arc::default(),
            captures,
            server,
            shutdown: CancellationToken::new(),
        }
    }
}

/// The engine, one user at a time.
#[derive(Clone)]
pub(crate) struct SharedEngine(Arc<Mutex<Option<Engine>>>);

impl SharedEngine {
    /// `None` once everything was unloaded. May wait for as long as a policy takes to become live.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Option<Engine>> {
        self.0.lock()
    }
}

/// What the daemon says of its own server.
#[derive(Clone)]
pub(crate) struct ServerInfo {
    pub(crate) page: Arc<Mutex<PageState>>,
    pub(crate) started: Instant,
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The worker that has programs' phases followed while the policy says what a phase is.

use crate::answer::AnswerTo;
use anyhow::Result;
use axum::Json;
use axum::extract::State;
use fatpath_api::endpoint::GetPhases;
use fatpath_kernel::{Kernel, Phases};
use fatpath_policy::PhaseTable;
use fatpath_supervisor::Heartbeat;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::timeout;

/// Libraries and processes are looked for so often; much less than `fatpath_kernel::PHASE_GATE`.
const PASS_INTERVAL: Duration = Duration::from_secs(2);

/// What the policy asks for, and what came of it.
#[derive(Debug, Default)]
pub(crate) struct PhasesState {
    tables: Mutex<Vec<PhaseTable>>,
    shown: Mutex<fatpath_api::Phases>,
    changed: Notify,
}

impl PhasesState {
    /// The live policy is another.
    pub(crate) fn set_policy(&self, tables: &[PhaseTable]) {
        *self.tables.lock() = tables.to_vec();
        self.changed.notify_one();
    }
}

/// `GET /v1/phases`
pub(crate) async fn phases(
    State(state): State<Arc<PhasesState>>,
    State(kernel): State<Arc<Kernel>>,
) -> AnswerTo<GetPhases> {
    let mut shown = state.shown.lock().clone();
    shown.processes = match shown.tables.is_empty() {
        true => Vec::new(),
        false => kernel.phase_processes().map_err(anyhow::Error::from)?,
    };
    Ok(Json(shown))
}

/// Follows phases until the daemon ends.
///
/// # Errors
/// None that ends the daemon: what cannot be done is logged, shown, and tried again with the next policy.
pub(crate) fn follow_phases(
    state: &PhasesState,
    kernel: &Kernel,
    heartbeat: &Heartbeat,
) -> Result<()> {
    let runtime = Handle::current();
    let next = async || drop(timeout(PASS_INTERVAL, state.changed.notified()).await);
    let mut follower = Follower::default();
    follower.turn(state, kernel);
    while runtime.block_on(heartbeat.wait(next())).is_some() {
        follower.turn(state, kernel);
    }
    if follower.phases.is_some() {
        let _ = kernel.close_phase_gate();
    }
    Ok(())
}

#[derive(Default)]
struct Follower {
    /// What was tried last.
    tables: Vec<PhaseTable>,
    phases: Option<Phases>,
    shown: fatpath_api::Phases,
}

impl Follower {
    fn turn(&mut self, state: &PhasesState, kernel: &Kernel) {
        let tables = state.tables.lock().clone();
        if tables != self.tables {
            self.begin(kernel, tables);
        }
        if let Some(phases) = &mut self.phases {
            match phases.pass(kernel) {
                Ok(notes) => notes
                    .iter()
                    .for_each(|note| tracing::warn!("phases: {note}")),
                Err(error) => tracing::error!("phases: {error}"),
            }
            self.shown.libraries = phases.libraries();
        }
        *state.shown.lock() = self.shown.clone();
    }

    fn begin(&mut self, kernel: &Kernel, tables: Vec<PhaseTable>) {
        self.phases = None;
        let names = tables.iter().map(|table| table.name.clone());
        self.shown = fatpath_api::Phases {
            tables: names.collect(),
            ..Default::default()
        };
        let begun = match tables.is_empty() {
            true => kernel.close_phase_gate().map(|()| None),
            false => Phases::begin(kernel, &tables).map(Some),
        };
        match begun {
            Ok(phases) => self.phases = phases,
            Err(error) => {
                let problem = format!("{error}: every phase is as the rule itself says");
                tracing::error!("phases cannot be followed: {problem}");
                self.shown.problem = Some(problem);
            }
        }
        self.shown.probe_us = self.phases.as_ref().and_then(Phases::probe_us);
        self.tables = tables;
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Signals: SIGHUP reads the policy again, SIGTERM and SIGINT end the daemon.

use crate::policy_file::read_policy_file;
use crate::state::DaemonState;
use anyhow::Result;
use fatpath_api::Applied;
use fatpath_units::show_count;
use std::path::{Path, PathBuf};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// SIGHUP: the policy file and the tests again, and the logs' files anew.
pub(crate) fn follow_hangups(
    state: DaemonState,
    policy: PathBuf,
) -> Result<impl Future<Output = Result<()>> + Send> {
    let mut hangup = signal(SignalKind::hangup())?;
    Ok(async move {
        let shutdown = state.shutdown.clone();
        while let Some(Some(())) = shutdown.run_until_cancelled(hangup.recv()).await {
            let (state, policy) = (state.clone(), policy.clone());
            tokio::task::spawn_blocking(move || reload(&state, &policy)).await?;
        }
        Ok(())
    })
}

/// SIGTERM, SIGINT: the end, also while a policy is read again.
pub(crate) fn follow_ends(
    shutdown: CancellationToken,
) -> Result<impl Future<Output = Result<()>> + Send> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            () = shutdown.cancelled() => {}
        }
        shutdown.cancel();
        Ok(())
    })
}

fn reload(state: &DaemonState, file: &Path) {
    state.logs.reopen();
    state.measurements.reload();
    let name = file.display().to_string();
    let applied = read_policy_file(file).and_then(|policy| match state.engine.lock().as_mut() {
        Some(engine) => engine.apply(policy, &name),
        None => Ok(Applied::default()),
    });
    match applied {
        Ok(applied) => log_applied(file, &applied),
        Err(error) => tracing::error!("{error:#}\nthe previous policy stays in force"),
    }
}

/// Logs what became of a policy that was applied.
pub(crate) fn log_applied(file: &Path, applied: &Applied) {
    for note in &applied.notes {
        tracing::info!("{note}");
    }
    tracing::info!(
        "{}: {} live, applied to {}",
        file.display(),
        show_count(applied.rules, "rule"),
        show_count(applied.live_flows_met, "live flow")
    );
}

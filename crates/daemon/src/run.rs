// SPDX-License-Identifier: MIT OR Apache-2.0
//! The daemon's life: lock, load, apply, answer, and at the end leave everything pinned.

use crate::access::UnixSockets;
use crate::archive::{Archive, keep_said_in};
use crate::capture::Captures;
use crate::engine::Engine;
use crate::flow_log::Logs;
use crate::measure::Measurements;
use crate::options::DaemonOptions;
use crate::signals::log_applied;
use crate::state::{DaemonState, ServerInfo};
use crate::{Instance, workers};
use anyhow::Result;
use fatpath_page::{TcpEntrance, token_file};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Workers get this long to end, and so does a request that is changing something: a policy that becomes live
/// walks the sockets of all namespaces.
const END_DEADLINE: Duration = Duration::from_secs(30);

/// Runs the daemon until a signal or an unload ends it.
///
/// # Errors
/// Another daemon runs, the policy is bad, or the kernel half cannot be loaded.
pub fn run(options: &DaemonOptions) -> Result<()> {
    let instance = Instance::new(&options.instance, options.cgroup.clone())?;
    let running = instance.lock()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let archive = Arc::new(Archive::new(&options.archive));
    keep_said_in(&archive);
    let (engine, applied) = Engine::start(&instance, options, archive)?;
    log_applied(&options.policy, &applied);
    let kernel = Arc::clone(&engine.kernel);
    let page = Arc::default();
    let logs = Logs::new(&options.flow_log, options.event_log.as_deref());
    let started = Instant::now();
    let measurements = Measurements::new(&options.measure);
    let captures = Captures::new(&instance.run_dir);
    let server = ServerInfo { page, started };
    let state = DaemonState::new(engine, measurements, logs, captures, server);
    let ended = runtime.block_on(async {
        let sockets = UnixSockets::listen(&instance)?;
        let tcp = match options.listen {
            Some(address) => {
                let page = Arc::clone(&state.server.page);
                Some(TcpEntrance::new(address, &instance.run_dir, page).await)
            }
            None => None,
        };
        let workers = workers::start(&state, &kernel, options, sockets, tcp)?;
        tracing::info!("{}", started_line(&instance, options, &state));
        running.say_ready()?;
        workers.run(END_DEADLINE).await
    });
    runtime.shutdown_timeout(END_DEADLINE);
    state.logs.end();
    if state.engine.lock().is_none() {
        // Unloaded: nothing stays.
        let _ = std::fs::remove_file(token_file(&instance.run_dir));
    }
    let forgotten = state.engine.lock().as_mut().map(Engine::forget_by_hand);
    if let Some(Err(error)) = forgotten {
        tracing::error!("flows tuned by hand keep what they have: {error:#}");
    }
    instance.remove_sockets();
    ended
}

/// Version, policy, socket, page and log.
fn started_line(instance: &Instance, options: &DaemonOptions, state: &DaemonState) -> String {
    let page = match state.server.page.lock().address {
        Some(address) => format!("http://{address}/ (fatpath page prints its token)"),
        None => format!("on {} (see fatpath page)", instance.view_socket().display()),
    };
    format!(
        "fatpath {} runs: policy {}, socket {}, page {page}, log of ended flows {}",
        env!("CARGO_PKG_VERSION"),
        options.policy.display(),
        instance.socket().display(),
        options.flow_log.display()
    )
}

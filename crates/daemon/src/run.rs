// SPDX-License-Identifier: MIT OR Apache-2.0
//! The daemon's life: lock, load, apply, answer, and at the end leave everything pinned.

use crate::access::listen;
use crate::api::serve;
use crate::engine::Engine;
use crate::flow_log::{Logs, end_of};
use crate::instruments::otlp::export;
use crate::options::DaemonOptions;
use crate::page::{TcpDoor, token_file};
use crate::state::{DaemonState, ServerInfo, SharedEngine};
use crate::{Instance, engine, instruments};
use anyhow::Result;
use fatpath_api::{Applied, TunedFlow};
use fatpath_kernel::{Event, Kernel};
use fatpath_netlink::InterfaceEvents;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// How often the daemon looks whether cgroups that rules name came or went, and routes changed.
const HOST_INTERVAL: Duration = Duration::from_secs(2);

/// The thread of events asks at least this often whether it is to end.
const EVENT_TICK: Duration = Duration::from_millis(100);

/// Shares of divided buffers are given anew at most this often: each time walks all sockets.
const SHARE_INTERVAL: Duration = Duration::from_millis(100);

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
    let open = |address| runtime.block_on(TcpDoor::open(address, &instance.run_dir));
    let tcp = options.listen.map(open).transpose()?;
    let (engine, applied) = Engine::start(&instance, &options.policy)?;
    say(&options.policy, &applied);
    let kernel = Arc::clone(&engine.kernel);
    let page = tcp.as_ref().map(TcpDoor::address).transpose()?;
    let logs = Logs::new(&options.flow_log, options.event_log.as_deref());
    let started = Instant::now();
    let state = DaemonState::new(engine, logs, ServerInfo { page, started });
    let events = std::thread::spawn({
        let (kernel, state) = (Arc::clone(&kernel), state.clone());
        move || follow_events(&kernel, &state)
    });
    let interfaces = std::thread::spawn({
        let (engine, shutdown) = (state.engine.clone(), state.shutdown.clone());
        move || follow_interfaces(&engine, &shutdown)
    });
    let samples = instruments::follow(&kernel, &state.instruments, &state.shutdown);
    let events_out = std::thread::spawn({
        let state = state.clone();
        move || {
            if let Some(log) = &state.logs.events {
                instruments::lines::follow(&state.instruments, log, &state.shutdown);
            }
        }
    });
    let served = runtime.block_on(async {
        let listener = listen(&instance)?;
        running.say_ready()?;
        tokio::spawn(follow_host(state.engine.clone()));
        if let Some(collector) = options.otlp.clone() {
            let interval = Duration::from_secs_f64(options.otlp_interval);
            tokio::spawn(export(Arc::clone(&state.instruments), collector, interval));
        }
        tokio::spawn(follow_hangups(state.clone(), options.policy.clone())?);
        tokio::spawn(follow_ends(state.shutdown.clone())?);
        serve(listener, tcp, state.clone()).await;
        Ok(())
    });
    if state.engine.lock().is_none() {
        // Unloaded: nothing stays.
        let _ = std::fs::remove_file(token_file(&instance.run_dir));
    }
    state.shutdown.cancel();
    let _ = std::fs::remove_file(instance.socket());
    let _ = events.join();
    let _ = interfaces.join();
    let _ = events_out.join();
    samples.into_iter().for_each(|thread| drop(thread.join()));
    served
}

fn say(file: &Path, applied: &Applied) {
    for note in &applied.notes {
        tracing::info!("{note}");
    }
    tracing::info!(
        "{}: {} rules live, {} live flows met them",
        file.display(),
        applied.rules,
        applied.live_flows_met
    );
}

fn follow_events(kernel: &Kernel, state: &DaemonState) {
    let is_stale = std::cell::Cell::new(false);
    let mut last = Instant::now();
    let mut end_or_share = || {
        if is_stale.get() && last.elapsed() >= SHARE_INTERVAL {
            is_stale.set(false);
            last = Instant::now();
            if let Err(error) = kernel.share_again() {
                tracing::error!("cannot share buffers anew: {error}");
            }
        }
        state.shutdown.is_cancelled()
    };
    let on_event = |event| match event {
        Event::FlowEnd(flow) => log_end(state, *flow),
        Event::ShareChanged => is_stale.set(true),
        _ => {}
    };
    let followed = kernel
        .events()
        .and_then(|mut events| events.follow(EVENT_TICK, &mut end_or_share, on_event));
    if let Err(error) = followed {
        tracing::error!("no more flow log: {error}");
    }
}

fn log_end(state: &DaemonState, flow: TunedFlow) {
    let line = end_of(flow, &state.cgroups);
    if let Some(said) = state.logs.flows.lock().write(&line) {
        tracing::error!("{said}");
    }
}

/// An interface that comes marks at once, for a flow may be rude over it.
fn follow_interfaces(engine: &SharedEngine, shutdown: &CancellationToken) {
    let follow = || -> std::io::Result<()> {
        let events = InterfaceEvents::open()?;
        while !shutdown.is_cancelled() {
            if events.wait(EVENT_TICK)?
                && let Some(engine) = engine.lock().as_mut()
                && let Err(error) = engine.kernel.follow_marks()
            {
                tracing::error!("cannot mark an interface that came: {error}");
            }
        }
        Ok(())
    };
    if let Err(error) = follow() {
        tracing::error!("interfaces that come mark only within 2 s: {error}");
    }
}

async fn follow_host(engine: SharedEngine) {
    loop {
        tokio::time::sleep(HOST_INTERVAL).await;
        let owner = engine.clone();
        let look = move || owner.lock().as_mut().map(Engine::follow_host);
        match tokio::task::spawn_blocking(look).await {
            Ok(Some(Ok(said))) => said.iter().for_each(|what| tracing::info!("{what}")),
            Ok(Some(Err(error))) => tracing::error!("{error:#}"),
            _ => {}
        }
    }
}

/// SIGHUP: the policy file again, and the logs' files anew.
fn follow_hangups(state: DaemonState, policy: PathBuf) -> Result<impl Future<Output = ()> + Send> {
    let mut hangup = signal(SignalKind::hangup())?;
    Ok(async move {
        while hangup.recv().await.is_some() {
            let (state, policy) = (state.clone(), policy.clone());
            let _ = tokio::task::spawn_blocking(move || reload(&state, &policy)).await;
        }
    })
}

/// SIGTERM, SIGINT: the end, also while a policy is read again.
fn follow_ends(shutdown: CancellationToken) -> Result<impl Future<Output = ()> + Send> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        shutdown.cancel();
    })
}

fn reload(state: &DaemonState, file: &Path) {
    state.logs.reopen();
    let name = file.display().to_string();
    let applied =
        engine::read_policy_file(file).and_then(|policy| match state.engine.lock().as_mut() {
            Some(engine) => engine.apply(policy, &name),
            None => Ok(Applied::default()),
        });
    match applied {
        Ok(applied) => say(file, &applied),
        Err(error) => tracing::error!("{error:#}\nthe policy that was live stays live"),
    }
}

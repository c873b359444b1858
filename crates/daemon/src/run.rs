// SPDX-License-Identifier: MIT OR Apache-2.0
//! The daemon's life: lock, load, apply, answer, and at the end leave everything pinned.

use crate::api::{Shared, held, serve};
use crate::engine::{Applied, Engine};
use crate::flow_log::{FlowLog, Told};
use crate::instruments::otlp::export;
use crate::options::DaemonOptions;
use crate::page::{TcpDoor, token_file};
use crate::{Instance, engine, instruments};
use anyhow::{Context, Result};
use fatpath_kernel::{Event, Kernel};
use fatpath_netlink::InterfaceEvents;
use rustix::fs::Mode;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::net::UnixListener;
use tokio::signal::unix::{SignalKind, signal};

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
    let event_log = options.event_log.as_deref().map(FlowLog::new);
    let shared = Shared::new(engine, FlowLog::new(&options.flow_log), event_log, page);
    let ended = Arc::new(AtomicBool::new(false));
    let events = std::thread::spawn({
        let (shared, ended) = (Arc::clone(&shared), Arc::clone(&ended));
        let kernel = Arc::clone(&kernel);
        move || follow_events(&kernel, &shared, &ended)
    });
    let interfaces = std::thread::spawn({
        let (shared, ended) = (Arc::clone(&shared), Arc::clone(&ended));
        move || follow_interfaces(&shared, &ended)
    });
    let samples = instruments::follow(&kernel, &shared, &ended);
    let events_out = std::thread::spawn({
        let (shared, ended) = (Arc::clone(&shared), Arc::clone(&ended));
        move || instruments::lines::follow(&shared, &ended)
    });
    let served = runtime.block_on(async {
        let listener = listen(&instance)?;
        running.say_ready()?;
        tokio::spawn(follow_host(Arc::clone(&shared)));
        if let Some(collector) = options.otlp.clone() {
            let interval = Duration::from_secs_f64(options.otlp_interval);
            tokio::spawn(export(Arc::clone(&shared), collector, interval));
        }
        tokio::spawn(follow_signals(Arc::clone(&shared), options.policy.clone())?);
        serve(listener, tcp, Arc::clone(&shared)).await;
        Ok(())
    });
    if shared.engine().is_none() {
        // Unloaded: nothing stays.
        let _ = std::fs::remove_file(token_file(&instance.run_dir));
    }
    ended.store(true, Ordering::Relaxed);
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

/// 0660 root:fatpath; without that group, root alone. Closed to others from the first moment.
fn listen(instance: &Instance) -> Result<UnixListener> {
    let path = instance.socket();
    let _ = std::fs::remove_file(&path);
    let before = rustix::process::umask(Mode::from_raw_mode(0o177));
    let listener = UnixListener::bind(&path);
    rustix::process::umask(before);
    let listener = listener.with_context(|| format!("cannot listen on {}", path.display()))?;
    match group_id("fatpath") {
        Some(group) => std::os::unix::fs::chown(&path, None, Some(group))?,
        None => tracing::warn!("no group fatpath: only root may ask (groupadd --system fatpath)"),
    }
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o660))?;
    Ok(listener)
}

pub(crate) fn group_id(name: &str) -> Option<u32> {
    let groups = std::fs::read_to_string("/etc/group").ok()?;
    let fields = groups
        .lines()
        .map(|line| line.split(':').collect::<Vec<_>>());
    let group = fields
        .into_iter()
        .find(|fields| fields.first() == Some(&name))?;
    group.get(2)?.parse().ok()
}

fn follow_events(kernel: &Kernel, shared: &Shared, ended: &AtomicBool) {
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
        ended.load(Ordering::Relaxed)
    };
    let on_event = |event| match event {
        Event::FlowEnd(flow) => log_end(shared, &flow),
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

fn log_end(shared: &Shared, flow: &fatpath_kernel::Flow) {
    let told = Told::ended(flow, &mut held(&shared.cgroups));
    if let Some(said) = held(&shared.flow_log).write(&told) {
        tracing::error!("{said}");
    }
}

/// An interface that comes marks at once, for a flow may be rude over it.
fn follow_interfaces(shared: &Shared, ended: &AtomicBool) {
    let follow = || -> std::io::Result<()> {
        let events = InterfaceEvents::open()?;
        while !ended.load(Ordering::Relaxed) {
            if events.wait(EVENT_TICK)?
                && let Some(engine) = shared.engine().as_mut()
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

async fn follow_host(shared: Arc<Shared>) {
    loop {
        tokio::time::sleep(HOST_INTERVAL).await;
        let owner = Arc::clone(&shared);
        let look = move || owner.engine().as_mut().map(Engine::follow_host);
        match tokio::task::spawn_blocking(look).await {
            Ok(Some(Ok(said))) => said.iter().for_each(|what| tracing::info!("{what}")),
            Ok(Some(Err(error))) => tracing::error!("{error:#}"),
            _ => {}
        }
    }
}

/// SIGHUP: the policy file again, and the flow log's file anew. SIGTERM, SIGINT: the end.
fn follow_signals(
    shared: Arc<Shared>,
    policy: std::path::PathBuf,
) -> Result<impl Future<Output = ()> + Send> {
    let mut hangup = signal(SignalKind::hangup())?;
    let mut end = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let reloading = Arc::clone(&shared);
    let reload = async move {
        while hangup.recv().await.is_some() {
            let (shared, policy) = (Arc::clone(&reloading), policy.clone());
            let _ = tokio::task::spawn_blocking(move || reload(&shared, &policy)).await;
        }
    };
    tokio::spawn(reload);
    tokio::spawn({
        let shared = Arc::clone(&shared);
        async move {
            interrupt.recv().await;
            shared.stop();
        }
    });
    Ok(async move {
        end.recv().await;
        shared.stop();
    })
}

fn reload(shared: &Shared, file: &Path) {
    held(&shared.flow_log).reopen();
    if let Some(log) = &shared.event_log {
        held(log).reopen();
    }
    let name = file.display().to_string();
    let applied =
        engine::read_policy_file(file).and_then(|policy| match shared.engine().as_mut() {
            Some(engine) => engine.apply(policy, &name),
            None => Ok(Applied::default()),
        });
    match applied {
        Ok(applied) => say(file, &applied),
        Err(error) => tracing::error!("{error:#}\nthe policy that was live stays live"),
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The HTTP+JSON API on a Unix socket: whoever may open it may read; only root changes.

use crate::engine::{Applied, Engine, Refused, read_policy};
use crate::flow_log::{Cgroups, Fate, FlowLog, Told};
use crate::instruments::{Instruments, answers, metrics, samples};
use crate::unload::{UnloadReport, take_away};
use axum::extract::connect_info::{ConnectInfo, Connected};
use axum::extract::{DefaultBodyLimit, FromRequestParts, Query, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::serve::IncomingStream;
use axum::{Json, Router};
use fatpath_host::Change;
use fatpath_kernel::{Gated, RudeMark, RudeStatus, Status};
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::UnixListener;
use tokio::sync::Notify;

/// A policy file of this size at most is taken: a little over what the parser takes.
const MAX_BODY_BYTES: usize = 17 << 20;

/// Requests that are under way when the daemon ends get this long.
const GRACE: Duration = Duration::from_secs(2);

/// What the handlers share.
pub(crate) struct Shared {
    engine: Mutex<Option<Engine>>,
    pub(crate) flow_log: Mutex<FlowLog>,
    pub(crate) event_log: Option<Mutex<FlowLog>>,
    pub(crate) cgroups: Mutex<Cgroups>,
    pub(crate) instruments: Arc<Instruments>,
    pub(crate) stop: Notify,
    started: Instant,
}

impl Shared {
    pub(crate) fn new(
        engine: Engine,
        flow_log: FlowLog,
        event_log: Option<FlowLog>,
    ) -> Arc<Shared> {
        Arc::new(Shared {
            instruments: Arc::clone(&engine.instruments),
            engine: Mutex::new(Some(engine)),
            flow_log: Mutex::new(flow_log),
            event_log: event_log.map(Mutex::new),
            cgroups: Mutex::default(),
            stop: Notify::new(),
            started: Instant::now(),
        })
    }

    /// `None` once everything was unloaded.
    pub(crate) fn engine(&self) -> MutexGuard<'_, Option<Engine>> {
        held(&self.engine)
    }
}

/// A panic elsewhere does not stop the daemon from answering.
pub(crate) fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Who is at the other end of a connection.
#[derive(Clone, Copy, Debug)]
struct Peer {
    is_root: bool,
}

impl Connected<IncomingStream<'_, UnixListener>> for Peer {
    fn connect_info(stream: IncomingStream<'_, UnixListener>) -> Peer {
        let credentials = stream.io().peer_cred();
        Peer {
            is_root: credentials.is_ok_and(|c| c.uid() == 0),
        }
    }
}

/// Stands before the body in a handler's arguments: what others send is not even read.
struct OnlyRoot;

impl<S: Send + Sync> FromRequestParts<S> for OnlyRoot {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<OnlyRoot, Failure> {
        let peer = parts.extensions.get::<ConnectInfo<Peer>>();
        match peer.is_some_and(|peer| peer.0.is_root) {
            true => Ok(OnlyRoot),
            false => Err(Failure(
                StatusCode::FORBIDDEN,
                "only root may change anything".into(),
            )),
        }
    }
}

/// `GET /v1/status`
#[derive(Serialize)]
struct StatusAnswer {
    version: &'static str,
    pid: u32,
    uptime_s: u64,
    policy_file: String,
    kernel: Status,
    host_changes: Vec<Change>,
    flow_log: Fate,
    #[serde(skip_serializing_if = "Option::is_none")]
    event_log: Option<Fate>,
}

/// Anything that a handler could not do.
pub(crate) struct Failure(StatusCode, String);

impl Failure {
    pub(crate) fn new(status: StatusCode, error: String) -> Failure {
        Failure(status, error)
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Failure {
        match error.downcast_ref::<Refused>() {
            Some(refused) => Failure(StatusCode::UNPROCESSABLE_ENTITY, refused.to_string()),
            None => Failure(StatusCode::INTERNAL_SERVER_ERROR, format!("{error:#}")),
        }
    }
}

impl From<fatpath_kernel::KernelError> for Failure {
    fn from(error: fatpath_kernel::KernelError) -> Failure {
        anyhow::Error::from(error).into()
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        (self.0, Json(serde_json::json!({ "error": self.1 }))).into_response()
    }
}

pub(crate) type Answer<T> = Result<Json<T>, Failure>;

pub(crate) async fn serve(listener: UnixListener, shared: Arc<Shared>) -> std::io::Result<()> {
    let stop = Arc::clone(&shared);
    let routes = Router::new()
        .route("/v1/status", get(status))
        .route("/v1/flows", get(flows))
        .route("/v1/policy", get(policy))
        .route("/v1/policy/apply", post(apply))
        .route("/v1/rude", get(rude))
        .route("/v1/rude/on", post(rude_on))
        .route("/v1/rude/off", post(rude_off))
        .route("/v1/instruments/flows", get(answers::flows))
        .route("/v1/instruments/flows/{cookie}", get(answers::flow))
        .route("/v1/instruments/why", get(answers::why))
        .route("/v1/instruments/samples", get(samples::samples))
        .route("/metrics", get(metrics::metrics))
        .route("/v1/unload", post(unload))
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(shared)
        .into_make_service_with_connect_info::<Peer>();
    let stopped = Arc::new(Notify::new());
    let stopping = Arc::clone(&stopped);
    let serving = axum::serve(listener, routes).with_graceful_shutdown(async move {
        stop.stop.notified().await;
        stopping.notify_one();
    });
    tokio::select! {
        served = serving => served,
        // A client that never ends its request does not keep the daemon.
        () = async { stopped.notified().await; tokio::time::sleep(GRACE).await } => Ok(()),
    }
}

/// Handlers that touch the kernel run on a thread of their own, one at a time.
async fn on_engine<T: Send + 'static>(
    shared: Arc<Shared>,
    job: impl FnOnce(&mut Engine) -> Result<T, Failure> + Send + 'static,
) -> Answer<T> {
    let run = move || match shared.engine().as_mut() {
        Some(engine) => job(engine),
        None => Err(Failure(StatusCode::GONE, "everything was unloaded".into())),
    };
    let done = tokio::task::spawn_blocking(run).await;
    done.unwrap_or_else(|e| Err(anyhow::Error::from(e).into()))
        .map(Json)
}

async fn status(State(shared): State<Arc<Shared>>) -> Answer<StatusAnswer> {
    let flow_log = held(&shared.flow_log).fate.clone();
    let event_log = shared.event_log.as_ref();
    let event_log = event_log.map(|log| held(log).fate.clone());
    let uptime_s = shared.started.elapsed().as_secs();
    on_engine(shared, move |engine| {
        Ok(StatusAnswer {
            version: env!("CARGO_PKG_VERSION"),
            pid: std::process::id(),
            uptime_s,
            policy_file: engine.policy_file.clone(),
            kernel: engine.kernel.status()?,
            host_changes: engine.host.changes().to_vec(),
            flow_log,
            event_log,
        })
    })
    .await
}

async fn flows(State(shared): State<Arc<Shared>>) -> Answer<serde_json::Value> {
    let names = Arc::clone(&shared);
    on_engine(shared, move |engine| {
        let flows = engine.kernel.flows()?;
        let mut cgroups = held(&names.cgroups);
        let told: Vec<_> = flows
            .iter()
            .map(|flow| Told::live(flow, &mut cgroups))
            .collect();
        Ok(serde_json::to_value(told).map_err(anyhow::Error::from)?)
    })
    .await
}

async fn policy(State(shared): State<Arc<Shared>>) -> Answer<serde_json::Value> {
    on_engine(shared, |engine| {
        Ok(serde_json::to_value(&engine.policy).map_err(anyhow::Error::from)?)
    })
    .await
}

/// `?file=NAME`: what the problems are named after.
#[derive(Deserialize)]
struct FileName {
    file: String,
}

async fn apply(
    State(shared): State<Arc<Shared>>,
    _: OnlyRoot,
    Query(name): Query<FileName>,
    body: axum::body::Bytes,
) -> Answer<Applied> {
    on_engine(shared, move |engine| {
        let policy = read_policy(&body, &name.file).map_err(anyhow::Error::from)?;
        Ok(engine.apply(policy, &name.file)?)
    })
    .await
}

async fn rude(State(shared): State<Arc<Shared>>) -> Answer<RudeStatus> {
    on_engine(shared, |engine| Ok(engine.kernel.rude_status()?)).await
}

/// `?mark=0x200&netns=a,b`
#[derive(Deserialize)]
struct Asked {
    mark: String,
    netns: String,
}

async fn rude_on(
    State(shared): State<Arc<Shared>>,
    _: OnlyRoot,
    Query(asked): Query<Asked>,
) -> Answer<Gated> {
    let mark: RudeMark = asked
        .mark
        .parse()
        .map_err(|allowed| Failure(StatusCode::BAD_REQUEST, format!("mark: {allowed}")))?;
    on_engine(shared, move |engine| {
        let named = asked.netns.split(',').filter(|name| !name.is_empty());
        let named: Vec<String> = named.map(str::to_owned).collect();
        Ok(engine.kernel.open_rude_gate(mark, &named)?)
    })
    .await
}

async fn rude_off(State(shared): State<Arc<Shared>>, _: OnlyRoot) -> Answer<Gated> {
    on_engine(shared, |engine| Ok(engine.kernel.shut_rude_gate()?)).await
}

async fn unload(State(shared): State<Arc<Shared>>, _: OnlyRoot) -> Answer<UnloadReport> {
    let owner = Arc::clone(&shared);
    let run = move || {
        let engine = owner.engine().take();
        let gone = || Failure(StatusCode::GONE, "everything was unloaded".into());
        let engine = engine.ok_or_else(gone)?;
        Ok(take_away(&engine.kernel, engine.host)?)
    };
    let done = tokio::task::spawn_blocking(run).await;
    shared.stop.notify_one();
    done.unwrap_or_else(|e| Err(anyhow::Error::from(e).into()))
        .map(Json)
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The HTTP+JSON API on Unix sockets: by the control socket root changes things, by the others one only reads.
//! Over TCP it is only there when asked for, and only to read (`page`).

use crate::access::UnixSockets;
use crate::answer::{Answer, AnswerTo, Failure};
use crate::archive::{self, Archive};
use crate::capture;
use crate::cgroup_paths::CgroupPaths;
use crate::engine::Engine;
use crate::flow_log::Logs;
use crate::instruments::{Instruments, answers, metrics, samples};
use crate::measure::{Measurements, Refusal, meshes};
use crate::paths::{self, PathsState};
use crate::phases::phases;
use crate::policy_file::read_policy;
use crate::rude::{by_policy, terms};
use crate::state::{DaemonState, ServerInfo, SharedEngine};
use crate::unload::take_away;
use axum::extract::connect_info::ConnectInfo;
use axum::extract::{DefaultBodyLimit, FromRequestParts, Query, State};
use axum::handler::Handler;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use axum::{Json, Router};
use fatpath_api::endpoint::{
    self, ApplyPolicy, Endpoint, ForgetPaths, GetArchive, GetFlowDetail, GetFlowViews, GetFlows,
    GetLatest, GetListing, GetMeshes, GetPathHistory, GetPaths, GetPhases, GetRude, GetRudeGate,
    GetRudePermission, GetStatus, GetWhy, Method, RudeOff, RudeOn, RunTest, TuneFlow, Unload,
};
use fatpath_api::{
    ApplyQuery, ForgetPathsQuery, ForgottenPaths, OPENAPI, RudeMark, RudeOnQuery, RudePermission,
    RudePermissionQuery, RunTestQuery, Status, TuneQuery, TunedFlow,
};
use fatpath_page::{
    MAX_STREAMS, Peer, Streams, TcpAccess, TcpEntrance, Token, UnixEntrance, asset, guard,
    serve_tcp, serve_unix,
};
use fatpath_trace::Traces;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A policy file of this size at most is taken: a little over what the parser takes.
const MAX_BODY_BYTES: usize = 17 << 20;

/// Requests that are under way when the daemon ends get this long.
const GRACE: Duration = Duration::from_secs(2);

/// Stands before the body in a handler's arguments: what others send is not even read.
struct OnlyRoot;

impl<S: Send + Sync> FromRequestParts<S> for OnlyRoot {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<OnlyRoot, Failure> {
        let peer = parts.extensions.get::<ConnectInfo<Peer>>();
        match peer {
            Some(ConnectInfo(Peer::Control { is_root: true })) => Ok(OnlyRoot),
            _ => Err(Failure::new(
                StatusCode::FORBIDDEN,
                "only root may change anything".into(),
            )),
        }
    }
}

/// `GET /v1/openapi.json`
async fn document() -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], OPENAPI)
}

/// Every address that there is.
fn routes() -> Vec<(&'static str, MethodRouter<DaemonState>)> {
    vec![
        ("/", get(asset)),
        ("/assets/{*path}", get(asset)),
        (endpoint::DOCUMENT, get(document)),
        at::<GetStatus, _, _>(status),
        at::<GetFlows, _, _>(flows),
        at::<TuneFlow, _, _>(tune_flow),
        (endpoint::POLICY, get(policy)),
        at::<ApplyPolicy, _, _>(apply),
        at::<GetRude, _, _>(rude),
        at::<GetRudeGate, _, _>(rude_gate),
        at::<GetRudePermission, _, _>(rude_permission),
        at::<RudeOn, _, _>(rude_on),
        at::<RudeOff, _, _>(rude_off),
        at::<Unload, _, _>(unload),
        at::<GetFlowViews, _, _>(answers::flows),
        at::<GetFlowDetail, _, _>(answers::flow),
        at::<GetListing, _, _>(answers::listing),
        at::<GetArchive, _, _>(archive::answers::events),
        at::<GetPathHistory, _, _>(archive::answers::path),
        at::<GetLatest, _, _>(archive::answers::latest),
        at::<GetPaths, _, _>(paths::answers::paths),
        at::<ForgetPaths, _, _>(forget_paths),
        at::<GetPhases, _, _>(phases),
        at::<GetMeshes, _, _>(meshes),
        at::<RunTest, _, _>(run_test),
        at::<GetWhy, _, _>(answers::why),
        (endpoint::LIVE, get(stream)),
        (endpoint::SAMPLES, get(samples::samples)),
        (endpoint::CAPTURE, get(capture::capture)),
        (endpoint::METRICS, get(metrics::metrics)),
    ]
}

/// An endpoint with its handler.
fn at<E: Endpoint, H: Handler<T, DaemonState>, T: 'static>(
    handler: H,
) -> (&'static str, MethodRouter<DaemonState>) {
    let route = match E::METHOD {
        Method::Get => get(handler),
        Method::Post => post(handler),
    };
    (E::PATH, route)
}

/// The routes behind the guard.
fn guarded(
    routes: Vec<(&'static str, MethodRouter<DaemonState>)>,
    token: Option<Arc<Token>>,
    state: &DaemonState,
) -> Router {
    routes
        .into_iter()
        .fold(Router::new(), |router, (path, route)| {
            router.route(path, route)
        })
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .layer(from_fn_with_state(token, guard))
        .with_state(state.clone())
}

/// Answers on the Unix sockets, and over TCP where that is open, until the daemon ends.
///
/// # Errors
/// When a socket accepts nothing any more.
pub(crate) async fn serve(
    sockets: UnixSockets,
    tcp: Option<TcpEntrance>,
    state: DaemonState,
) -> anyhow::Result<()> {
    let shutdown = &state.shutdown;
    let by_unix = |entrance, routes| {
        let router = guarded(routes, None, &state);
        serve_unix(entrance, router, shutdown.clone())
    };
    let control = by_unix(UnixEntrance::Control(sockets.control), routes());
    let view = by_unix(UnixEntrance::View(sockets.view), routes());
    let of_gate = vec![
        at::<GetRudeGate, _, _>(rude_gate),
        at::<GetRudePermission, _, _>(rude_permission),
    ];
    let gate = by_unix(UnixEntrance::Gate(sockets.gate), of_gate);
    let over_tcp = async {
        let Some(tcp) = tcp else { return Ok(()) };
        let Some(TcpAccess { listener, token }) = tcp.opened(shutdown).await else {
            return Ok(());
        };
        let router = guarded(routes(), Some(Arc::new(token)), &state);
        serve_tcp(listener, router, shutdown.clone()).await
    };
    tokio::select! {
        served = async { tokio::try_join!(control, view, gate, over_tcp) } => served.map(drop),
        // A client that never ends its request does not keep the daemon.
        () = async { shutdown.cancelled().await; tokio::time::sleep(GRACE).await } => Ok(()),
    }
}

/// Handlers that touch the kernel run on a thread of their own, one at a time.
async fn on_engine<T: Send + 'static>(
    engine: SharedEngine,
    job: impl FnOnce(&mut Engine) -> Result<T, Failure> + Send + 'static,
) -> Answer<T> {
    let run = move || match engine.lock().as_mut() {
        Some(engine) => job(engine),
        None => Err(Failure::new(
            StatusCode::GONE,
            "everything was unloaded".into(),
        )),
    };
    let done = tokio::task::spawn_blocking(run).await;
    done.unwrap_or_else(|e| Err(anyhow::Error::from(e).into()))
        .map(Json)
}

async fn status(
    State(engine): State<SharedEngine>,
    State(logs): State<Arc<Logs>>,
    State(archive): State<Arc<Archive>>,
    State(measurements): State<Arc<Measurements>>,
    State(traces): State<Arc<Traces>>,
    State(server): State<ServerInfo>,
) -> AnswerTo<GetStatus> {
    let flow_log = logs.flows.status();
    let event_log = logs.events.as_ref();
    let event_log = event_log.map(|log| log.status());
    let page = server.page.lock().clone();
    on_engine(engine, move |engine| {
        Ok(Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            uptime_s: server.started.elapsed().as_secs(),
            policy_file: engine.policy_file.clone(),
            kernel: engine.kernel.status()?,
            rude: Some(engine.kernel.rude_gate()?),
            host_changes: engine.host.changes().to_vec(),
            flow_log,
            event_log,
            archive: archive.status(),
            measure: measurements.status(),
            measured: engine.measured_rules(),
            traces: traces.status(),
            page: page.address,
            page_error: page.error,
        })
    })
    .await
}

async fn flows(
    State(engine): State<SharedEngine>,
    State(cgroups): State<Arc<CgroupPaths>>,
) -> AnswerTo<GetFlows> {
    on_engine(engine, move |engine| {
        let mut flows = engine.kernel.flows()?;
        name_cgroups(&mut flows, &cgroups);
        Ok(flows)
    })
    .await
}

fn name_cgroups(flows: &mut [TunedFlow], cgroups: &CgroupPaths) {
    for flow in flows {
        flow.cgroup = cgroups.path(flow.flow.cgroup_id);
    }
}

async fn policy(State(engine): State<SharedEngine>) -> Answer<serde_json::Value> {
    on_engine(engine, |engine| {
        Ok(serde_json::to_value(&engine.policy).map_err(anyhow::Error::from)?)
    })
    .await
}

async fn apply(
    State(engine): State<SharedEngine>,
    _: OnlyRoot,
    Query(name): Query<ApplyQuery>,
    body: axum::body::Bytes,
) -> AnswerTo<ApplyPolicy> {
    on_engine(engine, move |engine| {
        let policy = read_policy(&body, &name.file).map_err(anyhow::Error::from)?;
        Ok(engine.apply(policy, &name.file)?)
    })
    .await
}

async fn tune_flow(
    State(engine): State<SharedEngine>,
    State(cgroups): State<Arc<CgroupPaths>>,
    _: OnlyRoot,
    Query(asked): Query<TuneQuery>,
) -> AnswerTo<TuneFlow> {
    on_engine(engine, move |engine| {
        let refused = |error: anyhow::Error| {
            Failure::new(StatusCode::UNPROCESSABLE_ENTITY, format!("{error:#}"))
        };
        let mut tuned = engine.tune_flow(&asked).map_err(refused)?;
        name_cgroups(tuned.flow.as_mut_slice(), &cgroups);
        Ok(tuned)
    })
    .await
}

async fn rude(
    State(engine): State<SharedEngine>,
    State(cgroups): State<Arc<CgroupPaths>>,
) -> AnswerTo<GetRude> {
    on_engine(engine, move |engine| {
        let mut status = engine.kernel.rude_status()?;
        name_cgroups(&mut status.flows, &cgroups);
        Ok(status)
    })
    .await
}

async fn rude_gate(State(engine): State<SharedEngine>) -> AnswerTo<GetRudeGate> {
    on_engine(engine, |engine| Ok(engine.kernel.rude_gate()?)).await
}

/// By other sockets nobody knows for whom it is.
async fn rude_permission(
    State(engine): State<SharedEngine>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    Query(asked): Query<RudePermissionQuery>,
) -> AnswerTo<GetRudePermission> {
    let Peer::Gate(asking) = peer else {
        let why = "only gate.sock says who may send without congestion control";
        return Err(Failure::new(StatusCode::FORBIDDEN, why.into()));
    };
    let Json(terms) = on_engine(engine, move |engine| Ok(terms(engine, asking)?)).await?;
    let decide = move || match terms {
        Ok(terms) => by_policy(&terms, asking, asked.destination),
        Err(why) => RudePermission::Refused(why),
    };
    let decided = tokio::task::spawn_blocking(decide).await;
    Ok(Json(decided.map_err(anyhow::Error::from)?))
}

async fn rude_on(
    State(engine): State<SharedEngine>,
    _: OnlyRoot,
    Query(asked): Query<RudeOnQuery>,
) -> AnswerTo<RudeOn> {
    let mark: RudeMark = asked
        .mark
        .parse()
        .map_err(|allowed| Failure::new(StatusCode::BAD_REQUEST, format!("mark: {allowed}")))?;
    on_engine(engine, move |engine| {
        let named: Vec<String> = match asked.netns.as_str() {
            "" => Vec::new(),
            names => names.split(',').map(str::to_owned).collect(),
        };
        Ok(engine.kernel.open_rude_gate(mark, &named)?)
    })
    .await
}

async fn rude_off(State(engine): State<SharedEngine>, _: OnlyRoot) -> AnswerTo<RudeOff> {
    on_engine(engine, |engine| Ok(engine.kernel.close_rude_gate()?)).await
}

async fn forget_paths(
    State(paths): State<Arc<PathsState>>,
    _: OnlyRoot,
    Query(asked): Query<ForgetPathsQuery>,
) -> AnswerTo<ForgetPaths> {
    let prefix = paths::answers::prefix(&asked.prefix)?;
    Ok(Json(ForgottenPaths {
        paths: paths.forget(prefix),
    }))
}

async fn run_test(
    State(measurements): State<Arc<Measurements>>,
    _: OnlyRoot,
    Query(asked): Query<RunTestQuery>,
) -> AnswerTo<RunTest> {
    let run = measurements.run_now(asked.test).await;
    run.map(Json).map_err(|refusal| {
        let status = match refusal {
            Refusal::Unknown => StatusCode::NOT_FOUND,
            Refusal::Running => StatusCode::CONFLICT,
            Refusal::Busy => StatusCode::SERVICE_UNAVAILABLE,
            Refusal::Ending => StatusCode::GONE,
        };
        Failure::new(status, refusal.to_string())
    })
}

/// `GET /v1/instruments/live`
async fn stream(
    State(instruments): State<Arc<Instruments>>,
    State(streams): State<Arc<Streams>>,
    State(shutdown): State<CancellationToken>,
) -> Result<Response, Failure> {
    let stream = streams.open(instruments, shutdown);
    let error = || format!("{} pages follow the flows already", MAX_STREAMS);
    stream.ok_or_else(|| Failure::new(StatusCode::SERVICE_UNAVAILABLE, error()))
}

async fn unload(
    State(engine): State<SharedEngine>,
    State(shutdown): State<CancellationToken>,
    _: OnlyRoot,
) -> AnswerTo<Unload> {
    let run = move || {
        let engine = engine.lock().take();
        let gone = || Failure::new(StatusCode::GONE, "everything was unloaded".into());
        let engine = engine.ok_or_else(gone)?;
        Ok(take_away(&engine.kernel, engine.host)?)
    };
    let done = tokio::task::spawn_blocking(run).await;
    shutdown.cancel();
    done.unwrap_or_else(|e| Err(anyhow::Error::from(e).into()))
        .map(Json)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_address_is_in_the_document_and_no_other() {
        let document: serde_json::Value = serde_json::from_str(OPENAPI).unwrap();
        let described: BTreeSet<String> = document["paths"]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect();
        let there = routes()
            .into_iter()
            .map(|(path, _)| path.replace("{*", "{"))
            .collect();
        assert_eq!(described, there);
    }
}

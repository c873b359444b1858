// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the API answers about the instruments.

use super::Instruments;
use crate::answer::{Answer, AnswerTo, Failure};
use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use fatpath_api::endpoint::{GetFlowDetail, GetFlowViews, GetListing, GetWhy};
use fatpath_api::{FlowsQuery, ListingQuery, Why};
use fatpath_estats::listing::{self, Column};
use fatpath_policy::Prefix;
use std::sync::Arc;

/// `GET /v1/instruments/flows`
pub(crate) async fn flows(State(instruments): State<Arc<Instruments>>) -> AnswerTo<GetFlowViews> {
    aside(move || instruments.views()).await
}

/// `GET /v1/instruments/listing?by=COLUMN&filter=TEXT&first=N&count=N...`
pub(crate) async fn listing(
    State(instruments): State<Arc<Instruments>>,
    Query(wanted): Query<ListingQuery>,
) -> AnswerTo<GetListing> {
    if Column::named(&wanted.by).is_none() {
        let names = listing::COLUMNS.map(|column| column.name).join(", ");
        let error = format!("by={}: the columns are {names}", wanted.by);
        return Err(Failure::new(StatusCode::BAD_REQUEST, error));
    }
    aside(move || instruments.listing(&wanted)).await
}

/// `GET /v1/instruments/flows/{cookie}`
pub(crate) async fn flow(
    State(instruments): State<Arc<Instruments>>,
    Path(cookie): Path<u64>,
) -> AnswerTo<GetFlowDetail> {
    let detail = instruments.detail(cookie);
    let unknown = || Failure::new(StatusCode::NOT_FOUND, format!("no flow {cookie}"));
    detail.map(Json).ok_or_else(unknown)
}

/// The prefix that a query asks for.
pub(crate) fn prefix_of(query: &FlowsQuery) -> Result<Option<Prefix>, Failure> {
    query.prefix.as_deref().map(prefix).transpose()
}

/// `GET /v1/instruments/why`
pub(crate) async fn why(
    State(instruments): State<Arc<Instruments>>,
    Query(asked): Query<FlowsQuery>,
) -> AnswerTo<GetWhy> {
    let prefix = prefix_of(&asked)?;
    let is_meant = move |why: &Why| {
        asked.flow.is_none_or(|cookie| why.flow.cookie == cookie)
            && prefix.is_none_or(|prefix| prefix.contains(why.flow.remote.ip()))
    };
    aside(move || {
        let mut whys = instruments.whys();
        whys.retain(is_meant);
        whys
    })
    .await
}

fn prefix(text: &str) -> Result<Prefix, Failure> {
    let bad = |e: fatpath_policy::PrefixError| Failure::new(StatusCode::BAD_REQUEST, e.to_string());
    text.parse().map_err(bad)
}

/// Twenty thousand flows take a while to put together: other requests do not wait for it.
async fn aside<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> Answer<T> {
    let done = tokio::task::spawn_blocking(job).await;
    Ok(Json(done.map_err(anyhow::Error::from)?))
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the API answers about paths.

use super::{PathsState, now_us, overlap};
use crate::answer::{AnswerTo, Failure};
use axum::Json;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use fatpath_api::endpoint::GetPaths;
use fatpath_api::{LearnedPath, LearnedPaths, PathEvidence, PathState, PathsQuery};
use fatpath_archive::rfc3339;
use fatpath_archive::store::parse_prefix;
use fatpath_path::{Choice, Evidence, Host, Path, PathKey};
use fatpath_policy::AutoMode;
use ipnet::IpNet;
use std::sync::Arc;

const DEFAULT_PATHS: usize = 1_000;
const MOST_PATHS: usize = 65_536;
/// About 6 MB.
const MOST_WITH_EVIDENCE: usize = 1_000;

/// `GET /v1/paths`
pub(crate) async fn paths(
    State(state): State<Arc<PathsState>>,
    Query(asked): Query<PathsQuery>,
) -> AnswerTo<GetPaths> {
    let limit = asked.limit.unwrap_or(DEFAULT_PATHS);
    let most = match asked.evidence {
        true => MOST_WITH_EVIDENCE,
        false => MOST_PATHS,
    };
    if !(1..=most).contains(&limit) {
        let error = format!("limit is 1 to {most}");
        return Err(Failure::new(StatusCode::BAD_REQUEST, error));
    }
    let prefix = asked.prefix.as_deref().map(prefix).transpose()?;
    // Of many paths it takes a second.
    let wanted = Wanted {
        prefix,
        limit,
        evidence: asked.evidence,
    };
    let learned = tokio::task::spawn_blocking(move || learned(&state, &wanted)).await;
    Ok(Json(learned.map_err(anyhow::Error::from)?))
}

/// What is asked for.
struct Wanted {
    prefix: Option<IpNet>,
    limit: usize,
    evidence: bool,
}

fn learned(state: &PathsState, wanted: &Wanted) -> LearnedPaths {
    let (mode, host, now_us) = (state.mode(), state.host(), now_us());
    let paths = state.paths.lock();
    let is_in = |key: &PathKey| {
        let prefix = wanted.prefix.as_ref();
        prefix.is_none_or(|prefix| overlap(*prefix, key.prefix))
    };
    let found = paths.iter().filter(|(key, _)| is_in(key));
    let shown = found.filter_map(|(key, path)| {
        let shown = shown(key, path, mode, &host, now_us)?;
        let told_by = wanted.evidence.then(|| path.evidence().map(told).collect());
        Some(LearnedPath {
            told_by: told_by.unwrap_or_default(),
            ..shown
        })
    });
    LearnedPaths {
        mode: mode.name().to_owned(),
        known: paths.len(),
        paths: shown.take(wanted.limit).collect(),
    }
}

/// A prefix, or an address.
pub(crate) fn prefix(text: &str) -> Result<IpNet, Failure> {
    let error = || format!("prefix={text}: give a prefix (192.0.2.0/24) or an address");
    parse_prefix(text).ok_or_else(|| Failure::new(StatusCode::BAD_REQUEST, error()))
}

fn shown(
    key: PathKey,
    path: &Path,
    mode: AutoMode,
    host: &Host,
    now_us: i64,
) -> Option<LearnedPath> {
    let known = path.estimate()?;
    let quarantine = path.guard.quarantine(now_us);
    let Choice { profile, reasons } = path.choice(host, host.trust(&key))?;
    // What flows have may be a step off what they would get now.
    let given = path.guard.profile().filter(|_| mode == AutoMode::Tune);
    let state = match (quarantine, mode) {
        (Some(_), _) => PathState::Quarantined,
        _ if profile.is_empty() => PathState::AsHost,
        (_, AutoMode::Tune) => PathState::Tuned,
        _ => PathState::Observed,
    };
    let taken_back = quarantine.map(|quarantine| quarantine.reason.to_string());
    Some(LearnedPath {
        local: key.local,
        prefix: key.prefix.to_string(),
        flows: path.flows,
        epochs: path.epochs,
        evidence: known.flows,
        seen: rfc3339(known.seen_us),
        base_rtt_us: known.base_rtt_us.value,
        base_rtt_doubt: known.base_rtt_us.doubt,
        high_rtt_us: known.high_rtt_us,
        rate_bps: known.rate.map(|rate| rate.bps.value),
        rate_doubt: known.rate.map(|rate| rate.bps.doubt),
        rate_limit: known
            .rate
            .and_then(|rate| rate.limit)
            .map(|limit| limit.name().to_owned()),
        loss: known.loss.map(|loss| loss.name().to_owned()),
        retransmitted_share: known.retransmitted_share,
        settings: given.unwrap_or(&profile).to_string(),
        reasons: taken_back.into_iter().chain(reasons).collect(),
        state,
        quarantined_until: quarantine.map(|quarantine| rfc3339(quarantine.until_us)),
        gain: path.gain(),
        told_by: Vec::new(),
    })
}

fn told(flow: &Evidence) -> PathEvidence {
    PathEvidence {
        began: rfc3339(flow.begin_us),
        seen: rfc3339(flow.seen_us),
        bytes: flow.bytes,
        min_rtt_us: flow.min_rtt_us,
        mean_rtt_us: flow.mean_rtt_us,
        rate_bps: flow.rate_bps,
        limit: flow.limit.map(|limit| limit.name().to_owned()),
        loss: flow.loss.map(|loss| loss.name().to_owned()),
        sent_pkts: flow.sent_pkts,
        retransmitted_pkts: flow.retransmitted_pkts,
        is_tuned: flow.is_given,
    }
}

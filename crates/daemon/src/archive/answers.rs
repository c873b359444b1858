// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the API answers about the archive. The databases are read, whoever writes them; each answer is bounded.

use super::Archive;
use super::spool_worker::with_cause;
use crate::answer::{Answer, AnswerTo, Failure};
use axum::Json;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use fatpath_api::endpoint::{GetArchive, GetLatest, GetPathHistory};
use fatpath_api::{
    ArchiveCursor, ArchivePage, ArchiveQuery, ArchivedEvent, HistoryInterval, LatestPage,
    LatestQuery, LatestValue, MeasureSummary, PathHistory, PathHistoryQuery, PathInterval,
};
use fatpath_archive::store::{
    self, PathQuery, Record, Rollup, Store, StoreError, Width, parse_prefix, path_history,
};
use fatpath_archive::{Kind, LatestEvent, rfc3339};
use fatpath_clock::now_us;
use ipnet::IpNet;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

const DAY_US: i64 = 86_400_000_000;
const DEFAULT_EVENTS: usize = 100;
const MOST_EVENTS: usize = 1_000;
/// Events of one time that may lie on a page before.
const MOST_SKIPPED: usize = 10_000;
/// Of a history: 7 days by minute, which is more than 400 days by hour.
const MOST_INTERVALS: i64 = 7 * 24 * 60;
const MOST_MARKS: usize = 200;
/// For a server's answer.
const DEADLINE: Duration = Duration::from_secs(10);

/// A question may read much: so many are answered at once, and others wait.
static AT_ONCE: Semaphore = Semaphore::const_new(2);

/// `GET /v1/archive/events`
pub(crate) async fn events(
    State(archive): State<Arc<Archive>>,
    Query(asked): Query<ArchiveQuery>,
) -> AnswerTo<GetArchive> {
    let (query, skip) = event_query(asked).map_err(wrong)?;
    of_store(&archive, move |store| {
        Ok(page(store.query(&query)?, query.limit - skip, skip))
    })
    .await
}

/// `GET /v1/archive/path`
pub(crate) async fn path(
    State(archive): State<Arc<Archive>>,
    Query(asked): Query<PathHistoryQuery>,
) -> AnswerTo<GetPathHistory> {
    let query = path_query(&asked).map_err(wrong)?;
    of_store(&archive, move |store| {
        Ok(history_answer(&path_history(store, &query)?))
    })
    .await
}

/// `GET /v1/archive/latest`
pub(crate) async fn latest(
    State(archive): State<Arc<Archive>>,
    Query(asked): Query<LatestQuery>,
) -> AnswerTo<GetLatest> {
    let query = latest_query(asked).map_err(wrong)?;
    let (page, next) = archive.latest.lock().page(&query);
    let values = page.iter().map(|latest| latest_value(latest)).collect();
    Ok(Json(LatestPage { values, next }))
}

fn wrong(error: String) -> Failure {
    Failure::new(StatusCode::BAD_REQUEST, error)
}

/// What is read from the store; so many questions at once.
pub(crate) async fn of_store<T: Send + 'static>(
    archive: &Archive,
    read: impl FnOnce(&dyn Store) -> Result<T, StoreError> + Send + 'static,
) -> Answer<T> {
    let failure = |error| Failure::new(StatusCode::INTERNAL_SERVER_ERROR, error);
    let location = archive.location().map_err(failure)?;
    // It is never closed.
    let _turn = AT_ONCE.acquire().await;
    let read = tokio::task::spawn_blocking(move || read(&*location.open_within(DEADLINE)?)).await;
    let read = read.map_err(anyhow::Error::from)?;
    read.map(Json).map_err(|error| failure(with_cause(&error)))
}

/// The query, whose limit includes what is skipped, and how many that is.
fn event_query(asked: ArchiveQuery) -> Result<(store::Query, usize), String> {
    let until_us = asked.until_us.unwrap_or_else(now_us);
    let since_us = asked.since_us.unwrap_or(until_us.saturating_sub(DAY_US));
    let limit = asked.limit.unwrap_or(DEFAULT_EVENTS);
    let skip = asked.skip.unwrap_or_default();
    if !(1..=MOST_EVENTS).contains(&limit) || skip > MOST_SKIPPED {
        return Err(format!(
            "limit is 1 to {MOST_EVENTS}, skip at most {MOST_SKIPPED}"
        ));
    }
    let query = store::Query {
        prefix: asked.prefix.as_deref().map(prefix).transpose()?,
        host: asked.host,
        rule: asked.rule,
        kinds: kinds(asked.kinds.as_deref())?,
        limit: limit + skip,
        ..store::Query::between(since_us, until_us)
    };
    Ok((query, skip))
}

fn latest_query(asked: LatestQuery) -> Result<fatpath_archive::LatestQuery, String> {
    let limit = asked.limit.unwrap_or(DEFAULT_EVENTS);
    if !(1..=MOST_EVENTS).contains(&limit) {
        return Err(format!("limit is 1 to {MOST_EVENTS}"));
    }
    Ok(fatpath_archive::LatestQuery {
        kinds: kinds(asked.kinds.as_deref())?,
        prefix: asked.prefix.as_deref().map(prefix).transpose()?,
        after: asked.after,
        limit,
    })
}

/// Their names, with commas between; none is all.
fn kinds(names: Option<&str>) -> Result<Vec<Kind>, String> {
    let names = names.into_iter().flat_map(|names| names.split(','));
    let kinds = names.map(|name| {
        name.parse()
            .map_err(|error| format!("kinds={name}: {error}"))
    });
    kinds.collect()
}

fn path_query(asked: &PathHistoryQuery) -> Result<PathQuery, String> {
    let width = match asked.by {
        HistoryInterval::Minute => Width::Minute,
        HistoryInterval::Hour => Width::Hour,
    };
    let until_us = asked.until_us.unwrap_or_else(now_us);
    let since_us = asked
        .since_us
        .unwrap_or(until_us.saturating_sub(7 * DAY_US));
    let intervals = until_us.saturating_sub(since_us) / (width.seconds() * 1_000_000);
    if intervals > MOST_INTERVALS {
        return Err(format!(
            "{intervals} intervals; ask for at most {MOST_INTERVALS}: less time, or by=hour"
        ));
    }
    Ok(PathQuery {
        prefix: prefix(&asked.prefix)?,
        width,
        since_us,
        until_us,
        most_marks: MOST_MARKS,
    })
}

fn prefix(text: &str) -> Result<IpNet, String> {
    let prefix = parse_prefix(text);
    prefix.ok_or_else(|| format!("{text}: give a prefix (192.0.2.0/24) or an address"))
}

/// The page of `limit` events among the newest `limit + skip`, which are in the order of time.
fn page(mut found: Vec<Record>, limit: usize, skip: usize) -> ArchivePage {
    let is_full = found.len() == limit + skip;
    let oldest_us = found.first().map(|record| record.event.time_us);
    let next = oldest_us.filter(|_| is_full).map(|oldest_us| {
        let times = found.iter().map(|record| record.event.time_us);
        ArchiveCursor {
            until_us: oldest_us.saturating_add(1),
            skip: times.filter(|time_us| *time_us == oldest_us).count(),
        }
    });
    found.truncate(found.len().saturating_sub(skip));
    ArchivePage {
        events: found.iter().map(archived_event).collect(),
        next,
    }
}

/// A record as the API and the command line give it.
pub fn archived_event(record: &Record) -> ArchivedEvent {
    let event = &record.event;
    ArchivedEvent {
        time: rfc3339(event.time_us),
        time_us: event.time_us,
        host: record.origin.host.clone(),
        boot: record.origin.boot.clone(),
        sequence: record.sequence,
        kind: record.kind.name().to_owned(),
        name: event.name.clone(),
        peer: event.peer,
        rule: event.rule.clone(),
        value: event.value,
        weight: event.weight,
        body: serde_json::from_str(&event.body).unwrap_or_default(),
    }
}

fn latest_value(latest: &LatestEvent) -> LatestValue {
    let event = &latest.event;
    LatestValue {
        of: latest.of.clone(),
        time: rfc3339(event.time_us),
        time_us: event.time_us,
        kind: latest.kind.name().to_owned(),
        name: event.name.clone(),
        peer: event.peer,
        rule: event.rule.clone(),
        value: event.value,
        weight: event.weight,
        body: serde_json::from_str(&event.body).unwrap_or_default(),
    }
}

/// A history as the API and the command line give it.
pub fn history_answer(history: &store::PathHistory) -> PathHistory {
    let mut intervals = BTreeMap::<i64, BTreeMap<String, MeasureSummary>>::new();
    for ((begin_s, measure), rollup) in &history.measured {
        let measures = intervals.entry(*begin_s).or_default();
        measures.insert(measure.name().to_owned(), summary(rollup));
    }
    let interval = |(begin_s, measures)| PathInterval {
        begin: rfc3339(begin_s * 1_000_000),
        measures,
    };
    PathHistory {
        intervals: intervals.into_iter().map(interval).collect(),
        events: history.marks.iter().map(archived_event).collect(),
    }
}

fn summary(rollup: &Rollup) -> MeasureSummary {
    let quantile = |share| rollup.histogram.quantile(share);
    MeasureSummary {
        n: rollup.n,
        sum_ln: rollup.sum_ln,
        sum_ln2: rollup.sum_ln2,
        p10: quantile(0.1),
        p50: quantile(0.5),
        p90: quantile(0.9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fatpath_archive::store::{Batch, SqliteStore};
    use fatpath_archive::{Event, Origin};

    /// Seven events; the third to the fifth have one time.
    const TIMES_US: [i64; 7] = [10, 20, 30, 30, 30, 40, 50];

    fn filled(folder: &std::path::Path) -> SqliteStore {
        let event = |(sequence, time_us): (u64, &i64)| {
            let event = Event {
                time_us: *time_us,
                name: "finding".into(),
                peer: None,
                rule: None,
                value: None,
                weight: 1,
                body: "{}".into(),
            };
            (sequence, event)
        };
        let mut store = SqliteStore::at(folder);
        let batch = Batch {
            origin: Origin {
                host: "h".into(),
                boot: "b".into(),
            },
            kind: Kind::Event,
            events: (1..).zip(&TIMES_US).map(event).collect(),
        };
        store.put(&batch).unwrap();
        store
    }

    #[test]
    fn pages_have_each_event_once() {
        let folder = tempfile::tempdir().unwrap();
        let store = filled(folder.path());
        for limit in 1..=8 {
            let (mut seen, mut pages) = (Vec::new(), 0);
            let mut cursor = Some(ArchiveCursor {
                until_us: 100,
                skip: 0,
            });
            while let Some(ArchiveCursor { until_us, skip }) = cursor {
                let asked = ArchiveQuery {
                    since_us: Some(0),
                    until_us: Some(until_us),
                    limit: Some(limit),
                    skip: Some(skip),
                    ..ArchiveQuery::default()
                };
                let (query, skip) = event_query(asked).unwrap();
                let page = page(store.query(&query).unwrap(), limit, skip);
                assert!(page.events.len() <= limit);
                seen.extend(page.events.iter().map(|event| event.sequence));
                cursor = page.next;
                pages += 1;
                assert!(pages <= 8, "limit {limit}: {seen:?}");
            }
            seen.sort_unstable();
            assert_eq!(seen, [1, 2, 3, 4, 5, 6, 7], "limit {limit}");
        }
    }

    #[test]
    fn a_question_is_bounded() {
        let with = |limit, skip, kinds: Option<&str>| {
            event_query(ArchiveQuery {
                limit,
                skip,
                kinds: kinds.map(str::to_owned),
                ..ArchiveQuery::default()
            })
        };
        assert!(with(Some(1_000), None, Some("flow,test")).is_ok());
        assert!(with(Some(1_001), None, None).is_err());
        assert!(with(Some(0), None, None).is_err());
        assert!(with(None, Some(10_001), None).is_err());
        let unknown = with(None, None, Some("flow,web")).unwrap_err();
        assert!(unknown.starts_with("kinds=web: give sample"), "{unknown}");
        let history = |by, days: i64| {
            path_query(&PathHistoryQuery {
                prefix: "192.0.2.1".into(),
                by,
                since_us: Some(0),
                until_us: Some(days * DAY_US),
            })
        };
        assert!(history(HistoryInterval::Hour, 400).is_ok());
        assert!(history(HistoryInterval::Minute, 7).is_ok());
        assert!(history(HistoryInterval::Minute, 30).is_err());
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `GET /v1/instruments/live`: what changes, as server-sent events.
//!
//! Each stream asks the table what changed since it last asked, and only when its client took what came
//! before. So a slow client gets the latest of each flow, is told how long it was behind (`late`), and nothing
//! is kept for it but the frames of one answer.
//!
//! | event | data |
//! |---|---|
//! | `reset` | `{}`: what was sent before no longer counts |
//! | `flows` | rows of flows that are new or changed |
//! | `gone` | cookies of flows that are no longer known |
//! | `lost` | counts of samples that never came, when one changed |
//! | `late` | `{ms}` since the frame before: the client was slow |

use super::row::FlowRow;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use fatpath_estats::Changes;
use futures_util::stream;
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, sleep_until};

/// Streams at once; each costs the daemon a look at the table four times a second.
const MAX_STREAMS: usize = 32;

/// Between two looks at the table.
const INTERVAL: Duration = Duration::from_millis(250);

/// A client that takes longer for a frame is told so.
const LATE: Duration = Duration::from_secs(1);

/// A frame of this many rows is about 200 KiB.
const ROWS_A_FRAME: usize = 500;

/// Counts by name.
pub(crate) type Lost = BTreeMap<&'static str, u64>;

/// What streams read: the table's changes since a mark, and what was lost.
pub(crate) trait Source: Send + Sync + 'static {
    fn changes(&self, mark: u64) -> Changes;
    fn lost(&self) -> Lost;
}

/// The streams that there are.
pub(crate) struct Streams {
    room: Arc<Semaphore>,
}

impl Default for Streams {
    fn default() -> Streams {
        Streams {
            room: Arc::new(Semaphore::new(MAX_STREAMS)),
        }
    }
}

impl Streams {
    /// A stream until the client goes or `stop` becomes true; `None`: there are too many.
    pub(crate) fn open<S: Source>(
        &self,
        source: Arc<S>,
        stop: watch::Receiver<bool>,
    ) -> Option<Response> {
        let follower = Follower {
            source,
            stop,
            mark: 0,
            lost: None,
            due: VecDeque::new(),
            looked: None,
            _room: Arc::clone(&self.room).try_acquire_owned().ok()?,
        };
        let events = stream::unfold(follower, Follower::next);
        Some(
            Sse::new(events)
                .keep_alive(KeepAlive::default())
                .into_response(),
        )
    }
}

/// One client's place in what changes.
struct Follower<S> {
    source: Arc<S>,
    stop: watch::Receiver<bool>,
    mark: u64,
    lost: Option<Lost>,
    due: VecDeque<Event>,
    looked: Option<Instant>,
    _room: OwnedSemaphorePermit,
}

impl<S: Source> Follower<S> {
    async fn next(mut self) -> Option<(Result<Event, Infallible>, Follower<S>)> {
        loop {
            if let Some(event) = self.due.pop_front() {
                return Some((Ok(event), self));
            }
            let next = self
                .looked
                .map_or_else(Instant::now, |looked| looked + INTERVAL);
            tokio::select! {
                () = sleep_until(next) => {}
                _ = self.stop.wait_for(|stop| *stop) => return None,
            }
            self.look().await?;
        }
    }

    /// Rows are made on another thread: 20,000 of them take longer than others should wait.
    async fn look(&mut self) -> Option<()> {
        let since = self
            .looked
            .replace(Instant::now())
            .map(|looked| looked.elapsed());
        let (source, mark) = (Arc::clone(&self.source), self.mark);
        let look = move || {
            let changes = source.changes(mark);
            let is_new = since.is_none() || changes.is_broken;
            (changes.mark, events(&changes, is_new), source.lost())
        };
        let (mark, events, lost) = tokio::task::spawn_blocking(look).await.ok()?;
        self.mark = mark;
        if let Some(late) = since.filter(|since| *since >= LATE) {
            self.due.push_back(event(
                "late",
                &serde_json::json!({ "ms": late.as_millis() }),
            ));
        }
        self.due.extend(events);
        if self.lost.as_ref() != Some(&lost) {
            self.due.push_back(event("lost", &lost));
            self.lost = Some(lost);
        }
        Some(())
    }
}

/// `is_new`: the client knows nothing, or what it knows cannot be mended.
fn events(changes: &Changes, is_new: bool) -> Vec<Event> {
    let mut events = Vec::new();
    if is_new {
        events.push(event("reset", &serde_json::json!({})));
    }
    let rows: Vec<FlowRow<'_>> = changes.flows.iter().map(FlowRow::from).collect();
    events.extend(rows.chunks(ROWS_A_FRAME).map(|rows| event("flows", &rows)));
    if !changes.gone.is_empty() {
        events.push(event("gone", &changes.gone));
    }
    events
}

fn event(name: &str, data: &impl Serialize) -> Event {
    let event = Event::default().event(name);
    event
        .json_data(data)
        .expect("rows and counts have no maps with other keys than text")
}

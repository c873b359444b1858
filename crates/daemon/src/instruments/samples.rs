// SPDX-License-Identifier: MIT OR Apache-2.0
//! `GET /v1/instruments/samples`: every sample of chosen flows, one JSON line each, as they come.
//!
//! `{"sample": {...}}` is one; `{"lost": N}` says that so many samples of any flows passed while the client was
//! slow. What waits for a client is one batch, and the samples that all clients share. So many may follow at once;
//! the next is told so.

use super::Instruments;
use super::answers::prefix_of;
use crate::answer::Failure;
use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use fatpath_api::{FlowsQuery, Sample};
use fatpath_policy::Prefix;
use futures_util::stream;
use serde::Serialize;
use std::convert::Infallible;
use std::sync::Arc;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// Followers at once; each costs the daemon a line of text a sample.
const MAX_RECORDINGS: usize = 16;

/// Lines are sent together up to this size.
const BATCH_BYTES: usize = 64 << 10;

/// A [`SampleLine`](fatpath_api::SampleLine), without a copy.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Shown<'s> {
    Sample(&'s Sample),
    Lost(u64),
}

/// Room for those who follow.
pub(crate) struct Recordings(Arc<Semaphore>);

impl Default for Recordings {
    fn default() -> Recordings {
        Recordings(Arc::new(Semaphore::new(MAX_RECORDINGS)))
    }
}

impl Recordings {
    fn place(&self) -> Result<OwnedSemaphorePermit, Failure> {
        let place = Arc::clone(&self.0).try_acquire_owned();
        let error = format!("{MAX_RECORDINGS} traces run already");
        place.map_err(|_| Failure::new(StatusCode::SERVICE_UNAVAILABLE, error))
    }
}

/// `GET /v1/instruments/samples?flow=COOKIE|prefix=P`; without either all flows.
pub(crate) async fn samples(
    State(instruments): State<Arc<Instruments>>,
    State(recordings): State<Arc<Recordings>>,
    State(shutdown): State<CancellationToken>,
    Query(asked): Query<FlowsQuery>,
) -> Result<Response, Failure> {
    let follower = Follower {
        flow: asked.flow,
        prefix: prefix_of(&asked)?,
        _place: recordings.place()?,
        samples: instruments.subscribe(),
        shutdown,
    };
    Ok(follower.answer())
}

struct Follower {
    samples: Receiver<Arc<Sample>>,
    flow: Option<u64>,
    prefix: Option<Prefix>,
    shutdown: CancellationToken,
    _place: OwnedSemaphorePermit,
}

impl Follower {
    fn answer(self) -> Response {
        let batches = stream::unfold(self, Follower::next);
        let kind = [(CONTENT_TYPE, "application/x-ndjson")];
        (kind, Body::from_stream(batches)).into_response()
    }

    /// Waits for a line, and takes with it what is there already.
    async fn next(mut self) -> Option<(Result<Bytes, Infallible>, Follower)> {
        let mut lines = Vec::new();
        while lines.is_empty() {
            let received = tokio::select! {
                received = self.samples.recv() => received,
                () = self.shutdown.cancelled() => return None,
            };
            match received {
                Ok(sample) => self.add(&mut lines, &sample),
                Err(RecvError::Lagged(lost)) => push(&mut lines, &Shown::Lost(lost)),
                Err(RecvError::Closed) => return None,
            }
        }
        while lines.len() < BATCH_BYTES {
            match self.samples.try_recv() {
                Ok(sample) => self.add(&mut lines, &sample),
                Err(TryRecvError::Lagged(lost)) => push(&mut lines, &Shown::Lost(lost)),
                Err(_) => break,
            }
        }
        Some((Ok(lines.into()), self))
    }

    fn add(&self, lines: &mut Vec<u8>, sample: &Sample) {
        let is_chosen = self.flow.is_none_or(|cookie| sample.flow.cookie == cookie)
            && self
                .prefix
                .is_none_or(|prefix| prefix.contains(sample.flow.remote.ip().to_canonical()));
        if is_chosen {
            push(lines, &Shown::Sample(sample));
        }
    }
}

fn push(lines: &mut Vec<u8>, line: &Shown) {
    // Neither a Vec nor a sample gives a reason to fail.
    if serde_json::to_writer(&mut *lines, line).is_ok() {
        lines.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fatpath_api::{SampleKind, SampleLine};
    use fatpath_estats::testing;
    use http_body_util::BodyExt;
    use tokio::sync::broadcast;

    fn sample(cookie: u64, remote: &str, seconds: u64) -> Arc<Sample> {
        let after_ns = seconds * testing::SECOND;
        let mut sample = testing::sample(cookie, SampleKind::Interval, after_ns);
        sample.flow.remote = remote.parse().unwrap();
        Arc::new(sample)
    }

    fn of_all(samples: &broadcast::Sender<Arc<Sample>>, shutdown: &CancellationToken) -> Follower {
        Follower {
            samples: samples.subscribe(),
            flow: None,
            prefix: None,
            shutdown: shutdown.clone(),
            _place: Recordings::default().place().unwrap_or_else(|_| panic!()),
        }
    }

    /// The lines that a client gets at once.
    fn lines(follower: Follower) -> Vec<SampleLine> {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let next = runtime.unwrap().block_on(follower.next());
        let batch = next.unwrap().0.unwrap();
        let lines = serde_json::Deserializer::from_slice(&batch).into_iter();
        lines.map(Result::unwrap).collect()
    }

    #[test]
    fn only_chosen_flows_are_told_of() {
        let (samples, shutdown) = (broadcast::Sender::new(8), CancellationToken::new());
        let (by_flow, by_prefix) = (
            Follower {
                flow: Some(2),
                ..of_all(&samples, &shutdown)
            },
            Follower {
                prefix: Some("192.0.2.0/24".parse().unwrap()),
                ..of_all(&samples, &shutdown)
            },
        );
        for (cookie, remote) in [
            (1, "192.0.2.1:1"),
            (2, "198.51.100.1:1"),
            (3, "[::ffff:192.0.2.9]:1"),
        ] {
            samples.send(sample(cookie, remote, 1)).unwrap();
        }
        let cookies = |lines: Vec<SampleLine>| -> Vec<u64> {
            let of = |line| match line {
                SampleLine::Sample(sample) => sample.flow.cookie,
                SampleLine::Lost(_) => 0,
            };
            lines.into_iter().map(of).collect()
        };
        assert_eq!(cookies(lines(by_flow)), [2]);
        assert_eq!(cookies(lines(by_prefix)), [1, 3]);
    }

    #[test]
    fn a_slow_client_is_told_what_it_missed() {
        let (samples, shutdown) = (broadcast::Sender::new(4), CancellationToken::new());
        let follower = of_all(&samples, &shutdown);
        for seconds in 0..10 {
            samples.send(sample(1, "192.0.2.1:1", seconds)).unwrap();
        }
        let lines = lines(follower);
        assert!(matches!(lines[0], SampleLine::Lost(6)), "{lines:?}");
        let SampleLine::Sample(last) = lines.last().unwrap() else {
            panic!("{lines:?}")
        };
        assert_eq!((lines.len(), last.elapsed_s()), (5, 9.0));
    }

    #[test]
    fn so_many_follow_and_the_next_is_told() {
        let recordings = Recordings::default();
        let places: Vec<_> = (0..MAX_RECORDINGS).map(|_| recordings.place()).collect();
        assert!(places.iter().all(Result::is_ok));
        let refused = recordings.place().unwrap_err().into_response();
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(refused.headers()["retry-after"], "10");
        drop(places);
        assert!(recordings.place().is_ok());
    }

    /// A body is asked for more only when what it gave was taken.
    #[tokio::test]
    async fn nothing_is_made_for_a_client_that_takes_nothing_and_all_end_with_the_daemon() {
        let (samples, shutdown) = (broadcast::Sender::new(64), CancellationToken::new());
        let mut body = of_all(&samples, &shutdown).answer().into_body();
        for seconds in 0..100_000 {
            samples.send(sample(1, "192.0.2.1:1", seconds)).unwrap();
        }
        // The channel kept its 64, and the first batch says what it let go.
        let batch = body.frame().await.unwrap().unwrap().into_data().unwrap();
        let line = r#"{"lost":99936}"#;
        assert!(batch.starts_with(line.as_bytes()), "{batch:?}");
        assert!(batch.len() < 2 * BATCH_BYTES, "{}", batch.len());
        while !samples.is_empty() {
            body.frame().await.unwrap().unwrap();
        }
        shutdown.cancel();
        assert!(body.frame().await.is_none());
    }
}

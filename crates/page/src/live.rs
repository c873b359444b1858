// SPDX-License-Identifier: MIT OR Apache-2.0
//! `GET /v1/instruments/live`: what changes, as server-sent events.
//!
//! Each stream asks the table what changed since it last asked, and only when its client took what came
//! before. So a slow client gets the latest of each flow, is told how long it was behind (`late`), and nothing
//! is kept for it but the names of flows that it is to hear of, and one frame.

use crate::row::row;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use fatpath_api::{FlowView, Late, LiveFrame, Lost};
use fatpath_estats::Changed;
use futures_util::stream;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// Streams at once; each costs the daemon a look at the table four times a second.
pub const MAX_STREAMS: usize = 32;

/// Between two looks at the table.
const INTERVAL: Duration = Duration::from_millis(250);

/// A client that takes longer for a frame is told so.
const LATE: Duration = Duration::from_secs(1);

/// A frame of this many rows is about 200 KiB.
const ROWS_A_FRAME: usize = 500;

/// What streams read: the table's changes since a mark, and what was lost.
pub trait Source: Send + Sync + 'static {
    /// What changed since the mark, which an earlier answer had; 0: all.
    fn changed(&self, mark: u64) -> Changed;
    /// These flows, those that are still there.
    fn views(&self, cookies: &[u64]) -> Vec<FlowView>;
    /// Since the start.
    fn lost(&self) -> Lost;
}

/// The streams that there are.
pub struct Streams {
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
    /// A stream until the client goes or the daemon ends; `None`: there are too many.
    pub fn open<S: Source>(&self, source: Arc<S>, shutdown: CancellationToken) -> Option<Response> {
        let follower = Follower {
            source,
            shutdown,
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

/// What is to be sent.
enum Due {
    Event(Event),
    /// Rows of these flows, as they are when it is their turn.
    Rows(Vec<u64>),
}

/// One client's place in what changes.
struct Follower<S> {
    source: Arc<S>,
    shutdown: CancellationToken,
    mark: u64,
    lost: Option<Lost>,
    due: VecDeque<Due>,
    looked: Option<Instant>,
    _room: OwnedSemaphorePermit,
}

impl<S: Source> Follower<S> {
    async fn next(mut self) -> Option<(Result<Event, Infallible>, Follower<S>)> {
        loop {
            if let Some(due) = self.due.pop_front() {
                let event = self.event(due).await?;
                return Some((Ok(event), self));
            }
            let next = self
                .looked
                .map_or_else(Instant::now, |looked| looked + INTERVAL);
            tokio::select! {
                () = sleep_until(next) => {}
                () = self.shutdown.cancelled() => return None,
            }
            self.look().await?;
        }
    }

    /// Rows are made on another thread: they take longer than others should wait.
    async fn event(&self, due: Due) -> Option<Event> {
        let cookies = match due {
            Due::Event(event) => return Some(event),
            Due::Rows(cookies) => cookies,
        };
        let source = Arc::clone(&self.source);
        let make = move || {
            let views = source.views(&cookies);
            let rows = views.into_iter().map(row).collect();
            event(&LiveFrame::Flows(rows))
        };
        tokio::task::spawn_blocking(make).await.ok()
    }

    async fn look(&mut self) -> Option<()> {
        let since = self
            .looked
            .replace(Instant::now())
            .map(|looked| looked.elapsed());
        let (source, mark) = (Arc::clone(&self.source), self.mark);
        let look = move || {
            let changed = source.changed(mark);
            let is_new = since.is_none() || changed.is_broken;
            (changed.mark, all_due(&changed, is_new), source.lost())
        };
        let (mark, all_due, lost) = tokio::task::spawn_blocking(look).await.ok()?;
        self.mark = mark;
        if let Some(late) = since.filter(|since| *since >= LATE) {
            let late = event(&LiveFrame::Late(Late {
                ms: late.as_millis() as u64,
            }));
            self.due.push_back(Due::Event(late));
        }
        self.due.extend(all_due);
        if self.lost.as_ref() != Some(&lost) {
            self.due
                .push_back(Due::Event(event(&LiveFrame::Lost(lost))));
            self.lost = Some(lost);
        }
        Some(())
    }
}

/// `is_new`: the client knows nothing, or what it knows cannot be mended.
fn all_due(changed: &Changed, is_new: bool) -> Vec<Due> {
    let mut due = Vec::new();
    if is_new {
        due.push(Due::Event(event(&LiveFrame::Reset {})));
    }
    let frames = changed.cookies.chunks(ROWS_A_FRAME);
    due.extend(frames.map(|cookies| Due::Rows(cookies.to_vec())));
    if !changed.gone.is_empty() {
        due.push(Due::Event(event(&LiveFrame::Gone(changed.gone.clone()))));
    }
    due
}

fn event(frame: &LiveFrame) -> Event {
    let event = Event::default().event(frame.event());
    let event = match frame {
        LiveFrame::Reset {} => Ok(event.data("{}")),
        LiveFrame::Flows(rows) => event.json_data(rows),
        LiveFrame::Gone(cookies) => event.json_data(cookies),
        LiveFrame::Lost(lost) => event.json_data(lost),
        LiveFrame::Late(late) => event.json_data(late),
    };
    event.expect("rows and counts have no maps with other keys than text")
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::Router;
    use axum::routing::get;
    use fatpath_api::SampleKind;
    use fatpath_estats::testing::sample;
    use fatpath_estats::{Bounds, FlowTable};
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU64, Ordering};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpSocket, TcpStream};

    /// Every look finds that all of its flows changed.
    struct Busy {
        flows: u64,
        table: Mutex<FlowTable>,
        looks: AtomicU64,
        /// Rows made.
        made: AtomicU64,
    }

    impl Busy {
        fn new(flows: u64) -> Arc<Busy> {
            Arc::new(Busy {
                flows,
                table: Mutex::new(FlowTable::new(Bounds::default())),
                looks: AtomicU64::new(0),
                made: AtomicU64::new(0),
            })
        }
    }

    impl Source for Busy {
        fn views(&self, cookies: &[u64]) -> Vec<FlowView> {
            self.made.fetch_add(cookies.len() as u64, Ordering::Relaxed);
            self.table.lock().unwrap().views_of(cookies)
        }

        fn changed(&self, mark: u64) -> Changed {
            let now_ns = self.looks.fetch_add(1, Ordering::Relaxed) * 1_000_000;
            let mut table = self.table.lock().unwrap();
            for cookie in 1..=self.flows {
                table.take(sample(cookie, SampleKind::Interval, now_ns));
            }
            table.changed(mark)
        }

        fn lost(&self) -> Lost {
            Lost {
                samples_lost: self.flows,
                ..Lost::default()
            }
        }
    }

    /// A server of streams from `source`; the address, and what stops it.
    async fn serve(source: Arc<Busy>) -> (std::net::SocketAddr, CancellationToken) {
        let (shutdown, streams) = (CancellationToken::new(), Arc::new(Streams::default()));
        let stopping = shutdown.clone();
        let open = move || {
            let opened = streams.open(Arc::clone(&source), stopping.clone());
            async { opened.ok_or(axum::http::StatusCode::SERVICE_UNAVAILABLE) }
        };
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_send_buffer_size(4096).unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(64).unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(axum::serve(listener, Router::new().route("/", get(open))).into_future());
        (address, shutdown)
    }

    async fn connect(address: std::net::SocketAddr) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        let mut stream = socket.connect(address).await.unwrap();
        stream
            .write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            .await
            .unwrap();
        stream
    }

    /// What came until `wanted` is in it; of much, the end.
    async fn read_until(stream: &mut TcpStream, wanted: &str) -> String {
        let mut text = String::new();
        let mut buffer = vec![0; 1 << 16];
        while !text.contains(wanted) {
            let length = stream.read(&mut buffer).await.unwrap();
            assert_ne!(length, 0, "the stream ended before {wanted}: {text}");
            text += &String::from_utf8_lossy(&buffer[..length]);
            if text.len() > 1 << 17 {
                text.drain(..1 << 16);
            }
        }
        text
    }

    #[tokio::test]
    async fn a_stream_begins_anew_then_says_what_changes() {
        let (address, _shutdown) = serve(Busy::new(2)).await;
        let mut stream = connect(address).await;
        let text = read_until(&mut stream, "event: lost").await;
        let (reset, flows) = (
            text.find("event: reset").unwrap(),
            text.find("event: flows").unwrap(),
        );
        assert!(
            reset < flows && text.contains(r#""remote":"10.0.0.2:5001""#),
            "{text}"
        );
        let next = read_until(&mut stream, "event: flows").await;
        assert!(
            !next.contains("event: reset") && !next.contains("event: late"),
            "{next}"
        );
    }

    #[tokio::test]
    async fn a_client_that_does_not_read_is_not_worked_for_and_is_told() {
        let source = Busy::new(5_000);
        let (address, _shutdown) = serve(Arc::clone(&source)).await;
        let mut stream = connect(address).await;
        let counts = || {
            (
                source.looks.load(Ordering::Relaxed),
                source.made.load(Ordering::Relaxed),
            )
        };
        let mut before = (0, 0);
        while before.0 == 0 || counts() != before {
            before = counts();
            tokio::time::sleep(3 * LATE).await;
        }
        // A look is 2 MB of rows; no more are made than hyper and the kernel buffer.
        let (looks, made) = before;
        assert!(
            looks == 1 && made < 4_000,
            "{looks} looks, {made} rows for a client that reads nothing"
        );
        read_until(&mut stream, "event: late").await;
    }

    #[tokio::test]
    async fn streams_are_bounded_and_end_with_the_daemon() {
        let (address, shutdown) = serve(Busy::new(1)).await;
        let mut streams = Vec::new();
        for _ in 0..MAX_STREAMS {
            let mut stream = connect(address).await;
            read_until(&mut stream, "event: reset").await;
            streams.push(stream);
        }
        let mut refused = connect(address).await;
        read_until(&mut refused, "503 Service Unavailable").await;
        shutdown.cancel();
        let mut first = streams.swap_remove(0);
        read_until(&mut first, "0\r\n\r\n").await;
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Serves what comes in by a socket: so many connections at once, and none for ever.
//!
//! Any local user may connect over TCP, and the group over the Unix sockets. What one holds open without asking,
//! or asks for and does not take, ends by itself; root always gets in by a Unix socket.

use crate::guard::{Asking, Peer};
use anyhow::{Context as _, Result};
use axum::Router;
use axum::extract::connect_info::ConnectInfo;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulConnection, GracefulShutdown};
use hyper_util::service::TowerToHyperService;
use rustix::io::Errno;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;
use tokio_io_timeout::TimeoutStream;
use tokio_util::sync::CancellationToken;

/// Connections at once by one socket: they must not cost the daemon its file descriptors.
const MAX_CONNECTIONS: usize = 128;

/// How long a client may take.
#[derive(Clone, Copy)]
struct Patience {
    /// For the head of a request, the next one of a connection that is kept open included.
    head: Duration,
    /// For taking any byte of an answer. A stream sends some each 15 s, so nobody who reads comes near.
    answer: Duration,
}

const PATIENCE: Patience = Patience {
    head: Duration::from_secs(10),
    answer: Duration::from_secs(60),
};

/// After a failed accept, as by too many open files.
const PAUSE: Duration = Duration::from_millis(500);

/// The connection, its peer, and the permit that counts it among those that are open; `None`: nobody connected after all.
type Entered<S> = io::Result<Option<(S, Peer, Option<OwnedSemaphorePermit>)>>;

/// A listening socket.
trait Entrance {
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// The next who comes in.
    async fn next(&self, room: &Arc<Semaphore>) -> Entered<Self::Stream>;
}

impl Entrance for TcpListener {
    type Stream = TcpStream;

    /// While there is no room, others wait in the backlog.
    async fn next(&self, room: &Arc<Semaphore>) -> Entered<TcpStream> {
        let place = Arc::clone(room).acquire_owned().await.ok();
        let (stream, _) = self.accept().await?;
        Ok(Some((stream, Peer::Tcp, place)))
    }
}

/// A Unix socket, by which requests may change something or not.
pub enum UnixEntrance {
    /// By which root changes things.
    Control(UnixListener),
    /// Which only reads.
    View(UnixListener),
    /// Which only reads, and tells who asks.
    Gate(UnixListener),
}

impl Entrance for UnixEntrance {
    type Stream = UnixStream;

    /// Root needs no place; others without one are turned away.
    async fn next(&self, room: &Arc<Semaphore>) -> Entered<UnixStream> {
        let (UnixEntrance::Control(listener)
        | UnixEntrance::View(listener)
        | UnixEntrance::Gate(listener)) = self;
        let (stream, _) = listener.accept().await?;
        let Ok(credentials) = stream.peer_cred() else {
            return Ok(None);
        };
        let asking = Asking {
            user: credentials.uid(),
            process: credentials.pid(),
        };
        let is_root = asking.user == 0;
        let place = Arc::clone(room).try_acquire_owned().ok();
        let may_enter = is_root || place.is_some();
        let peer = match self {
            UnixEntrance::Control(_) => Peer::Control { is_root },
            UnixEntrance::View(_) => Peer::View,
            UnixEntrance::Gate(_) => Peer::Gate(asking),
        };
        Ok(may_enter.then_some((stream, peer, place)))
    }
}

/// Serves a Unix socket until `shutdown`; then answers that are under way are given to their end.
///
/// # Errors
/// When the socket cannot accept connections any more.
pub async fn serve_unix(
    entrance: UnixEntrance,
    router: Router,
    shutdown: CancellationToken,
) -> Result<()> {
    serve(entrance, router, PATIENCE, shutdown).await
}

/// The same over TCP.
///
/// # Errors
/// When the socket cannot accept connections any more.
pub async fn serve_tcp(
    listener: TcpListener,
    router: Router,
    shutdown: CancellationToken,
) -> Result<()> {
    serve(listener, router, PATIENCE, shutdown).await
}

async fn serve(
    entrance: impl Entrance,
    router: Router,
    patience: Patience,
    shutdown: CancellationToken,
) -> Result<()> {
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let connections = GracefulShutdown::new();
    loop {
        let entered = tokio::select! {
            entered = entrance.next(&room) => entered,
            () = shutdown.cancelled() => break,
        };
        match entered {
            Ok(Some((stream, peer, place))) => {
                let connection = connection(stream, peer, router.clone(), patience);
                let connection = connections.watch(connection);
                tokio::spawn(async move {
                    // A client that breaks off or errs has nobody to tell.
                    let _ = connection.await;
                    drop(place);
                });
            }
            Ok(None) => {}
            Err(error) if listens_no_more(&error) => {
                return Err(error)
                    .context("a socket of the API cannot accept connections any more");
            }
            Err(_) => sleep(PAUSE).await,
        }
    }
    connections.shutdown().await;
    Ok(())
}

/// accept(2) again would fail again. All else passes, such as too many open files.
fn listens_no_more(error: &io::Error) -> bool {
    let last = [Errno::INVAL, Errno::BADF, Errno::NOTSOCK];
    Errno::from_io_error(error).is_some_and(|error| last.contains(&error))
}

/// One connection, which hyper's graceful shutdown can end after the answer that is under way.
fn connection(
    stream: impl AsyncRead + AsyncWrite + Send + 'static,
    peer: Peer,
    router: Router,
    patience: Patience,
) -> impl GracefulConnection<Error = hyper::Error> + Send {
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo(peer));
        router.call(request)
    });
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(patience.answer));
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(patience.head)
        .serve_connection(TokioIo::new(Box::pin(stream)), service)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::{Body, Bytes};
    use axum::routing::get;
    use std::fs::Permissions;
    use std::net::SocketAddr;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::task::JoinHandle;

    /// Every client is too slow at once.
    const NONE: Patience = Patience {
        head: Duration::from_millis(50),
        answer: Duration::from_millis(50),
    };

    /// Answers "x" at `/`, and without end at `/endless`.
    fn router() -> Router {
        let endless = || async {
            let chunk = || Ok::<_, io::Error>(Bytes::from_static(&[b'x'; 1 << 16]));
            Body::from_stream(futures_util::stream::repeat_with(chunk))
        };
        Router::new()
            .route("/", get(|| async { "x" }))
            .route("/endless", get(endless))
    }

    /// Where it listens, what stops it, and its end.
    async fn over_tcp() -> (SocketAddr, CancellationToken, JoinHandle<Result<()>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, shutdown) = (listener.local_addr().unwrap(), CancellationToken::new());
        let serving = tokio::spawn(serve(listener, router(), NONE, shutdown.clone()));
        (address, shutdown, serving)
    }

    async fn say(address: SocketAddr, text: &str) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        stream
    }

    async fn answer(stream: &mut (impl AsyncRead + Unpin)) -> String {
        let mut bytes = Vec::new();
        // A connection that was given up may be reset.
        let _ = stream.read_to_end(&mut bytes).await;
        String::from_utf8_lossy(&bytes).into_owned()
    }

    const ASK: &str = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

    #[tokio::test]
    async fn who_never_ends_a_request_is_dropped_and_others_get_his_place() {
        let (address, _shutdown, _) = over_tcp().await;
        let mut slow = Vec::new();
        for n in 0..2 * MAX_CONNECTIONS {
            // Nothing at all, half a head, and a head without end after a whole request.
            let text = ["", "GET / HT", "GET / HTTP/1.1\r\nHost: x\r\n\r\nGET /"][n % 3];
            slow.push(say(address, text).await);
        }
        let mut last = say(address, ASK).await;
        assert!(answer(&mut last).await.contains("200 OK"));
        for mut stream in slow {
            answer(&mut stream).await;
        }
    }

    #[tokio::test]
    async fn who_takes_nothing_of_his_answer_is_dropped() {
        let (address, shutdown, serving) = over_tcp().await;
        let stream = say(address, "GET /endless HTTP/1.1\r\nHost: x\r\n\r\n").await;
        stream.readable().await.unwrap();
        // It waits for answers that are under way, and this one has no end.
        shutdown.cancel();
        serving.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_socket_that_listens_no_more_is_an_error() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let socket = rustix::io::dup(&listener).unwrap();
        let serving = tokio::spawn(serve(listener, router(), NONE, CancellationToken::new()));
        rustix::net::shutdown(&socket, rustix::net::Shutdown::Read).unwrap();
        let error = serving.await.unwrap().unwrap_err();
        assert!(format!("{error:#}").contains("cannot accept"), "{error:#}");
    }

    /// Connects as nobody.
    fn come_as_nobody(path: PathBuf) -> std::os::unix::net::UnixStream {
        let come = move || {
            let nobody = rustix::process::Uid::from_raw(65534);
            rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
            std::os::unix::net::UnixStream::connect(path).unwrap()
        };
        std::thread::spawn(come).join().unwrap()
    }

    #[tokio::test]
    async fn a_full_unix_socket_turns_away_all_but_root() {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: not root, who alone can come as another user");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let listener = UnixEntrance::Control(UnixListener::bind(&path).unwrap());
        for (path, mode) in [(dir.path(), 0o755), (path.as_path(), 0o777)] {
            std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        }
        let room = Arc::new(Semaphore::new(1));
        let _first = come_as_nobody(path.clone());
        let place = listener.next(&room).await.unwrap();
        assert!(matches!(
            place,
            Some((_, Peer::Control { is_root: false }, Some(_)))
        ));
        let _second = come_as_nobody(path.clone());
        assert!(listener.next(&room).await.unwrap().is_none());
        let _root = UnixStream::connect(&path).await.unwrap();
        assert!(matches!(
            listener.next(&room).await.unwrap(),
            Some((_, Peer::Control { is_root: true }, None))
        ));
    }
}

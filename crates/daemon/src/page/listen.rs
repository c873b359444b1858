// SPDX-License-Identifier: MIT OR Apache-2.0
//! The way in over TCP: loopback only, a bounded number of connections, a token.

use super::token::Token;
use anyhow::{Context as _, Result, ensure};
use axum::serve::Listener;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Any local user may connect: what they hold open must not cost the daemon its file descriptors.
const MAX_CONNECTIONS: usize = 128;

/// A listening socket and the token for it.
pub(crate) struct TcpDoor {
    pub(crate) listener: BoundedListener,
    pub(crate) token: Token,
}

impl TcpDoor {
    /// # Errors
    /// When the address is none of this host's own, or taken.
    pub(crate) async fn open(address: SocketAddr, run_dir: &Path) -> Result<TcpDoor> {
        ensure!(
            address.ip().is_loopback(),
            "--listen {address}: only a loopback address (127.0.0.1, [::1]); from elsewhere, `fatpath page` says how"
        );
        let listener = TcpListener::bind(address)
            .await
            .with_context(|| format!("cannot listen on {address}"))?;
        Ok(TcpDoor {
            listener: BoundedListener {
                listener,
                room: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
            },
            token: Token::open(run_dir)?,
        })
    }

    /// With the port that port 0 became.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.listener.local_addr()
    }
}

/// Accepts while there is room; the others wait in the backlog.
pub(crate) struct BoundedListener {
    listener: TcpListener,
    room: Arc<Semaphore>,
}

impl Listener for BoundedListener {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        let room = Arc::clone(&self.room).acquire_owned().await;
        let room = room.expect("the semaphore is never closed");
        let (stream, peer) = Listener::accept(&mut self.listener).await;
        (
            Connection {
                stream,
                _room: room,
            },
            peer,
        )
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection, and its place among those that there may be.
pub(crate) struct Connection {
    stream: TcpStream,
    _room: OwnedSemaphorePermit,
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

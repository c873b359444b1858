// SPDX-License-Identifier: MIT OR Apache-2.0
//! The way in over TCP: loopback only, with a token.

use super::token::Token;
use anyhow::{Context as _, Result, ensure};
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use tokio::net::TcpListener;

/// A listening socket and the token for it.
pub(crate) struct TcpAccess {
    pub(crate) listener: TcpListener,
    pub(crate) token: Token,
}

impl TcpAccess {
    /// # Errors
    /// When the address is none of this host's own, or taken.
    pub(crate) async fn open(address: SocketAddr, run_dir: &Path) -> Result<TcpAccess> {
        ensure!(
            address.ip().is_loopback(),
            "--listen {address}: only a loopback address (127.0.0.1, [::1]); from elsewhere, `fatpath page` says how"
        );
        let listener = TcpListener::bind(address)
            .await
            .with_context(|| format!("cannot listen on {address}"))?;
        Ok(TcpAccess {
            listener,
            token: Token::open(run_dir)?,
        })
    }

    /// With the port that port 0 became.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

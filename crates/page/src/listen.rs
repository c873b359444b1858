// SPDX-License-Identifier: MIT OR Apache-2.0
//! The way in over TCP: loopback only, with a token. A host is tuned without it: what keeps it shut is a warning,
//! and tried again.

use crate::token::Token;
use anyhow::{Context as _, Result};
use parking_lot::Mutex;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Between two attempts.
const RETRY: Duration = Duration::from_secs(2);

/// Where the page is served over TCP, and why it is not.
#[derive(Clone, Debug, Default)]
pub struct PageState {
    /// Once it listens.
    pub address: Option<SocketAddr>,
    /// Why it does not.
    pub error: Option<String>,
}

/// What is asked for by `--listen`, open or not yet.
pub struct TcpEntrance {
    address: SocketAddr,
    run_dir: PathBuf,
    state: Arc<Mutex<PageState>>,
    open: Option<TcpAccess>,
}

/// A listening socket and the token for it.
pub struct TcpAccess {
    /// On loopback.
    pub listener: TcpListener,
    /// Of this instance.
    pub token: Token,
}

impl TcpEntrance {
    /// Tries once; what fails is logged.
    pub async fn new(
        address: SocketAddr,
        run_dir: &Path,
        state: Arc<Mutex<PageState>>,
    ) -> TcpEntrance {
        let mut entrance = TcpEntrance {
            address,
            run_dir: run_dir.to_owned(),
            state,
            open: None,
        };
        if let Err(error) = entrance.attempt().await {
            tracing::warn!("{error:#}: the page is not served over TCP; tried again");
        }
        entrance
    }

    /// Tries until it is open; `None` when the daemon is to end before.
    pub async fn opened(mut self, shutdown: &CancellationToken) -> Option<TcpAccess> {
        while self.open.is_none() {
            tokio::select! {
                () = tokio::time::sleep(RETRY) => {}
                () = shutdown.cancelled() => return None,
            }
            if self.attempt().await.is_ok() {
                tracing::info!("the page is served on {} now", self.address);
            }
        }
        self.open
    }

    async fn attempt(&mut self) -> Result<()> {
        let opened = TcpAccess::open(self.address, &self.run_dir).await;
        let mut state = self.state.lock();
        match opened {
            Ok((access, address)) => {
                *state = PageState {
                    address: Some(address),
                    error: None,
                };
                self.open = Some(access);
                Ok(())
            }
            Err(error) => {
                state.error = Some(format!("{error:#}"));
                Err(error)
            }
        }
    }
}

impl TcpAccess {
    /// The address has the port that port 0 became.
    async fn open(address: SocketAddr, run_dir: &Path) -> Result<(TcpAccess, SocketAddr)> {
        let listener = TcpListener::bind(address)
            .await
            .with_context(|| format!("cannot listen on {address}"))?;
        let address = listener.local_addr()?;
        let token = Token::open(run_dir)?;
        Ok((TcpAccess { listener, token }, address))
    }
}

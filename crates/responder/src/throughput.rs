// SPDX-License-Identifier: MIT OR Apache-2.0
//! The end that has a server of iperf3 started for a test of throughput.

use crate::call::{TestError, Whom, asked_for, connected, heard};
use fatpath_measure::{Ask, Reply, Served, Server, shown};
use fatpath_peer::Peer;
use std::net::IpAddr;
use std::time::Duration;

/// A server that waits for this host. It ends when this is dropped.
pub struct Lent {
    /// What a client needs.
    pub served: Served,
    /// Where it is.
    pub address: IpAddr,
    connection: Peer,
}

/// A responder says why its server failed within this.
const SAYS_WHY_WITHIN: Duration = Duration::from_secs(1);

impl Lent {
    /// Why the server failed, if it says so.
    pub fn why(&mut self, whom: &Whom<'_>) -> Option<String> {
        match heard(&mut self.connection, SAYS_WHY_WITHIN, whom).ok()? {
            Reply::Refused { why } => Some(shown(&why)),
            _ => None,
        }
    }
}

/// Has a server started.
///
/// # Errors
/// See [`TestError`].
pub fn lend(whom: &Whom<'_>, server: Server) -> Result<Lent, TestError> {
    let mut peer = connected(whom)?;
    let address = peer.socket().peer_addr();
    let address = address.map_err(|error| whom.broken(error))?;
    let patience = Duration::from_micros(server.patience_us);
    match asked_for(&mut peer, &Ask::Iperf3(server), patience, whom)? {
        Reply::Serves(served) if served.is_sound() => Ok(Lent {
            served,
            address: address.ip().to_canonical(),
            connection: peer,
        }),
        _ => Err(whom.nonsense()),
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The end that measures throughput by a server of iperf3 that a responder starts.

use crate::call::{TestError, Whom, asked_for, connected, heard};
use fatpath_measure::{Ask, Iperf3, Lossless, Measured, Reply, Served, Server, Values, shown};
use fatpath_peer::Peer;
use fatpath_perform::perform_served;
use std::net::IpAddr;
use std::time::Duration;

/// A responder says why its server failed within this.
const SAYS_WHY_WITHIN: Duration = Duration::from_secs(1);
/// It has ended a test within this after its client.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

/// A test of throughput.
pub struct WantedThroughput<'w> {
    /// Whom to ask.
    pub whom: &'w Whom<'w>,
    /// What the client is told, but for where the server is.
    pub iperf3: Iperf3,
    /// Whole seconds.
    pub duration_us: u64,
    /// How long the responder may wait until no other test loads its path.
    pub patience: Duration,
}

/// A server that waits for this host. It ends when this is dropped.
pub struct Lent {
    /// What a client needs.
    pub served: Served,
    /// Where it is.
    pub address: IpAddr,
    connection: Peer,
}

/// Makes a test. Another one can begin when this returns.
///
/// # Errors
/// See [`TestError`].
pub fn throughput(wanted: &WantedThroughput<'_>) -> Result<Measured, TestError> {
    let whom = wanted.whom;
    let server = Server {
        duration_us: wanted.duration_us,
        rate_bps: wanted.sum_bps(),
        patience_us: wanted.patience.as_micros() as u64,
    };
    let mut lent = lend(whom, server)?;
    let performed = perform_served(
        &wanted.iperf3,
        lent.address,
        wanted.duration_us,
        &lent.served,
    );
    let measured = performed.map_err(|note| match lent.why(whom) {
        Some(why) => TestError::Refused(whom.host.to_owned(), why),
        None => TestError::Iperf3(note.message),
    })?;
    lent.wait_for_its_end(whom);
    Ok(measured)
}

/// Searches for the highest rate at which nothing is lost, up to that of the test, which is of UDP; `heard` is told the rate
/// and the values of each run.
///
/// # Errors
/// Those of [`throughput`], or something is lost at every rate.
pub fn lossless_rate(
    mut wanted: WantedThroughput<'_>,
    mut heard: impl FnMut(u64, &Values),
) -> Result<Values, TestError> {
    let mut search = Lossless::up_to(wanted.iperf3.each_bps().unwrap_or_default());
    while let Some(rate_bps) = search.next() {
        wanted.iperf3.rate_bps = Some(rate_bps);
        let values = throughput(&wanted)?.values;
        heard(rate_bps, &values);
        search.answer(rate_bps, &values);
    }
    let lost = || TestError::Iperf3("packets are lost at every rate".to_owned());
    search.values().ok_or_else(lost)
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

impl Lent {
    /// Why the server failed, if it says so.
    fn why(&mut self, whom: &Whom<'_>) -> Option<String> {
        match heard(&mut self.connection, SAYS_WHY_WITHIN, whom).ok()? {
            Reply::Refused { why } => Some(shown(&why)),
            _ => None,
        }
    }

    /// Before that the responder refuses another test of this host.
    fn wait_for_its_end(mut self, whom: &Whom<'_>) {
        // It closes the connection, which is no failure here.
        let _ = heard(&mut self.connection, ENDS_WITHIN, whom);
    }
}

impl WantedThroughput<'_> {
    /// Of all flows; `None`: as fast as the other host allows.
    fn sum_bps(&self) -> Option<u64> {
        let each_bps = self.iperf3.each_bps();
        each_bps.map(|bps| bps.saturating_mul(self.iperf3.streams))
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The responder's end of a test of throughput: a server of iperf3, for the one who asked and for as long as the test lasts.

use crate::credentials::Credentials;
use crate::record::say;
use crate::socket::{is_quiet, plain};
use fatpath_launch::{End, Ended, LaunchError, run};
use fatpath_measure::server::tolerated_bps;
use fatpath_measure::{Reply, Served, bytes_served};
use fatpath_peer::Peer;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::thread;
use std::time::{Duration, Instant};

/// Until the server listens.
const LISTENS_WITHIN: Duration = Duration::from_secs(10);
const TICK: Duration = Duration::from_millis(20);
/// Besides the time in which data are sent: to connect, and until what is queued has arrived.
const GRACE: Duration = Duration::from_secs(30);
/// iperf3 compares the clocks of both ends, seconds; a password holds for one test only.
const ANY_SKEW: &str = "1000000000";

/// What the test may be.
pub struct Granted {
    /// The server's.
    pub port: u16,
    /// All streams together.
    pub rate_bps: u64,
    /// In which data are sent.
    pub duration: Duration,
}

/// Serves one test; `None`: nobody knows how many bytes came and left.
///
/// # Errors
/// The server could not be started or failed, or the connection's.
pub fn serve(peer: &mut Peer, granted: &Granted) -> io::Result<Option<u64>> {
    let connection = peer.socket().try_clone()?;
    let mut local = plain(connection.local_addr()?);
    local.set_port(granted.port);
    refuse_taken(local)?;
    let credentials = Credentials::new()?;
    let folder = tempfile::tempdir()?;
    let command = command(local, granted, &credentials, folder.path())?;
    let served = Reply::Serves(Served {
        port: granted.port,
        rate_bps: granted.rate_bps,
        user: credentials.user,
        password: credentials.password,
        public_key: credentials.public_key,
    });
    let timeout = granted.duration + GRACE;
    thread::scope(|scope| {
        let server = scope.spawn(|| run(&command, timeout, || is_quiet(&connection)));
        let begun = Instant::now();
        while !listens(local)? && !server.is_finished() && begun.elapsed() < LISTENS_WITHIN {
            thread::sleep(TICK);
        }
        let said = match server.is_finished() {
            true => Ok(()),
            false => say(peer, &served),
        };
        let ended = server.join().map_err(|_| io::ErrorKind::Other)?;
        said.and_then(|()| judged(ended))
    })
}

/// What is no server of ours would be taken for one.
fn refuse_taken(local: SocketAddr) -> io::Result<()> {
    let taken = |error| io::Error::other(format!("port {}: {error}", local.port()));
    TcpListener::bind(local).map(drop).map_err(taken)
}

fn command(
    local: SocketAddr,
    granted: &Granted,
    credentials: &Credentials,
    folder: &std::path::Path,
) -> io::Result<Vec<String>> {
    let files = credentials.write(folder)?;
    let (key, users) = (files.private_key.display(), files.users.display());
    let most = tolerated_bps(granted.rate_bps);
    let words = format!(
        "iperf3 --server --one-off --json --bind {} --port {} --server-bitrate-limit {most} --time-skew-threshold {ANY_SKEW}",
        local.ip(),
        local.port()
    );
    let words = words.split(' ').map(str::to_owned);
    let of_files = ["--rsa-private-key-path".to_owned(), key.to_string()];
    let of_users = ["--authorized-users-path".to_owned(), users.to_string()];
    Ok(words.chain(of_files).chain(of_users).collect())
}

fn judged(ended: Result<Ended, LaunchError>) -> io::Result<Option<u64>> {
    let ended = ended.map_err(|error| io::Error::other(with_cause(&error)))?;
    match ended.end {
        End::Exited(status) if !status.success() => {
            let said = ended.errors.lines().chain(ended.output.lines());
            let said = said.map(str::trim).find(|line| line.contains("rror"));
            Err(io::Error::other(format!(
                "iperf3: {}",
                said.unwrap_or("it failed")
            )))
        }
        // Whoever asked has gone, or its time is over.
        End::Exited(_) | End::TimedOut | End::Cancelled => Ok(bytes_served(&ended.output)),
    }
}

fn with_cause(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// Whether somebody listens there, in the network namespace of this thread (proc_net(5)).
fn listens(local: SocketAddr) -> io::Result<bool> {
    let (file, address) = match local.ip() {
        IpAddr::V4(ip) => ("tcp", hex(&ip.octets())),
        IpAddr::V6(ip) => ("tcp6", hex(&ip.octets())),
    };
    let table = std::fs::read_to_string(format!("/proc/thread-self/net/{file}"))?;
    Ok(has_listener(
        &table,
        &format!("{address}:{:04X}", local.port()),
    ))
}

/// Each word of four bytes as this host's order has it.
fn hex(octets: &[u8]) -> String {
    let words = octets.chunks_exact(4);
    let words = words.filter_map(|word| Some(u32::from_ne_bytes(word.try_into().ok()?)));
    words.map(|word| format!("{word:08X}")).collect()
}

fn has_listener(table: &str, end: &str) -> bool {
    table.lines().skip(1).any(|line| {
        let mut words = line.split_ascii_whitespace().skip(1);
        words.next() == Some(end) && words.nth(1) == Some("0A")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_seen_to_be_listened_at() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(address).unwrap();
            let local = listener.local_addr().unwrap();
            assert!(listens(local).unwrap(), "{address}");
            assert!(refuse_taken(local).is_err());
            drop(listener);
            assert!(!listens(local).unwrap(), "{address}");
            refuse_taken(local).unwrap();
        }
    }
}

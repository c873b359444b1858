// SPDX-License-Identifier: MIT OR Apache-2.0
//! The responder's end of a test of throughput: a server of iperf3, for the one who asked and for as long as the test lasts.

use crate::credentials::{Credentials, Files};
use crate::record::say;
use crate::socket::{is_quiet, plain};
use fatpath_launch::{End, Ended, LaunchError, run};
use fatpath_measure::server::tolerated_bps;
use fatpath_measure::{Reply, SERVED_WITHIN_US, Served, bytes_served};
use fatpath_peer::Peer;
use std::cell::Cell;
use std::io;
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// Until the server listens.
const LISTENS_WITHIN: Duration = Duration::from_secs(10);
const TICK: Duration = Duration::from_millis(20);
/// Besides the time in which data are sent: to connect, and until what is queued has arrived.
const GRACE: Duration = Duration::from_micros(SERVED_WITHIN_US);
/// Whoever asked goes away when its client has ended; what the server then says is waited for.
const ENDS_WITHIN: Duration = Duration::from_secs(2);
/// iperf3 compares the clocks of both ends, seconds; a password holds for one test only.
const ANY_SKEW: &str = "1000000000";

/// What the test may be.
pub struct Granted {
    /// The server's.
    pub port: u16,
    /// All streams together.
    pub rate_bps: u64,
}

/// A server that runs.
pub struct Running {
    local: SocketAddr,
    command: Vec<String>,
    served: Served,
    _files: Files,
}

/// Prepares a server for the one who asks by this connection.
///
/// # Errors
/// There can be none.
pub fn prepare(connection: &TcpStream, granted: &Granted) -> io::Result<Running> {
    let mut local = plain(connection.local_addr()?);
    local.set_port(granted.port);
    refuse_link_local(local)?;
    refuse_taken(local)?;
    let credentials = Credentials::new()?;
    let files = credentials.files()?;
    Ok(Running {
        local,
        command: command(local, granted, &files),
        served: Served {
            port: granted.port,
            rate_bps: granted.rate_bps,
            user: credentials.user,
            password: credentials.password,
            public_key: credentials.public_key,
        },
        _files: files,
    })
}

impl Running {
    /// Serves one test of `duration`; gives how many bytes came and left: `None`, nobody knows, and nothing where it was not
    /// started.
    ///
    /// # Errors
    /// The server's, or the connection's.
    pub fn serve(self, peer: &mut Peer, duration: Duration) -> (Option<u64>, io::Result<()>) {
        let connection = match peer.socket().try_clone() {
            Ok(connection) => connection,
            Err(error) => return (Some(0), Err(error)),
        };
        let goes_on = until_left(&connection);
        thread::scope(|scope| {
            let server = scope.spawn(|| run(&self.command, duration + GRACE, goes_on));
            let listens = self.wait_until_it_listens(|| server.is_finished());
            let said = match listens {
                true => say(peer, &Reply::Serves(self.served.clone())),
                false => Err(io::Error::other("iperf3 does not listen")),
            };
            if said.is_err() {
                // The server ends with the connection.
                let _ = connection.shutdown(Shutdown::Both);
            }
            let ended = server.join().map_err(|_| io::ErrorKind::Other.into());
            let (bytes, ended) = ended.map_or_else(|error| (None, Err(error)), judged);
            match listens {
                true => (bytes, said.and(ended)),
                false => (Some(0), ended.and(said)),
            }
        })
    }

    fn wait_until_it_listens(&self, has_ended: impl Fn() -> bool) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < LISTENS_WITHIN && !has_ended() {
            if listens(self.local).unwrap_or(false) {
                return true;
            }
            thread::sleep(TICK);
        }
        false
    }
}

/// Until a moment after the connection ends.
fn until_left(connection: &TcpStream) -> impl Fn() -> bool + Send {
    let left = Cell::new(None);
    move || {
        if left.get().is_none() && !is_quiet(connection) {
            left.set(Some(Instant::now()));
        }
        left.get()
            .is_none_or(|left: Instant| left.elapsed() < ENDS_WITHIN)
    }
}

/// Its scope would have to be given to iperf3 as the name of an interface.
fn refuse_link_local(local: SocketAddr) -> io::Result<()> {
    match local {
        SocketAddr::V6(end) if end.ip().is_unicast_link_local() => {
            let why = "iperf3 is not served at a link-local address";
            Err(io::Error::other(why))
        }
        _ => Ok(()),
    }
}

/// What is no server of ours would be taken for one.
fn refuse_taken(local: SocketAddr) -> io::Result<()> {
    let taken = |error| io::Error::other(format!("port {}: {error}", local.port()));
    TcpListener::bind(local).map(drop).map_err(taken)
}

fn command(local: SocketAddr, granted: &Granted, files: &Files) -> Vec<String> {
    let most = tolerated_bps(granted.rate_bps);
    let words = format!(
        "iperf3 --server --one-off --json --bind {} --port {} --server-bitrate-limit {most} --time-skew-threshold {ANY_SKEW}",
        local.ip(),
        local.port()
    );
    let words = words.split(' ').map(str::to_owned);
    let of_files = [
        "--rsa-private-key-path".to_owned(),
        files.private_key.path(),
    ];
    let of_users = ["--authorized-users-path".to_owned(), files.users.path()];
    words.chain(of_files).chain(of_users).collect()
}

fn judged(ended: Result<Ended, LaunchError>) -> (Option<u64>, io::Result<()>) {
    let ended = match ended {
        Ok(ended) => ended,
        Err(error) => return (Some(0), Err(io::Error::other(with_cause(&error)))),
    };
    let bytes = bytes_served(&ended.output);
    match ended.end {
        End::Exited(status) if !status.success() => {
            let said = ended.errors.lines().chain(ended.output.lines());
            let said = said.map(str::trim).find(|line| line.contains("rror"));
            let why = format!("iperf3: {}", said.unwrap_or("it failed"));
            (bytes, Err(io::Error::other(why)))
        }
        // Whoever asked has gone, or its time is over.
        End::Exited(_) | End::TimedOut | End::Cancelled => (bytes, Ok(())),
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

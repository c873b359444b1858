// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath recv --listen`: takes connections, lets those in whose key is trusted, and starts a process for each, held to one
//! folder. Before an end has proved its key it costs a thread, a socket and what a handshake needs, for a short time.

mod below;
pub mod called;
mod events;
mod limits;
mod serve;

use crate::by_key::KeyFiles;
use crate::limits::{raise_open_files, size};
use anyhow::{Context, Result, ensure};
pub use below::Bounds;
use clap::Args;
use events::Event;
use fatpath_peer::{Account, CALLERS, Came, Listener, Log, Trusted};
use limits::Limits;
use serve::Server;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// Open files of a transfer: its connection twice, pipes of its process, and both ends of these while it starts.
const FILES_OF_TRANSFER: u64 = 10;
/// Beside those: what the listener has, and connections that wait for their end to prove a key.
const SPARE_FILES: u64 = 128;

/// What only a listener takes.
#[derive(Args)]
pub struct ListenArguments {
    /// Wait for others that send to fatpath://HOST:PORT/, or fetch from there, without ssh
    #[arg(long, value_name = "[ADDRESS:]PORT", requires = "into", value_parser = at,
          conflicts_with_all = ["places", "stdio", "recursive", "preserve", "hard_links", "sparse", "xattrs", "acls", "delete", "exclude", "include", "ignore_times", "dry_run", "limit",
              "law", "tcp", "no_ecn", "holes", "window", "datagram_bytes", "carrier", "flows", "timeout", "address", "rsh", "quiet"])]
    pub listen: Option<At>,
    /// With --listen: the folder that everything goes below
    #[arg(long, value_name = "DIR", requires = "listen")]
    pub into: Option<PathBuf>,
    /// With --listen as root: the user who writes
    #[arg(long, value_name = "NAME", requires = "listen")]
    pub user: Option<String>,
    /// With --listen: transfers at a time
    #[arg(long, value_name = "NUMBER", requires = "listen", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub transfers: u16,
    /// With --listen: of these, for one key [default: half of them]
    #[arg(long, value_name = "NUMBER", requires = "listen", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub transfers_per_key: Option<u16>,
    /// With --listen: what may wait in memory for the disk, of all transfers; each has an equal part
    #[arg(long, value_name = "BYTES", requires = "listen", default_value = "2GiB", value_parser = size)]
    pub memory: u64,
    /// With --listen: whose key has this name may also fetch what is below DIR; may be repeated
    #[arg(long, value_name = "NAME", requires = "listen")]
    pub give_to: Vec<String>,
    /// Be what a listener starts for a caller: nothing leaves this folder
    #[arg(long, hide = true, requires = "stdio")]
    pub below: Option<PathBuf>,
    /// With --below: the caller may fetch what is there
    #[arg(long, hide = true, requires = "below")]
    pub below_gives: bool,
}

/// Where to listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// Of all addresses of the host.
    Port(u16),
    /// There alone.
    Address(SocketAddr),
}

fn at(text: &str) -> Result<At, String> {
    let port = text.parse().map(At::Port);
    let at = port.or_else(|_| text.parse().map(At::Address));
    at.map_err(|_: std::net::AddrParseError| {
        "give a port, or an address and a port, such as 4747, 192.0.2.1:4747 or [2001:db8::1]:4747"
            .to_owned()
    })
}

impl At {
    fn bind(self) -> io::Result<TcpListener> {
        match self {
            At::Address(address) => TcpListener::bind(address),
            // Where the host has no IPv6, by IPv4.
            At::Port(port) => TcpListener::bind((Ipv6Addr::UNSPECIFIED, port))
                .or_else(|_| TcpListener::bind((Ipv4Addr::UNSPECIFIED, port))),
        }
    }
}

/// Listens at `at` until SIGTERM, SIGINT or SIGHUP.
///
/// # Errors
/// It cannot begin: an address is in use, a key is missing, or root would write as root.
pub fn run(
    at: At,
    arguments: &ListenArguments,
    files: &KeyFiles,
    ports: (u16, u16),
    is_json: bool,
) -> Result<ExitCode> {
    let folder = arguments.into.as_deref().context("--into: give a folder")?;
    let account = Account::of(arguments.user.as_deref())?;
    let limits = Limits::of(arguments)?;
    let (key, trust) = (files.key()?, files.trust(CALLERS)?);
    refuse_below(folder, [&files.key_file()?, &trust])?;
    let listener = at.bind().context("--listen: cannot listen there")?;
    account.become_it()?;
    let folder = checked_folder(folder)?;
    let listener = Listener::new(listener, &[&[SIGHUP, SIGINT, SIGTERM]])?;
    let log = Log::new(is_json);
    let known = Trusted::read(&trust)?;
    if known.lines().is_empty() {
        eprintln!(
            "fatpath: nobody may connect yet: `fatpath keys trust caller KEY NAME{}` lets somebody in, also while this runs",
            files.trust_option()
        );
    }
    log.note(&Event::Listening {
        address: listener.address()?,
        folder: folder.display().to_string(),
        key: key.public().to_string(),
    });
    raise_open_files(FILES_OF_TRANSFER * limits.transfers as u64 + SPARE_FILES);
    let bounds = Bounds {
        folder,
        address: None, // of each connection its own
        ports,
        window_bytes: limits.window_bytes,
        gives: false, // of each caller by its name
    };
    let gives_to = arguments.give_to.clone();
    let server = Server::new(key, trust, bounds, gives_to, limits, log);
    serve_until(&listener, &Arc::new(server))
}

/// Callers write below `folder`, and are not to say whom the listener trusts, nor who it is.
fn refuse_below(folder: &Path, files: [&Path; 2]) -> Result<()> {
    // Where it leads nowhere, that is said later.
    let Ok(folder) = folder.canonicalize() else {
        return Ok(());
    };
    for file in files {
        let above = file.parent().filter(|above| !above.as_os_str().is_empty());
        let above = above.unwrap_or(Path::new("."));
        let is_below = |path: &Path| {
            path.canonicalize()
                .is_ok_and(|path| path.starts_with(&folder))
        };
        ensure!(
            !is_below(file) && !is_below(above),
            "{} is below --into, where callers could change it: move it, and name it by --key or --trust",
            file.display()
        );
    }
    Ok(())
}

fn checked_folder(folder: &Path) -> Result<PathBuf> {
    let shown = folder.display();
    let whole = folder
        .canonicalize()
        .with_context(|| format!("--into: {shown}"))?;
    ensure!(whole.is_dir(), "--into: {shown} is no folder");
    let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    rustix::fs::access(&whole, access)
        .with_context(|| format!("--into: {shown} cannot be written to by this user"))?;
    Ok(whole)
}

fn serve_until(listener: &Listener, server: &Arc<Server>) -> Result<ExitCode> {
    loop {
        match listener.next()? {
            Came::Connection(socket, from) => server.take(socket, from),
            Came::Signal(_) => {
                server.stop();
                return Ok(ExitCode::SUCCESS);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_has_a_port_and_perhaps_an_address() {
        assert_eq!(at("4747"), Ok(At::Port(4747)));
        let address = |text: &str| text.parse().map(At::Address).map_err(|_| String::new());
        for text in ["192.0.2.1:4747", "[2001:db8::1]:4747"] {
            assert_eq!(at(text), address(text));
        }
        for wrong in ["", "x", "192.0.2.1", "99999", "dtn1:4747"] {
            assert!(at(wrong).is_err(), "{wrong}");
        }
    }
}

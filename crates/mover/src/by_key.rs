// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls a listener: connects, proves this host's key, and holds the other end to the key that this host trusts for it.

use crate::control::Control;
use anyhow::{Context, Result, anyhow, bail};
use fatpath_peer::{AuthError, HOSTS, KEY, Key, PublicKey, Trusted, connect, or_configured};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

/// What both ends name as what they speak (ALPN).
pub const PROTOCOL: &str = "fatpath-mover";
/// How long an address has to answer, and then the end there to say who it is.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
const KNOWN_WITHIN: Duration = Duration::from_secs(20);

/// Where keys are.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct KeyFiles {
    /// This end's key, for fatpath:// and --listen [default: key in ~/.config/fatpath, of root in /etc/fatpath]
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// Keys that are trusted [default: known_hosts there, with --listen authorized_keys]
    #[arg(long, value_name = "FILE")]
    pub trust: Option<PathBuf>,
}

impl KeyFiles {
    /// This end's key.
    ///
    /// # Errors
    /// There is none, or others may read it.
    pub fn key(&self) -> Result<Key> {
        Ok(Key::read(&self.key_file()?)?)
    }

    /// The file of this end's key.
    ///
    /// # Errors
    /// There is no home folder.
    pub fn key_file(&self) -> Result<PathBuf> {
        Ok(or_configured(self.key.as_deref(), KEY)?)
    }

    /// The file of trusted keys, which is called `name` where none was given.
    ///
    /// # Errors
    /// There is no home folder.
    pub fn trust(&self, name: &'static str) -> Result<PathBuf> {
        Ok(or_configured(self.trust.as_deref(), name)?)
    }

    /// What comes after a command that is to use the same file.
    pub fn trust_option(&self) -> String {
        let path = self.trust.as_ref();
        path.map_or(String::new(), |path| format!(" --trust {}", path.display()))
    }
}

/// A control channel to the listener at `host`, and where that is.
///
/// # Errors
/// Nobody listens there, or one end does not trust the other.
pub fn call(host: &str, port: u16, files: &KeyFiles) -> Result<(Control, IpAddr)> {
    let key = files.key()?;
    let path = files.trust(HOSTS)?;
    let trusted = Trusted::read(&path)?.keys_of(host);
    let (socket, address) = open(host, port)?;
    let expected = trusted.clone();
    let peer = connect(
        socket,
        &key,
        PROTOCOL,
        move |key| expected.contains(key),
        KNOWN_WITHIN,
    );
    let peer = peer.map_err(|error| match error {
        AuthError::Untrusted(shown) if trusted.is_empty() => unknown(host, &shown, files),
        AuthError::Untrusted(shown) => anyhow!(
            "{host} has the key {shown}, and not one that {} has for it: somebody may be in its place. If it has a new key, which \
             `fatpath keys show` prints there, remove the line of the old one, and run: fatpath keys trust host {shown} {host}{}",
            path.display(),
            files.trust_option()
        ),
        AuthError::Distrusts => anyhow!(
            "{host} does not trust the key of this end; to be run there: fatpath keys trust caller {} {}",
            key.public(),
            own_name()
        ),
        error => anyhow!("{host}:{port}: {error}; is it `fatpath recv --listen` that listens there?"),
    })?;
    let (from, output) = io::pipe()?;
    let (input, to) = io::pipe()?;
    let relay = thread::spawn(move || peer.relay(from.into(), to.into()));
    Ok((Control::over(input, output, relay), address.ip()))
}

fn unknown(host: &str, key: &PublicKey, files: &KeyFiles) -> anyhow::Error {
    anyhow!(
        "{host} is not known here. It has the key {key}: if `fatpath keys show` prints that there, run: fatpath keys trust host \
         {key} {host}{}",
        files.trust_option()
    )
}

/// The name by which others may know this host.
fn own_name() -> String {
    let system = rustix::system::uname();
    system.nodename().to_string_lossy().into_owned()
}

fn open(host: &str, port: u16) -> Result<(TcpStream, SocketAddr)> {
    let addresses = (host, port).to_socket_addrs();
    let addresses = addresses.with_context(|| format!("{host} has no address here"))?;
    let mut last = None;
    for address in addresses {
        match TcpStream::connect_timeout(&address, CONNECT_WITHIN) {
            Ok(socket) => return Ok((socket, address)),
            Err(error) => last = Some(error),
        }
    }
    match last {
        Some(error) => Err(error).with_context(|| {
            format!(
                "cannot connect to {host}, port {port}: is `fatpath recv --listen` running there, and the port open in its firewall?"
            )
        }),
        None => bail!("{host} has no address here"),
    }
}

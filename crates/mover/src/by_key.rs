// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls a listener: connects, proves this host's key, and holds the other end to the key that this host trusts for it.

use crate::control::Control;
use anyhow::Result;
use fatpath_peer::{Called, HOSTS, KEY, Key, or_configured};
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::thread;

/// What both ends name as what they speak (ALPN).
pub const PROTOCOL: &str = "fatpath-mover";

/// Where keys are.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct KeyFiles {
    /// This host's key, for fatpath:// and --listen [default: key in ~/.config/fatpath, for root in /etc/fatpath]
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// File of trusted keys [default: known_hosts, with --listen authorized_keys, in ~/.config/fatpath, for root in /etc/fatpath]
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
    let (key, trust) = (files.key()?, files.trust(HOSTS)?);
    let called = Called {
        host,
        port,
        protocol: PROTOCOL,
        trust: &trust,
        trust_option: &files.trust_option(),
        listener: "fatpath recv --listen",
        to_be_trusted: &|key| {
            format!(
                "to be run there: fatpath keys trust caller {key} {}",
                own_name()
            )
        },
    };
    let (socket, address) = fatpath_peer::open(&called)?;
    let peer = fatpath_peer::call(socket, &key, &called)?;
    let (from, output) = io::pipe()?;
    let (input, to) = io::pipe()?;
    let relay = thread::spawn(move || peer.relay(from.into(), to.into()));
    Ok((Control::over(input, output, relay), address.ip()))
}

/// The name by which others may know this host.
fn own_name() -> String {
    let system = rustix::system::uname();
    system.nodename().to_string_lossy().into_owned()
}

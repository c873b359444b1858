// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath measure respond`: listens where its file says, until it is told to stop.

use crate::events::Event;
use crate::serve::Server;
use crate::used::{UsedError, UsedFile};
use fatpath_measure::{Clock, Plan};
use fatpath_peer::{Account, AccountError, Came, FileError, Key, Listener, Log};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;

/// What a responder is told.
pub struct Options<'a> {
    /// Reads the file that says where to listen and for whom.
    pub read: &'a dyn Fn() -> Result<Plan, String>,
    /// The file of this end's key.
    pub key: &'a Path,
    /// The file of what peers have used.
    pub used: &'a Path,
    /// Of root's: who answers.
    pub user: Option<&'a str>,
    /// What the kernel says of this host's clock; none: it is not synchronised.
    pub clock: fn() -> Option<Clock>,
    /// Events as JSON.
    pub is_json: bool,
}

/// Why nobody is answered.
#[derive(Debug, thiserror::Error)]
pub enum RespondError {
    /// The file is wrong.
    #[error("{0}")]
    File(String),
    /// The file says nothing of it.
    #[error("no port is opened: the file has no section [responder]")]
    NotConfigured,
    /// As whom.
    #[error(transparent)]
    Account(#[from] AccountError),
    /// The key.
    #[error(transparent)]
    Key(#[from] FileError),
    /// What peers have used.
    #[error(transparent)]
    Used(#[from] UsedError),
    /// The address.
    #[error("cannot listen at {0}")]
    Listen(SocketAddr, #[source] io::Error),
    /// The kernel's.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Answers until SIGTERM or SIGINT. At SIGHUP the file is read again.
///
/// # Errors
/// It cannot begin; see [`RespondError`].
pub fn respond(options: &Options<'_>) -> Result<(), RespondError> {
    let plan = (options.read)().map_err(RespondError::File)?;
    let address = plan.responder.as_ref().map(|responder| responder.listen);
    let address = address.ok_or(RespondError::NotConfigured)?;
    let account = Account::of(options.user)?;
    let key = Key::read(options.key)?;
    let listener =
        TcpListener::bind(address).map_err(|error| RespondError::Listen(address, error))?;
    let owner = account.ids();
    let owner = owner.map(|(uid, gid)| (uid.as_raw(), gid.as_raw()));
    UsedFile::make_folder(options.used, owner)?;
    account.become_it()?;
    let used = UsedFile::take(options.used)?;
    let listener = Listener::new(listener, &[&[SIGINT, SIGTERM], &[SIGHUP]])?;
    let log = Log::new(options.is_json);
    log.note(&Event::Listening {
        address: listener.address()?,
        key: key.public().to_string(),
        peers: plan.peers.len(),
    });
    let server = Arc::new(Server::new(key, options.clock, plan, used, log));
    loop {
        match listener.next()? {
            Came::Connection(socket, from) => server.take(socket, from),
            Came::Signal(0) => {
                server.stop();
                return Ok(());
            }
            Came::Signal(_) => read_again(&server, options),
        }
    }
}

/// A file that is wrong changes nothing. Where to listen stays as it was.
fn read_again(server: &Server, options: &Options<'_>) {
    match (options.read)() {
        Ok(plan) => server.follow(plan),
        Err(error) => server.log().note(&Event::Read {
            peers: 0,
            error: Some(error),
        }),
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath measure respond`: listens where its file says, until it is told to stop.

use crate::events::{Event, Log};
use crate::serve::Server;
use crate::used::{UsedError, UsedFile};
use fatpath_measure::{Clock, Plan};
use fatpath_peer::{Account, AccountError, FileError, Key};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Where the host has no more files to open, it may have some a little later.
const AFTER_ERROR: Duration = Duration::from_millis(100);

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
    let signals = [signal(&[SIGINT, SIGTERM])?, signal(&[SIGHUP])?];
    let log = Log::new(options.is_json);
    log.note(&Event::Listening {
        address: listener.local_addr()?,
        key: key.public().to_string(),
        peers: plan.peers.len(),
    });
    let server = Arc::new(Server::new(key, options.clock, plan, used, log));
    accept_until(&listener, &signals, &server, options)
}

/// Readable once one of the signals has come.
fn signal(signals: &[i32]) -> io::Result<UnixStream> {
    let (read, write) = UnixStream::pair()?;
    read.set_nonblocking(true)?;
    for signal in signals {
        signal_hook::low_level::pipe::register(*signal, write.try_clone()?)?;
    }
    Ok(read)
}

fn accept_until(
    listener: &TcpListener,
    [stop, again]: &[UnixStream; 2],
    server: &Arc<Server>,
    options: &Options<'_>,
) -> Result<(), RespondError> {
    listener.set_nonblocking(true)?;
    loop {
        let mut polled = [
            PollFd::new(listener, PollFlags::IN),
            PollFd::new(stop, PollFlags::IN),
            PollFd::new(again, PollFlags::IN),
        ];
        match poll(&mut polled, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(io::Error::from(error).into()),
        }
        if !polled[1].revents().is_empty() {
            server.stop();
            return Ok(());
        }
        if !polled[2].revents().is_empty() {
            let _ = (&mut &*again).read(&mut [0; 64]); // however many signals there were
            read_again(server, options);
        }
        match listener.accept() {
            Ok((socket, from)) => server.take(socket, from),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => thread::sleep(AFTER_ERROR),
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

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A connection becomes one between two ends that know each other, within a time, or ends.
//!
//! In TLS 1.3 an end that connects does not hear whether its key is trusted before it hears anything at all. So the end that was
//! connected to says [`WELCOME`] as its first byte.

use crate::tls::{self, AuthError, Judge};
use crate::{Key, PublicKey};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustls::{AlertDescription, Connection, Error};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

const WELCOME: u8 = b'+';

/// A connection to an end whose key is known.
pub struct Peer {
    pub(crate) tls: Connection,
    pub(crate) socket: TcpStream,
    key: PublicKey,
}

impl Peer {
    /// What the other end has proved.
    pub fn key(&self) -> PublicKey {
        self.key
    }
}

/// Lets the end that has connected prove its key, and says welcome. `protocol` is what both have to speak.
///
/// # Errors
/// It is not known, or did not say so within `within`.
pub fn accept(
    socket: TcpStream,
    key: &Key,
    protocol: &str,
    trusts: impl Fn(&PublicKey) -> bool + Send + Sync + 'static,
    within: Duration,
) -> Result<Peer, AuthError> {
    let judge = Judge::new(Box::new(trusts));
    let tls = tls::server(key, protocol, judge.clone()).map_err(AuthError::Tls)?;
    let mut shaking = Shaking::new(tls.into(), socket, judge, within)?;
    shaking.until(|tls| !tls.is_handshaking() && !tls.wants_write())?;
    shaking.tls.writer().write_all(&[WELCOME])?;
    shaking.until(|tls| !tls.wants_write())?;
    shaking.known(protocol)
}

/// Proves this end's key to the one at the other end of `socket`, which is to be trusted and to trust this one.
///
/// # Errors
/// One does not trust the other, or that was not clear within `within`.
pub fn connect(
    socket: TcpStream,
    key: &Key,
    protocol: &str,
    trusts: impl Fn(&PublicKey) -> bool + Send + Sync + 'static,
    within: Duration,
) -> Result<Peer, AuthError> {
    let judge = Judge::new(Box::new(trusts));
    let tls = tls::client(key, protocol, judge.clone()).map_err(AuthError::Tls)?;
    let mut shaking = Shaking::new(tls.into(), socket, judge, within)?;
    let mut welcome = [0];
    shaking.until(|tls| matches!(tls.reader().read(&mut welcome), Ok(1)))?;
    match welcome {
        [WELCOME] => shaking.known(protocol),
        _ => Err(AuthError::Tls(Error::General("no welcome".to_owned()))),
    }
}

/// A connection whose ends do not know each other yet.
struct Shaking {
    tls: Connection,
    socket: TcpStream,
    judge: Arc<Judge>,
    end: Instant,
}

impl Shaking {
    fn new(
        tls: Connection,
        socket: TcpStream,
        judge: Arc<Judge>,
        within: Duration,
    ) -> io::Result<Shaking> {
        socket.set_nonblocking(true)?;
        socket.set_nodelay(true)?;
        let end = Instant::now() + within;
        Ok(Shaking {
            tls,
            socket,
            judge,
            end,
        })
    }

    /// Goes on until `is_done`.
    fn until(&mut self, mut is_done: impl FnMut(&mut Connection) -> bool) -> Result<(), AuthError> {
        while !is_done(&mut self.tls) {
            let ready = self.wait()?;
            if ready.contains(PollFlags::OUT) && self.tls.wants_write() {
                unless_blocked(self.tls.write_tls(&mut self.socket))?;
            }
            if ready.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
                self.read()?;
            }
        }
        Ok(())
    }

    fn wait(&self) -> Result<PollFlags, AuthError> {
        let mut events = PollFlags::IN;
        events.set(PollFlags::OUT, self.tls.wants_write());
        wait(&self.socket, events, self.end)?.ok_or(AuthError::Late)
    }

    fn read(&mut self) -> Result<(), AuthError> {
        if let Some(0) = unless_blocked(self.tls.read_tls(&mut self.socket))? {
            return Err(AuthError::Ended);
        }
        self.tls.process_new_packets().map(|_| ()).map_err(|error| {
            // The alert says to the other end what is wrong.
            let _ = self.tls.write_tls(&mut self.socket);
            self.cause(error)
        })
    }

    fn cause(&self, error: Error) -> AuthError {
        match (error, self.judge.proved()) {
            (Error::InvalidCertificate(_), Some(key)) => AuthError::Untrusted(key),
            (Error::AlertReceived(AlertDescription::AccessDenied), _) => AuthError::Distrusts,
            (error, _) => AuthError::Tls(error),
        }
    }

    fn known(self, protocol: &str) -> Result<Peer, AuthError> {
        let speaks_it = self.tls.alpn_protocol() == Some(protocol.as_bytes());
        match self.judge.proved().filter(|_| speaks_it) {
            Some(key) => Ok(Peer {
                tls: self.tls,
                socket: self.socket,
                key,
            }),
            None => Err(AuthError::Tls(Error::NoApplicationProtocol)),
        }
    }
}

/// Waits for `events` until `end`, and gives those that came, if any; `None`: it is `end`.
pub(crate) fn wait(
    socket: &TcpStream,
    events: PollFlags,
    end: Instant,
) -> io::Result<Option<PollFlags>> {
    let rest = end.saturating_duration_since(Instant::now());
    if rest.is_zero() {
        return Ok(None);
    }
    let mut polled = [PollFd::new(socket, events)];
    match poll(&mut polled, Some(&timespec(rest))) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(Some(polled[0].revents())),
        Err(error) => Err(error.into()),
    }
}

/// `None`: it would have waited.
pub(crate) fn unless_blocked(done: io::Result<usize>) -> io::Result<Option<usize>> {
    match done {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
        Err(error) => Err(error),
    }
}

pub(crate) fn timespec(time: Duration) -> Timespec {
    Timespec {
        tv_sec: time.as_secs() as i64,
        tv_nsec: time.subsec_nanos().into(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test ends where it cannot go on
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::os::fd::OwnedFd;
    use std::path::Path;
    use std::sync::mpsc;
    use std::thread;

    const WITHIN: Duration = Duration::from_secs(20);

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let connecting = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (connecting, listener.accept().unwrap().0)
    }

    fn keys(folder: &Path) -> (Key, Key) {
        let make = |name| Key::make(&folder.join(name)).unwrap();
        (make("caller"), make("called"))
    }

    type Shaken = Result<Peer, AuthError>;

    /// The caller's, and the called's; each trusts one key.
    fn shake(
        caller: &Key,
        called: &Key,
        caller_trusts: PublicKey,
        called_trusts: PublicKey,
    ) -> (Shaken, Shaken) {
        let (connecting, accepted) = pair();
        thread::scope(|scope| {
            let called = scope.spawn(move || {
                accept(
                    accepted,
                    called,
                    "test",
                    move |key| *key == called_trusts,
                    WITHIN,
                )
            });
            let trusts = move |key: &PublicKey| *key == caller_trusts;
            let caller = connect(connecting, caller, "test", trusts, WITHIN);
            (caller, called.join().unwrap())
        })
    }

    fn why(shaken: Shaken) -> AuthError {
        shaken.err().expect("it was refused")
    }

    #[test]
    fn ends_that_trust_each_other_know_whom_they_talk_to() {
        let folder = tempfile::tempdir().unwrap();
        let (caller, called) = keys(folder.path());
        let (at_caller, at_called) = shake(&caller, &called, called.public(), caller.public());
        assert_eq!(at_caller.unwrap().key(), called.public());
        assert_eq!(at_called.unwrap().key(), caller.public());
    }

    #[test]
    fn a_caller_that_is_not_trusted_learns_it_and_the_called_knows_its_key() {
        let folder = tempfile::tempdir().unwrap();
        let (caller, called) = keys(folder.path());
        let (at_caller, at_called) = shake(&caller, &called, called.public(), called.public());
        assert!(matches!(why(at_caller), AuthError::Distrusts));
        assert!(matches!(why(at_called), AuthError::Untrusted(key) if key == caller.public()));
    }

    #[test]
    fn a_caller_leaves_an_end_of_another_key() {
        let folder = tempfile::tempdir().unwrap();
        let (caller, called) = keys(folder.path());
        let (at_caller, at_called) = shake(&caller, &called, caller.public(), caller.public());
        assert!(matches!(why(at_caller), AuthError::Untrusted(key) if key == called.public()));
        assert!(at_called.is_err());
    }

    #[test]
    fn who_says_nothing_or_nonsense_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let (_, called) = keys(folder.path());
        let (silent, accepted) = pair();
        let late = accept(
            accepted,
            &called,
            "test",
            |_| true,
            Duration::from_millis(50),
        );
        assert!(matches!(why(late), AuthError::Late));
        drop(silent);
        let (mut talking, accepted) = pair();
        talking.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        let nonsense = accept(accepted, &called, "test", |_| true, WITHIN);
        assert!(matches!(why(nonsense), AuthError::Tls(_)));
        let (gone, accepted) = pair();
        drop(gone);
        assert!(matches!(
            why(accept(accepted, &called, "test", |_| true, WITHIN)),
            AuthError::Ended
        ));
    }

    #[test]
    fn who_speaks_of_something_else_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let (caller, called) = keys(folder.path());
        let (connecting, accepted) = pair();
        thread::scope(|scope| {
            let at_called = scope.spawn(move || accept(accepted, &called, "a", |_| true, WITHIN));
            assert!(connect(connecting, &caller, "b", |_| true, WITHIN).is_err());
            assert!(at_called.join().unwrap().is_err());
        });
    }

    /// Each end says a megabyte, and then nothing more.
    #[test]
    fn all_that_is_said_arrives_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let (caller, called) = keys(folder.path());
        let (at_caller, at_called) = shake(&caller, &called, called.public(), caller.public());
        let said: Vec<u8> = (0..1_000_003_u32)
            .map(|number| (number >> 8) as u8)
            .collect();
        thread::scope(|scope| {
            let ends = [at_caller.unwrap(), at_called.unwrap()].map(|peer| {
                let (from, mut say) = io::pipe().unwrap();
                let (mut hear, to) = io::pipe().unwrap();
                scope.spawn(move || peer.relay(OwnedFd::from(from), OwnedFd::from(to)).unwrap());
                let said = &said;
                scope.spawn(move || say.write_all(said).unwrap());
                scope.spawn(move || {
                    let mut heard = vec![];
                    hear.read_to_end(&mut heard).unwrap();
                    heard
                })
            });
            for heard in ends {
                assert!(heard.join().unwrap() == said);
            }
        });
    }

    /// It is not left lying until something else comes.
    #[test]
    fn what_comes_together_with_the_welcome_arrives() {
        let folder = tempfile::tempdir().unwrap();
        let (caller, called) = keys(folder.path());
        let (connecting, accepted) = pair();
        let at_called = thread::spawn(move || {
            let judge = Judge::new(Box::new(|_| true));
            let tls = tls::server(&called, "test", judge.clone()).unwrap();
            let mut shaking = Shaking::new(tls.into(), accepted, judge, WITHIN).unwrap();
            shaking.until(|tls| !tls.is_handshaking()).unwrap();
            shaking.tls.writer().write_all(b"+more").unwrap();
            shaking.until(|tls| !tls.wants_write()).unwrap();
            shaking
        });
        let peer = connect(connecting, &caller, "test", |_| true, WITHIN).unwrap();
        let _open = at_called.join().unwrap();
        let (from, _say) = io::pipe().unwrap();
        let (mut hear, to) = io::pipe().unwrap();
        thread::spawn(move || peer.relay(from.into(), to.into()));
        let (heard, is_heard) = mpsc::channel();
        thread::spawn(move || {
            let mut more = [0; 4];
            let read = hear.read_exact(&mut more);
            heard.send(read.map(|()| more))
        });
        assert_eq!(&is_heard.recv_timeout(WITHIN).unwrap().unwrap(), b"more");
    }

    /// Nobody waits for an end that is gone.
    #[test]
    fn an_end_that_is_gone_ends_the_other() {
        let folder = tempfile::tempdir().unwrap();
        let (caller, called) = keys(folder.path());
        let (at_caller, at_called) = shake(&caller, &called, called.public(), caller.public());
        drop(at_caller);
        let (from, say) = io::pipe().unwrap();
        let (mut hear, to) = io::pipe().unwrap();
        let relay = thread::spawn(move || at_called.unwrap().relay(from.into(), to.into()));
        let mut heard = vec![];
        hear.read_to_end(&mut heard).unwrap();
        assert!(heard.is_empty());
        drop(say);
        let _ = relay.join().unwrap();
    }
}

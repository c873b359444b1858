// SPDX-License-Identifier: MIT OR Apache-2.0
//! One connection after the other, each in a thread: who is it, is there room, and a process for it.

use super::below::Bounds;
use super::events::Event;
use super::limits::Limits;
use crate::by_key::PROTOCOL;
use crate::protocol::{self, Message};
use anyhow::{Context, Result};
use fatpath_peer::{AuthError, BadLine, Key, Log, Peer, PublicKey, Trusted, Waiting, accept};
use fatpath_tree::shown;
use serde_json::Value;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How long an end has to prove its key.
const KNOWN_WITHIN: Duration = Duration::from_secs(10);
/// How long transfers have to note what they have, once the listener stops.
const STOP_WITHIN: Duration = Duration::from_secs(20);
/// What the process of a transfer may say.
pub(super) const MOST_SAID_BYTES: u64 = 256 << 10;

/// What takes connections.
pub struct Server {
    key: Key,
    trust: PathBuf,
    bounds: Bounds,
    /// Names of callers that may fetch.
    gives_to: Vec<String>,
    limits: Limits,
    log: Log,
    state: Mutex<State>,
    /// A transfer has ended.
    ended: Condvar,
}

#[derive(Default)]
struct State {
    waiting: Waiting,
    /// Those that run, of which key, and their connections.
    transfers: HashMap<u64, (PublicKey, TcpStream)>,
    last: u64,
    stops: bool,
}

/// A connection, and whose.
struct Caller {
    from: SocketAddr,
    name: String,
    /// The address of this host that it has connected to.
    at: Option<IpAddr>,
    peer: Peer,
}

impl Server {
    /// Of transfers into `bounds`, for those whose keys the file `trust` has.
    pub fn new(
        key: Key,
        trust: PathBuf,
        bounds: Bounds,
        gives_to: Vec<String>,
        limits: Limits,
        log: Log,
    ) -> Server {
        Server {
            key,
            trust,
            bounds,
            gives_to,
            limits,
            log,
            state: Mutex::default(),
            ended: Condvar::new(),
        }
    }

    /// Somebody has connected.
    pub fn take(self: &Arc<Server>, socket: TcpStream, from: SocketAddr) {
        let Ok(clone) = socket.try_clone() else {
            return; // there are no more files to open
        };
        let number = self.state().waiting.add(from.ip(), clone);
        let server = self.clone();
        let serve = move || server.admit(number, socket, from);
        if thread::Builder::new().spawn(serve).is_err() {
            self.state().waiting.remove(number);
        }
    }

    /// Ends what runs, and waits for it.
    pub fn stop(&self) {
        let mut state = self.state();
        state.stops = true;
        let transfers = state.transfers.len();
        for (_, socket) in state.transfers.values() {
            let _ = socket.shutdown(Shutdown::Both); // it may be gone
        }
        let runs = |state: &mut State| !state.transfers.is_empty();
        let waited = self.ended.wait_timeout_while(state, STOP_WITHIN, runs);
        drop(waited);
        self.log.note(&Event::Stopped { transfers });
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn admit(&self, number: u64, socket: TcpStream, from: SocketAddr) {
        let clone = socket.try_clone();
        let known = self.known(socket, from);
        if let (Some(caller), Ok(clone)) = (known, clone) {
            match self.begin(number, caller.peer.key(), clone) {
                Ok(transfer) => {
                    self.serve(caller);
                    self.state().transfers.remove(&transfer);
                    self.ended.notify_all();
                    return;
                }
                Err(why) => self.turn_away(caller, why),
            }
        }
        self.state().waiting.remove(number);
    }

    /// Whoever has connected, if it may send.
    fn known(&self, socket: TcpStream, from: SocketAddr) -> Option<Caller> {
        let at = socket.local_addr().ok().and_then(bindable);
        let trust = self.trust.clone();
        let trusts = move |key: &PublicKey| name_of(&trust, key).is_ok_and(|name| name.is_some());
        match accept(socket, &self.key, PROTOCOL, trusts, KNOWN_WITHIN) {
            Ok(peer) => match name_of(&self.trust, &peer.key()) {
                Ok(Some(name)) => {
                    return Some(Caller {
                        from,
                        name,
                        at,
                        peer,
                    });
                }
                // The file has changed since its key was judged.
                _ => self.log.refused_named(from, self.unknown(&peer.key())),
            },
            Err(AuthError::Untrusted(key)) => self.log.refused_named(from, self.unknown(&key)),
            Err(error) => self.log.refused_nameless(from, error.to_string()),
        }
        None
    }

    fn unknown(&self, key: &PublicKey) -> String {
        match Trusted::read(&self.trust) {
            Ok(_) => format!(
                "its key is not trusted; to let it send: fatpath keys trust caller {key} NAME --trust {}",
                self.trust.display()
            ),
            Err(error) => format!("nobody is trusted: {error}"),
        }
    }

    /// Begins a transfer, which is called by what is given; or says why there can be none.
    fn begin(&self, waiting: u64, key: PublicKey, socket: TcpStream) -> Result<u64, String> {
        let mut state = self.state();
        let owners = state.transfers.values().map(|(owner, _)| *owner);
        self.limits.permit(owners, key)?;
        if state.stops {
            return Err("the listener is about to end: try again later".to_owned());
        }
        state.waiting.remove(waiting);
        state.last += 1;
        let number = state.last;
        state.transfers.insert(number, (key, socket));
        Ok(number)
    }

    /// Says why, in the place of the process that would have answered.
    fn turn_away(&self, caller: Caller, why: String) {
        self.log
            .refused_named(caller.from, format!("{}: {why}", caller.name));
        let said = || -> io::Result<()> {
            let (from, mut say) = io::pipe()?;
            protocol::write(&mut say, &Message::Failure(why))?;
            drop(say);
            let nowhere = File::options().write(true).open("/dev/null")?;
            caller.peer.relay(from.into(), nowhere.into())
        };
        let _ = said(); // the caller may be gone
    }

    fn serve(&self, caller: Caller) {
        let Caller {
            from,
            name,
            at,
            peer,
        } = caller;
        self.log.note(&Event::Began { from, name: &name });
        let report = self.transfer(&name, at, peer).unwrap_or_else(
            |error| serde_json::json!({ "errors": [{ "message": format!("{error:#}") }] }),
        );
        self.log.note(&Event::Ended {
            from,
            name: &name,
            report: &report,
        });
    }

    /// Gives what the process says at last.
    fn transfer(&self, name: &str, at: Option<IpAddr>, peer: Peer) -> Result<Value> {
        let mut child = self.start(name, at)?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (input, output) = input.zip(output).context("pipes were asked for")?;
        let errors = child.stderr.take().context("a pipe was asked for")?;
        thread::scope(|scope| {
            let said = scope.spawn(|| self.listen_to(name, errors));
            let broken = peer
                .relay(OwnedFd::from(output), OwnedFd::from(input))
                .err();
            let status = child.wait()?;
            let report = said.join().ok().flatten();
            report.with_context(|| match broken {
                Some(error) => format!("the connection broke: {error}"),
                None => format!("its process ended with {status}"),
            })
        })
    }

    /// Data come to the address that the caller has connected to, and answers from there: its firewall expects no other.
    fn start(&self, name: &str, at: Option<IpAddr>) -> Result<Child> {
        let (first, last) = self.bounds.ports;
        let mut command = Command::new(own_program()?);
        command.args(["recv", "--stdio"]);
        command.args(["--ports", &format!("{first}-{last}")]);
        command.args(["--window", &format!("{}B", self.bounds.window_bytes)]);
        if let Some(at) = at {
            command.args(["--address", &at.to_string()]);
        }
        command.arg("--below").arg(&self.bounds.folder);
        if self.gives_to.iter().any(|given| given == name) {
            command.arg("--below-gives");
        }
        command.env_clear().current_dir("/");
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.process_group(0); // Ctrl-C is for the listener, which ends transfers in order
        command.spawn().context("cannot start a process for it")
    }

    /// The last line that is a report.
    fn listen_to(&self, name: &str, errors: ChildStderr) -> Option<Value> {
        let mut errors = BufReader::new(errors);
        let mut report = None;
        for line in errors.by_ref().take(MOST_SAID_BYTES).lines() {
            let Ok(text) = line else { break };
            match serde_json::from_str::<Value>(&text) {
                Ok(value) if value.is_object() => report = Some(value),
                _ => {
                    let text = &shown(text.as_bytes());
                    self.log.note(&Event::Said { name, text });
                }
            }
        }
        let _ = io::copy(&mut errors, &mut io::sink()); // so that it need not wait
        report
    }
}

/// On Linux also one that was replaced meanwhile.
fn own_program() -> io::Result<PathBuf> {
    match cfg!(target_os = "linux") {
        true => Ok("/proc/self/exe".into()),
        false => std::env::current_exe(),
    }
}

/// One of IPv6 that is the link's says nothing without its interface.
fn bindable(at: SocketAddr) -> Option<IpAddr> {
    match at.ip().to_canonical() {
        IpAddr::V6(address) if address.is_unicast_link_local() => None,
        address => Some(address),
    }
}

fn name_of(trust: &Path, key: &PublicKey) -> Result<Option<String>, BadLine> {
    Ok(Trusted::read(trust)?.name_of(key).map(str::to_owned))
}

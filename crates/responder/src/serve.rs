// SPDX-License-Identifier: MIT OR Apache-2.0
//! One connection after the other, each in a thread: where is it from, whose is it, what does it ask for, and is that within
//! the peer's limits.

use crate::answer::{Answers, answer};
use crate::events::Event;
use crate::iperf3::{self, Granted};
use crate::proof::Proof;
use crate::record::{Recorded, record, say};
use crate::socket::{Pair, is_quiet, now_ns};
use crate::used::{UsedError, UsedFile};
use crate::{PREAMBLE_BYTES, PROTOCOL, SECRET};
use fatpath_measure::{
    Ask, Clock, Cost, Datagrams, Iperf3, Kind, Ledger, MOST_LINE_BYTES, Peer, Plan, Reply,
    Server as Asked, Trains,
};
use fatpath_peer::{AuthError, Key, Log, PublicKey, Waiting, accept};
use fatpath_perform::HostLease;
use std::collections::HashMap;
use std::io::{self, ErrorKind, Read};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

/// How long an end has to say its preamble, and then to prove its key.
const KNOWN_WITHIN: Duration = Duration::from_secs(10);
/// How long a peer has to say what it wants.
const SAID_WITHIN: Duration = Duration::from_secs(10);
const UNKNOWN_CLOCK: &str = "its clock is not synchronised, and `clock_error` under [responder] does not say how wrong it may be";
const NOT_KEPT: &str = "the responder cannot keep what is used";
/// Nobody waits longer until another test has ended.
const MOST_PATIENCE: Duration = Duration::from_secs(3600);
/// Whether who asked still waits is looked at so often.
const WAITS_TICK: Duration = Duration::from_millis(200);
/// How long tests have to end, once the responder stops.
const STOP_WITHIN: Duration = Duration::from_secs(5);

/// What takes connections.
pub struct Server {
    key: Key,
    /// What the kernel says of this host's clock; none: it is not synchronised.
    clock: fn() -> Option<Clock>,
    plan: RwLock<Arc<Plan>>,
    log: Log,
    /// Whoever holds it may wait for the disk, and holds nothing that those who connect wait for.
    books: Mutex<Books>,
    state: Mutex<State>,
    /// A test has ended, or other peers hold.
    ended: Condvar,
}

struct Books {
    ledger: Ledger,
    used: UsedFile,
}

#[derive(Default)]
struct State {
    waiting: Waiting,
    /// Connections of peers that have proved their keys, and what the file said of them then.
    known: HashMap<u64, (TcpStream, Peer)>,
    last: u64,
    /// A test loads this host's path, and holds these; the next one of its kind waits.
    loaded: Option<Vec<HostLease>>,
}

/// A connection whose end is known.
struct Caller {
    from: SocketAddr,
    is: Peer,
    peer: fatpath_peer::Peer,
}

/// Datagrams that were answered or recorded, their bytes, and how the test ended.
type Ran = (u64, u64, io::Result<()>);

impl Server {
    /// For the peers of `plan`, who have used what `ledger` says, which `used` keeps.
    pub fn new(
        key: Key,
        clock: fn() -> Option<Clock>,
        plan: Plan,
        (used, ledger): (UsedFile, Ledger),
        log: Log,
    ) -> Server {
        Server {
            key,
            clock,
            plan: RwLock::new(Arc::new(plan)),
            log,
            books: Mutex::new(Books { ledger, used }),
            state: Mutex::default(),
            ended: Condvar::new(),
        }
    }

    /// Where it says what happens.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// The file was read again.
    pub fn follow(&self, plan: Plan) {
        let peers = plan.peers.len();
        drop(self.adopt(plan));
        self.log.note(&Event::Read { peers, error: None });
    }

    /// From here on these are the peers: whatever was begun by one that has gone, or of which the file says something else now,
    /// ends.
    fn adopt(&self, plan: Plan) -> MutexGuard<'_, State> {
        let state = self.state();
        for (socket, peer) in state.known.values() {
            if !plan.peers.contains(peer) {
                let _ = socket.shutdown(Shutdown::Both); // it may be gone
            }
        }
        *self.plan.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(plan);
        self.ended.notify_all();
        state
    }

    /// Somebody has connected.
    pub fn take(self: &Arc<Server>, socket: TcpStream, from: SocketAddr) {
        if !self.plan().has_peer_at(from.ip()) {
            let why = "no peer of the file is at its address";
            return self.log.refused_nameless(from, why);
        }
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
        let state = self.adopt(Plan::default()); // which has no peers
        let runs = |state: &mut State| !state.known.is_empty();
        drop(self.ended.wait_timeout_while(state, STOP_WITHIN, runs));
        self.log.note(&Event::Stopped {});
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn plan(&self) -> Arc<Plan> {
        let plan = self.plan.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&plan)
    }

    fn admit(&self, waiting: u64, socket: TcpStream, from: SocketAddr) {
        let clone = socket.try_clone();
        let caller = self.known(socket, from);
        self.state().waiting.remove(waiting);
        let (Some(mut caller), Ok(clone)) = (caller, clone) else {
            return;
        };
        let refused = |name: &str, why: String| {
            self.log.refused_named(from, format!("{name}: {why}"));
        };
        match self.begin(&caller, clone) {
            Ok(number) => {
                if let Err(error) = self.serve(&mut caller) {
                    refused(&caller.is.name, error.to_string());
                }
                self.state().known.remove(&number);
                self.ended.notify_all();
            }
            Err(why) => refused(&caller.is.name, why.to_owned()),
        }
    }

    /// Whoever has connected, if it is a peer.
    fn known(&self, mut socket: TcpStream, from: SocketAddr) -> Option<Caller> {
        if let Err(error) = hear_preamble(&mut socket) {
            self.log.refused_nameless(from, error.to_string());
            return None;
        }
        let plan = self.plan();
        let judged = Arc::clone(&plan);
        let trusts = move |key: &PublicKey| judged.peer(from.ip(), &key.to_string()).is_some();
        match accept(socket, &self.key, PROTOCOL, trusts, KNOWN_WITHIN) {
            Ok(peer) => {
                let is = plan.peer(from.ip(), &peer.key().to_string())?.clone();
                return Some(Caller { from, is, peer });
            }
            Err(AuthError::Untrusted(key)) => {
                let why = format!("the file has no peer of the key {key} at this address");
                self.log.refused_named(from, why);
            }
            Err(error) => self.log.refused_nameless(from, error.to_string()),
        }
        None
    }

    /// The number of its connection; or why there can be none.
    fn begin(&self, caller: &Caller, socket: TcpStream) -> Result<u64, &'static str> {
        let mut state = self.state();
        let mut peers = state.known.values().map(|(_, peer)| peer);
        if peers.any(|peer| peer.name == caller.is.name) {
            return Err("another connection of it is open");
        }
        if !self.plan().peers.contains(&caller.is) {
            return Err("the file has changed since it connected");
        }
        state.last += 1;
        let number = state.last;
        state.known.insert(number, (socket, caller.is.clone()));
        Ok(number)
    }

    fn serve(&self, caller: &mut Caller) -> io::Result<()> {
        let line = caller.peer.hear_line(MOST_LINE_BYTES, SAID_WITHIN)?;
        let ask =
            Ask::read(&line).map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
        let (kind, cost) = (ask.kind(), ask.cost(&caller.is));
        let (_loads, now_us) = match self.granted(caller, &ask, &cost) {
            Ok(granted) => granted,
            Err(why) => {
                say(&mut caller.peer, &Reply::Refused { why: why.clone() })?;
                return Err(io::Error::other(why));
            }
        };
        self.log.note(&Event::Began {
            from: caller.from,
            name: &caller.is.name,
            kind,
        });
        let (answered, bytes, ended) = match &ask {
            Ask::Echo(asked) => run_answers(caller, asked, false),
            Ask::OneWay(asked) => run_answers(caller, asked, true),
            Ask::Rate(asked) => self.record(caller, asked),
            Ask::Iperf3(asked) => self.serve_iperf3(caller, asked),
        };
        // What trains bring was kept a train at a time.
        let kept_bytes = if kind == Kind::Rate {
            bytes
        } else {
            cost.bytes
        };
        self.settle(&caller.is, kept_bytes, now_us, bytes);
        if kind == Kind::OneWay {
            let clock = self.clock();
            let _ = say(&mut caller.peer, &Reply::Ended { clock }); // it may be gone
        }
        self.log.note(&Event::Ended {
            from: caller.from,
            name: &caller.is.name,
            kind,
            answered,
            bytes,
        });
        ended
    }

    /// What the test holds while it runs, and since when; or why it cannot be. What is beyond a limit does not wait to be told so,
    /// and limits may have changed while it waited.
    fn granted(
        &self,
        caller: &Caller,
        ask: &Ask,
        cost: &Cost,
    ) -> Result<(Option<Loads<'_>>, i64), String> {
        self.knows_times(ask.kind())?;
        if ask.patience_us().is_some() {
            self.judge(&caller.is, cost)?;
        }
        let loads = self.load(ask, caller)?;
        let now_us = now_us();
        self.grant(&caller.is, cost, now_us)?;
        Ok((loads, now_us))
    }

    fn record(&self, caller: &mut Caller, asked: &Trains) -> Ran {
        let mut recorded = Recorded::default();
        let ended = record(&mut caller.peer, asked, &mut recorded, |train| {
            self.grant_more(&caller.is, train.bytes())
        });
        (recorded.packets, recorded.bytes, ended)
    }

    fn serve_iperf3(&self, caller: &mut Caller, asked: &Asked) -> Ran {
        let rate_bps = asked.rate_bps(caller.is.rate_bps);
        let plan = self.plan();
        let responder = plan.responder.as_ref();
        let granted = Granted {
            port: responder.map_or(Iperf3::PORT, |it| it.iperf3_port),
            rate_bps,
        };
        let duration = Duration::from_micros(asked.duration_us);
        let begun = Instant::now();
        let (bytes, ended) = match iperf3::prepare(caller.peer.socket(), &granted) {
            Ok(server) => server.serve(&mut caller.peer, duration),
            Err(error) => (Some(0), Err(error)),
        };
        if let Err(error) = &ended {
            let why = error.to_string();
            let _ = say(&mut caller.peer, &Reply::Refused { why }); // it may be gone
        }
        // Of a server that did not say it, what it may have been.
        let most_us = asked.duration_us.max(begun.elapsed().as_micros() as u64);
        let most = Asked {
            duration_us: most_us,
            ..*asked
        };
        let served = u64::from(ended.is_ok());
        (served, bytes.unwrap_or(most.bytes(rate_bps)), ended)
    }

    /// A test that loads the path waits until no other one does, as long as who asked waits.
    fn load(&self, ask: &Ask, caller: &Caller) -> Result<Option<Loads<'_>>, String> {
        let Some(patience_us) = ask.patience_us() else {
            return Ok(None);
        };
        let end = Instant::now() + Duration::from_micros(patience_us).min(MOST_PATIENCE);
        let mut state = self.state();
        loop {
            if let Some(loads) = self.try_load(&mut state)? {
                return Ok(Some(loads));
            }
            let rest = end.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                return Err("another test loads its path".to_owned());
            }
            if !is_quiet(caller.peer.socket()) || !self.plan().peers.contains(&caller.is) {
                return Err("it was given up while it waited".to_owned());
            }
            let waited = self.ended.wait_timeout(state, rest.min(WAITS_TICK));
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// `None`: another test loads this host's path, of a peer or of the daemon's schedule.
    fn try_load(&self, state: &mut State) -> Result<Option<Loads<'_>>, String> {
        if state.loaded.is_some() {
            return Ok(None);
        }
        let leases = HostLease::take_all(&self.plan().responder_resources());
        let leases = leases.map_err(|error| format!("no lease on its resource: {error}"))?;
        Ok(leases.map(|leases| {
            state.loaded = Some(leases);
            Loads(self)
        }))
    }

    fn judge(&self, peer: &Peer, cost: &Cost) -> Result<(), String> {
        let judged = self.books().ledger.judge(peer, cost, now_us());
        judged.map_err(|refusal| refusal.to_string())
    }

    /// What is known of this host's clock.
    fn clock(&self) -> Option<Clock> {
        let plan = self.plan();
        let error_us = plan.responder.as_ref().and_then(|it| it.clock_error_us);
        error_us.map(Clock::within).or_else(self.clock)
    }

    fn knows_times(&self, kind: Kind) -> Result<(), String> {
        match kind == Kind::OneWay && self.clock().is_none() {
            true => Err(UNKNOWN_CLOCK.to_owned()),
            false => Ok(()),
        }
    }

    /// Keeps what the test may send, on the disk too, before anything is sent.
    fn grant(&self, peer: &Peer, cost: &Cost, now_us: i64) -> Result<(), String> {
        let mut books = self.books();
        let judged = books.ledger.begin(peer, cost, now_us);
        let kept = self.keep(&books);
        if judged.is_ok() && kept.is_err() {
            let day = books.ledger.of(&peer.name, now_us).day;
            books.ledger.end(&peer.name, day, cost.bytes, 0);
        }
        judged.map_err(|refusal| refusal.to_string())?;
        kept.map_err(|_| NOT_KEPT.to_owned())
    }

    /// The same of a train, before it is waited for.
    fn grant_more(&self, peer: &Peer, bytes: u64) -> Result<(), String> {
        let now_us = now_us();
        let mut books = self.books();
        let judged = books.ledger.more(peer, bytes, now_us);
        judged.map_err(|refusal| refusal.to_string())?;
        self.keep(&books).map_err(|_| {
            let day = books.ledger.of(&peer.name, now_us).day;
            books.ledger.give_back(&peer.name, day, bytes);
            NOT_KEPT.to_owned()
        })
    }

    fn settle(&self, peer: &Peer, kept_bytes: u64, begun_us: i64, used_bytes: u64) {
        let mut books = self.books();
        let day = books.ledger.of(&peer.name, begun_us).day;
        books.ledger.end(&peer.name, day, kept_bytes, used_bytes);
        // It is said; until the next is kept, the file has more than was used.
        let _ = self.keep(&books);
    }

    fn keep(&self, books: &Books) -> Result<(), UsedError> {
        let kept = books.used.write(&books.ledger);
        if let Err(error) = &kept {
            let error = error.to_string();
            self.log.note(&Event::NotKept { error });
        }
        kept
    }
}

/// A test that loads this host's path, until it has ended.
struct Loads<'a>(&'a Server);

impl Drop for Loads<'_> {
    fn drop(&mut self) {
        self.0.state().loaded = None;
        self.0.ended.notify_all();
    }
}

/// What comes before TLS, so that a stranger gets no more than it has sent.
fn hear_preamble(socket: &mut TcpStream) -> io::Result<()> {
    let end = Instant::now() + KNOWN_WITHIN;
    let mut preamble = [0; PREAMBLE_BYTES];
    let mut heard = 0;
    while heard < preamble.len() {
        let rest = end.saturating_duration_since(Instant::now());
        if rest.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        socket.set_read_timeout(Some(rest))?;
        match socket.read(&mut preamble[heard..]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(bytes) => heard += bytes,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    match preamble == [0; PREAMBLE_BYTES] {
        true => Ok(()),
        false => {
            let said = "what it says is not what fatpath says";
            Err(io::Error::new(ErrorKind::InvalidData, said))
        }
    }
}

/// µs since 1970.
fn now_us() -> i64 {
    (now_ns() / 1000) as i64
}

fn run_answers(caller: &mut Caller, asked: &Datagrams, with_times: bool) -> Ran {
    let mut answers = Answers::new(asked, with_times);
    let ended = run(caller, asked, &mut answers);
    let answered = answers.count();
    (answered, answered * asked.wire_bytes(), ended)
}

fn run(caller: &mut Caller, asked: &Datagrams, answers: &mut Answers<'_>) -> io::Result<()> {
    let proof = Proof::new(&caller.peer.secret(SECRET)?);
    let connection = caller.peer.socket().try_clone()?;
    let mut pair = Pair::bind(&connection, connection.local_addr()?.port())?;
    pair.connect(asked.port)?;
    say(&mut caller.peer, &Reply::Granted {})?;
    answer(&mut pair, &proof, answers)
}

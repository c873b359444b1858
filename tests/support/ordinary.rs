// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ordinary traffic of a day, of which nothing is wrong: what `fatpath why` calls a warning or a problem here is false.

use super::causes::{PORT, views};
use super::{Daemon, Lab};
use fatpath_api::Severity;
use socket2::SockRef;
use std::collections::BTreeMap;
use std::io::{Read, Result, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, Scope, sleep};
use std::time::{Duration, Instant};

/// How long each shape lasts: some spans of the findings' one second.
const LASTS: Duration = Duration::from_secs(15);
const POLLED: Duration = Duration::from_millis(300);

/// One kind of traffic over one path.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub name: &'static str,
    link: &'static str,
    congestion: &'static str,
    /// Clients at a time.
    clients: u64,
    habit: Habit,
}

/// What a client does.
#[derive(Clone, Copy, Debug)]
enum Habit {
    /// A page: some objects of 5 to 100 kB on one connection, with pauses, so that no path is overloaded.
    Browses,
    /// A database's questions.
    Asks,
    /// A terminal's keystrokes and their echoes.
    Types,
    /// Segments of a film.
    Watches,
    BacksUp,
}

const NEAR: &str = "rate = '200mbit'\ndelay = '500us'\nqueue = '200pkts'";
const MIDDLE: &str = "rate = '100mbit'\ndelay = '10ms'\nqueue = '1bdp'";
const FAR: &str = "rate = '50mbit'\ndelay = '50ms'\nqueue = '1bdp'";

const fn shape(name: &'static str, link: &'static str, clients: u64) -> Shape {
    Shape {
        name,
        link,
        congestion: "cubic",
        clients,
        habit: Habit::Browses,
    }
}

pub const SHAPES: [Shape; 10] = [
    shape("web-near", NEAR, 30),
    shape("web", MIDDLE, 30),
    shape("web-far", FAR, 20),
    Shape {
        congestion: "bbr",
        ..shape("web-bbr", MIDDLE, 30)
    },
    Shape {
        habit: Habit::Asks,
        ..shape("database", NEAR, 20)
    },
    Shape {
        habit: Habit::Types,
        ..shape("ssh", MIDDLE, 20)
    },
    Shape {
        habit: Habit::Watches,
        ..shape("video", MIDDLE, 8)
    },
    Shape {
        habit: Habit::BacksUp,
        ..shape("backup", MIDDLE, 1)
    },
    Shape {
        habit: Habit::BacksUp,
        ..shape("backup-far", FAR, 1)
    },
    Shape {
        habit: Habit::BacksUp,
        congestion: "bbr",
        ..shape("backup-bbr", FAR, 1)
    },
];

/// What came of a shape.
#[derive(Debug, Default)]
pub struct Judged {
    /// Ends of connections: each is a flow.
    pub flows: u64,
    /// Findings of them, warnings and problems only.
    pub findings: Vec<String>,
}

impl Shape {
    /// Emulates it, and asks all the time.
    pub fn judge(&self) -> Judged {
        let lab = Lab::up("ordinary", self.link);
        let law = format!("net.ipv4.tcp_congestion_control={}", self.congestion);
        for host in ["a", "b"] {
            lab.output(host, &["sysctl", "-w", &law]);
        }
        let daemon = Daemon::start("# tunes nothing\n");
        let address = format!("{}:{PORT}", lab.address("b"));
        let listener = lab.on("b", || TcpListener::bind(&address).unwrap());
        let connections = AtomicU64::new(0);
        let ends = Instant::now() + LASTS;
        let mut found = BTreeMap::new();
        thread::scope(|scope| {
            scope.spawn(|| serve(&listener, scope));
            let (lab, address, connections) = (&lab, &address, &connections);
            let clients = (0..self.clients).map(|number| Client {
                lab,
                address,
                connections,
                number,
                ends,
            });
            let threads: Vec<_> = clients
                .map(|client| {
                    scope.spawn(
                        move || while client.lives(self.habit).is_ok() && !client.is_over() {},
                    )
                })
                .collect();
            while threads.iter().any(|thread| !thread.is_finished()) {
                note(&daemon, &mut found);
                sleep(POLLED);
            }
            // The listener's last connection.
            let last = lab.on("a", || TcpStream::connect(address)).unwrap();
            (&last).write_all(&header(0, 0)).unwrap();
        });
        Judged {
            flows: 2 * connections.load(Ordering::Relaxed),
            findings: found.into_values().collect(),
        }
    }
}

/// Each finding of each flow, once.
fn note(daemon: &Daemon, found: &mut BTreeMap<(u64, String), String>) {
    for view in views(daemon) {
        let grave = view
            .findings
            .iter()
            .filter(|one| one.severity > Severity::Info);
        for finding in grave {
            let told = format!("{} {}: {:?}", finding.id, view.sample.law, finding.evidence);
            found.insert((view.flow.cookie, finding.id.clone()), told);
        }
    }
}

/// A request's bytes that follow, and those of the answer; both 0 ends the server.
fn header(request_bytes: u32, answer_bytes: u32) -> [u8; 8] {
    let both = u64::from(request_bytes) << 32 | u64::from(answer_bytes);
    both.to_be_bytes()
}

fn serve<'s>(listener: &'s TcpListener, scope: &'s Scope<'s, '_>) {
    loop {
        let stream = listener.accept().unwrap().0;
        let mut first = [0; 8];
        if (&stream).read_exact(&mut first).is_err() {
            continue;
        }
        if first == header(0, 0) {
            return;
        }
        scope.spawn(move || answer(&stream, first));
    }
}

/// Until the client closes.
fn answer(mut stream: &TcpStream, first: [u8; 8]) -> Result<()> {
    let mut asked = first;
    loop {
        let both = u64::from_be_bytes(asked);
        let mut request = vec![0; 65_536];
        let mut left = (both >> 32) as usize;
        while left > 0 {
            let most = left.min(request.len());
            stream.read_exact(&mut request[..most])?;
            left -= most;
        }
        stream.write_all(&vec![7; both as u32 as usize])?;
        stream.read_exact(&mut asked)?;
    }
}

/// A program at `a` that talks to the server at `b`.
struct Client<'s> {
    lab: &'s Lab,
    address: &'s str,
    connections: &'s AtomicU64,
    number: u64,
    ends: Instant,
}

impl Client<'_> {
    fn is_over(&self) -> bool {
        Instant::now() >= self.ends
    }

    fn connect(&self) -> Result<TcpStream> {
        let stream = self.lab.on("a", || TcpStream::connect(self.address))?;
        SockRef::from(&stream).set_tcp_nodelay(true)?;
        self.connections.fetch_add(1, Ordering::Relaxed);
        Ok(stream)
    }

    fn lives(&self, habit: Habit) -> Result<()> {
        match habit {
            Habit::Browses => self.browses(),
            Habit::Asks => self.repeats(200, 2_000, Duration::from_millis(5)),
            Habit::Types => self.repeats(40, 40, Duration::from_millis(120)),
            Habit::Watches => self.repeats(300, 1_000_000, Duration::from_millis(1_500)),
            Habit::BacksUp => self.repeats(4_000_000, 1, Duration::ZERO),
        }
    }

    fn browses(&self) -> Result<()> {
        let stream = self.connect()?;
        for object in 0..4 {
            let bytes = 5_000 + (self.number * 7_919 + object * 31_337) % 95_000;
            exchange(&stream, 400, bytes as u32)?;
            sleep(Duration::from_millis(200 + 20 * (self.number % 5)));
        }
        sleep(Duration::from_millis(100));
        Ok(())
    }

    /// One connection until the end.
    fn repeats(&self, request_bytes: u32, answer_bytes: u32, pause: Duration) -> Result<()> {
        let stream = self.connect()?;
        while !self.is_over() {
            exchange(&stream, request_bytes, answer_bytes)?;
            sleep(pause);
        }
        Ok(())
    }
}

fn exchange(mut stream: &TcpStream, request_bytes: u32, answer_bytes: u32) -> Result<()> {
    let mut request = header(request_bytes, answer_bytes).to_vec();
    request.resize(8 + request_bytes as usize, 0);
    stream.write_all(&request)?;
    stream.read_exact(&mut vec![0; answer_bytes as usize])
}

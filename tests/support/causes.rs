// SPDX-License-Identifier: MIT OR Apache-2.0
//! Known causes of slow flows: a path, what the two hosts do on it, and what `fatpath why` has to say.

use super::{Daemon, Lab};
use fatpath_api::endpoint::GetFlowViews;
use fatpath_api::{Finding, FlowView};
use fatpath_daemon::client;
use socket2::{SockRef, Socket};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::thread::{self, JoinHandle, sleep};
use std::time::Duration;

/// What the flows of a cause do.
#[derive(Clone, Copy, Debug)]
pub enum Traffic {
    /// So many flows send as fast as they can.
    Bulk(u32),
    /// One, whose program sets SO_SNDBUF.
    SendBuffer(usize),
    /// One, whose receiving program sets SO_RCVBUF.
    ReceiveBuffer(usize),
    /// The program sends so many bytes ten times a second.
    Paced(usize),
    /// The receiving program reads so many bytes ten times a second.
    SlowReader(usize),
    /// So many bytes, then the answer is waited for.
    Messages(usize),
    /// A message in two writes, then the answer is waited for.
    TwoWrites,
    /// So many bytes ahead of what the receiving program has said to have read.
    OwnWindow(usize),
    /// As fast as it can, with so many bytes unsent at most (TCP_NOTSENT_LOWAT), at a rate of its own.
    LowWater(u32),
    /// As fast as it can, while the receiving program sends a byte ten times a second.
    Chatty,
    /// The peer is not there any more after the handshake.
    Vanished,
}

/// One cause.
#[derive(Clone, Copy, Debug)]
pub struct Cause {
    pub name: &'static str,
    pub link: &'static str,
    /// Host, sysctl.
    pub sysctls: &'static [(&'static str, &'static str)],
    pub policy: &'static str,
    pub traffic: Traffic,
    /// Findings at the sender, and at the receiver.
    pub wanted: &'static [&'static str],
    pub wanted_at_receiver: &'static [&'static str],
}

const PATH: &str = "rate = '50mbit'\ndelay = '10ms'\nqueue = '1bdp'";

const BULK: Cause = Cause {
    name: "",
    link: PATH,
    sysctls: &[],
    policy: "# tunes nothing\n",
    traffic: Traffic::Bulk(1),
    wanted: &[],
    wanted_at_receiver: &[],
};

/// A blackout of 1 s every 2.5 s.
const BLACKOUTS: &str = "rate = '50mbit'\ndelay = '10ms'\nqueue = '1bdp'\nloss = { windows = [\
    { from = '1s', until = '2s', share = '100%' }, { from = '3.5s', until = '4.5s', share = '100%' }, \
    { from = '6s', until = '7s', share = '100%' }, { from = '8.5s', until = '9.5s', share = '100%' }, \
    { from = '11s', until = '12s', share = '100%' }, { from = '13.5s', until = '14.5s', share = '100%' }, \
    { from = '16s', until = '17s', share = '100%' } ] }";

/// What is slow by somebody's choice, or not at all, and what has another cause than it seems.
pub const HEALTHY: [Cause; 5] = [
    Cause {
        name: "healthy-bbr",
        sysctls: &[("a", "net.ipv4.tcp_congestion_control=bbr")],
        ..BULK
    },
    // BBR does not answer to such losses.
    Cause {
        name: "bbr-random-loss",
        link: "rate = '50mbit'\ndelay = '10ms'\nqueue = '1bdp'\nloss = '0.5%'",
        sysctls: &[("a", "net.ipv4.tcp_congestion_control=bbr")],
        ..BULK
    },
    // SOCK_NOSPACE is set by the low-water mark, not by the buffer.
    Cause {
        name: "low-water",
        traffic: Traffic::LowWater(16_384),
        ..BULK
    },
    Cause {
        name: "healthy",
        ..BULK
    },
    Cause {
        name: "healthy-reno",
        sysctls: &[("a", "net.ipv4.tcp_congestion_control=reno")],
        ..BULK
    },
];

pub const CAUSES: [Cause; 20] = [
    Cause {
        name: "application-window",
        link: "rate = '100mbit'\ndelay = '20ms'\nqueue = '1bdp'",
        traffic: Traffic::OwnWindow(131_072),
        wanted: &["FP-APP-WINDOW"],
        ..BULK
    },
    Cause {
        name: "policer",
        link: "rate = '100mbit'\ndelay = '10ms'\nqueue = '1bdp'\npolicer = { rate = '20mbit', burst = '64KiB' }",
        wanted: &["FP-POLICED"],
        ..BULK
    },
    // A switch: round trips of 0.2 ms and more, its buffer filled by many at once.
    Cause {
        name: "incast",
        link: "rate = '200mbit'\ndelay = '100us'\nqueue = '60pkts'",
        traffic: Traffic::Bulk(6),
        wanted: &["FP-LOSS-CONGESTION"],
        ..BULK
    },
    Cause {
        name: "vanished-client",
        traffic: Traffic::Vanished,
        wanted: &["FP-RTO"],
        ..BULK
    },
    Cause {
        name: "application",
        traffic: Traffic::Paced(60_000),
        wanted: &["FP-APP-LIMITED"],
        ..BULK
    },
    Cause {
        name: "send-buffer",
        sysctls: &[("a", "net.ipv4.tcp_wmem=4096 16384 32768")],
        wanted: &["FP-SNDBUF"],
        ..BULK
    },
    Cause {
        name: "locked-send-buffer",
        traffic: Traffic::SendBuffer(16_384),
        wanted: &["FP-BUFFER-LOCKED"],
        ..BULK
    },
    // The rule locks nothing: the program does.
    Cause {
        name: "locked-under-a-rule",
        policy: "[[rule]]\nname = 'window'\ndestination_ports = [7001]\ninitial_window = 10\n",
        traffic: Traffic::SendBuffer(16_384),
        wanted: &["FP-BUFFER-LOCKED"],
        ..BULK
    },
    Cause {
        name: "receive-window",
        sysctls: &[("b", "net.ipv4.tcp_rmem=4096 32768 32768")],
        wanted: &["FP-RWND"],
        ..BULK
    },
    Cause {
        name: "locked-receive-buffer",
        traffic: Traffic::ReceiveBuffer(16_384),
        wanted: &["FP-RWND"],
        wanted_at_receiver: &["FP-BUFFER-LOCKED"],
        ..BULK
    },
    Cause {
        name: "window-scale",
        link: "rate = '50mbit'\ndelay = '20ms'\nqueue = '1bdp'",
        sysctls: &[("b", "net.ipv4.tcp_window_scaling=0")],
        wanted: &["FP-RWND-SCALE"],
        ..BULK
    },
    Cause {
        name: "slow-reader",
        traffic: Traffic::SlowReader(60_000),
        wanted: &["FP-READER"],
        ..BULK
    },
    Cause {
        name: "window-clamp",
        policy: "[[rule]]\nname = 'clamped'\ndestination_ports = [7001]\ncwnd_clamp = 20\n",
        wanted: &["FP-CWND"],
        ..BULK
    },
    Cause {
        name: "timeouts",
        link: BLACKOUTS,
        wanted: &["FP-RTO"],
        ..BULK
    },
    Cause {
        name: "congestion",
        link: "rate = '20mbit'\ndelay = '10ms'\nqueue = '40pkts'",
        traffic: Traffic::Bulk(6),
        wanted: &["FP-LOSS-CONGESTION"],
        ..BULK
    },
    Cause {
        name: "random-loss",
        link: "rate = '50mbit'\ndelay = '10ms'\nqueue = '1bdp'\nloss = '0.5%'",
        wanted: &["FP-LOSS-RANDOM"],
        ..BULK
    },
    Cause {
        name: "reordering",
        link: "rate = '50mbit'\ndelay = '10ms'\nqueue = '1bdp'\nreorder = { share = '1%', by = 20, hold = '10ms' }",
        wanted: &["FP-REORDERING"],
        ..BULK
    },
    Cause {
        name: "bufferbloat",
        link: "rate = '20mbit'\ndelay = '10ms'\nqueue = '2MB'",
        wanted: &["FP-BUFFERBLOAT"],
        ..BULK
    },
    Cause {
        name: "delayed-ack",
        link: "rate = '50mbit'\ndelay = '2ms'",
        traffic: Traffic::TwoWrites,
        wanted: &["FP-DELACK"],
        ..BULK
    },
    Cause {
        name: "tail-loss",
        link: "rate = '50mbit'\ndelay = '10ms'\nqueue = '1bdp'\nforward.loss = '15%'",
        // Without its probe the tail's loss is found by the timer alone.
        sysctls: &[("a", "net.ipv4.tcp_early_retrans=0")],
        traffic: Traffic::Messages(2_500),
        wanted: &["FP-TAIL-LOSS"],
        ..BULK
    },
];

/// Apart, for its flow never moves.
pub const BLACK_HOLE: Cause = Cause {
    name: "path-mtu",
    link: "rate = '50mbit'\ndelay = '10ms'\nqueue = '1bdp'\npath_mtu = 1300",
    // 2: what ICMP says of the path MTU is not heard.
    sysctls: &[("a", "net.ipv4.ip_no_pmtu_disc=2")],
    traffic: Traffic::Chatty,
    wanted: &["FP-PMTU-BLACKHOLE"],
    ..BULK
};

pub const PORT: u16 = 7001;
/// Long enough for slow start to be over, and for the walk to have passed once.
const LASTS: Duration = Duration::from_secs(8);

/// What `fatpath why` said at both ends, and what it should have said.
pub struct Verdict {
    pub sender: BTreeSet<String>,
    pub receiver: BTreeSet<String>,
    pub is_right: bool,
    /// For whoever has to find out.
    pub report: String,
}

/// What a finding promised, and what its cure gave: goodput over that before.
pub struct Gain {
    pub finding: String,
    pub expected: f64,
    pub reached: f64,
}

/// Both ends of the flows of a cause have the lines, for a cure may be the receiving host's.
fn cured(lines: &str) -> String {
    let rule =
        |name: &str, side: &str| format!("[[rule]]\nname = '{name}'\n{side} = [{PORT}]\n{lines}\n");
    let sysctls = "[host.sysctl]\n'net.core.rmem_max' = 'auto'\n'net.core.wmem_max' = 'auto'\n";
    sysctls.to_owned() + &rule("to", "destination_ports") + &rule("from", "source_ports")
}

/// Without remarks; `None` of a cure that is not, or not only, lines of a rule, and of a metric of routes, which are
/// those of the daemon's network namespace.
fn lines_of_rule(cure: &str) -> Option<String> {
    let lines: Vec<&str> = cure.lines().filter(|line| !line.starts_with('#')).collect();
    let is_elsewhere = |line: &str| line.starts_with('[') || line.starts_with("reordering");
    let is_rules = !lines.is_empty() && !lines.iter().any(|line| is_elsewhere(line));
    is_rules.then(|| lines.join("\n"))
}

impl Cause {
    /// Emulates the cause, applies the cure that is offered, and begins again. `None` where no cure of a rule is
    /// offered, or no gain is expected of it.
    pub fn gain(&self) -> Option<Gain> {
        let daemon = Daemon::start(self.policy);
        let (before_bps, findings) = self.run(&daemon);
        let offered = findings.into_iter().find_map(|finding| {
            let lines = lines_of_rule(finding.cure.as_deref()?)?;
            Some((finding.id, finding.gain, cured(&lines)))
        });
        let (finding, expected, policy) = offered?;
        let expected = expected?;
        let applied = daemon.apply(&policy);
        let said = String::from_utf8_lossy(&applied.stderr).into_owned();
        assert!(applied.status.success(), "{policy}: {said}");
        let (after_bps, _) = self.run(&daemon);
        Some(Gain {
            finding,
            expected,
            reached: after_bps / before_bps,
        })
    }

    /// The sender's goodput, and what was found of it, on a path that begins anew: what happens to it does so at times
    /// of its own.
    fn run(&self, daemon: &Daemon) -> (f64, Vec<Finding>) {
        let lab = Lab::up("gain", self.link);
        for (host, sysctl) in self.sysctls {
            lab.output(host, &["sysctl", "-w", sysctl]);
        }
        let flows = Flows::start(&lab, self.traffic);
        let local: BTreeSet<_> = flows
            .ends
            .iter()
            .filter_map(|end| end.local_addr().ok())
            .collect();
        sleep(LASTS);
        let mut views = views(daemon);
        views.retain(|view| view.flow.remote.port() == PORT && local.contains(&view.flow.local));
        let goodput_bps = |view: &FlowView| {
            let s = &view.sample;
            s.bytes_acked as f64 * 8e9 / s.now_ns.saturating_sub(s.begin_ns).max(1) as f64
        };
        let all_bps = views.iter().map(goodput_bps).sum();
        flows.end();
        (
            all_bps,
            views.into_iter().flat_map(|view| view.findings).collect(),
        )
    }

    /// Emulates the cause on a lab with its link, without a daemon.
    pub fn happen(&self, lab: &Lab) {
        for (host, sysctl) in self.sysctls {
            lab.output(host, &["sysctl", "-w", sysctl]);
        }
        let flows = Flows::start(lab, self.traffic);
        sleep(LASTS);
        flows.end();
    }

    /// Emulates the cause and asks.
    pub fn judge(&self) -> Verdict {
        let lab = Lab::up("why", self.link);
        for (host, sysctl) in self.sysctls {
            lab.output(host, &["sysctl", "-w", sysctl]);
        }
        let daemon = Daemon::start(self.policy);
        let flows = Flows::start(&lab, self.traffic);
        sleep(LASTS);
        let views = views(&daemon);
        let found = |port| ids(&views, port);
        let (sender, receiver) = (
            found(|view| view.flow.remote.port()),
            found(|view| view.flow.local.port()),
        );
        let set = |ids: &[&str]| {
            ids.iter()
                .map(|id| (*id).to_owned())
                .collect::<BTreeSet<_>>()
        };
        let is_right = sender == set(self.wanted) && receiver == set(self.wanted_at_receiver);
        let text = String::from_utf8(daemon.ask(&["why"]).stdout).unwrap();
        let views = serde_json::to_string(&views).unwrap();
        let report = format!("{text}\n{views}\n{}", daemon.stderr());
        flows.end();
        Verdict {
            sender,
            receiver,
            is_right,
            report,
        }
    }
}

/// The flows of the port, both ends.
pub fn views(daemon: &Daemon) -> Vec<FlowView> {
    let socket = daemon.path("run/fatpath.sock");
    let mut views = client::get::<GetFlowViews>(&socket).unwrap().unwrap();
    views.retain(|view| [view.flow.remote.port(), view.flow.local.port()].contains(&PORT));
    views
}

/// Findings of all flows whose end that `port` gives is at the port.
fn ids(views: &[FlowView], port: fn(&FlowView) -> u16) -> BTreeSet<String> {
    let findings = views
        .iter()
        .filter(|view| port(view) == PORT)
        .flat_map(|view| &view.findings);
    findings.map(|finding| finding.id.clone()).collect()
}

/// Running flows, and their threads.
struct Flows {
    ends: Vec<TcpStream>,
    threads: Vec<JoinHandle<()>>,
}

impl Flows {
    fn start(lab: &Lab, traffic: Traffic) -> Flows {
        let mut flows = Flows {
            ends: Vec::new(),
            threads: Vec::new(),
        };
        let address = format!("{}:{PORT}", lab.address("b"));
        let listener = lab.on("b", || TcpListener::bind(&address).unwrap());
        if let Traffic::ReceiveBuffer(bytes) = traffic {
            SockRef::from(&listener)
                .set_recv_buffer_size(bytes)
                .unwrap();
        }
        let count = if let Traffic::Bulk(count) = traffic {
            count
        } else {
            1
        };
        for _ in 0..count {
            let sender = lab.on("a", || connected(&address, traffic));
            let receiver = listener.accept().unwrap().0;
            if let Traffic::Vanished = traffic {
                lab.set("loss=100%");
            }
            flows.carry(sender, receiver, traffic);
        }
        flows
    }

    fn carry(&mut self, sender: TcpStream, receiver: TcpStream, traffic: Traffic) {
        self.ends.push(sender.try_clone().unwrap());
        self.ends.push(receiver.try_clone().unwrap());
        self.threads
            .push(thread::spawn(move || send(sender, traffic)));
        self.threads
            .push(thread::spawn(move || receive(receiver, traffic)));
    }

    /// Shuts both ends, whatever their threads wait for.
    fn end(self) {
        for end in &self.ends {
            SockRef::from(end).set_linger(Some(Duration::ZERO)).unwrap();
            let _ = end.shutdown(Shutdown::Both);
        }
        drop(self.ends);
        for thread in self.threads {
            thread.join().unwrap();
        }
    }
}

fn connected(address: &str, traffic: Traffic) -> TcpStream {
    let address: std::net::SocketAddr = address.parse().unwrap();
    let socket = Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    if let Traffic::SendBuffer(bytes) = traffic {
        socket.set_send_buffer_size(bytes).unwrap();
    }
    socket.connect(&address.into()).unwrap();
    if let Traffic::LowWater(bytes) = traffic {
        set(&socket, (libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT), bytes);
        set(
            &socket,
            (libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE),
            2_500_000,
        );
    }
    socket.into()
}

#[allow(unsafe_code)]
fn set(socket: &Socket, (level, option): (i32, i32), value: u32) {
    let (value, length) = ((&raw const value).cast(), size_of::<u32>() as u32);
    // SAFETY: the kernel reads as many bytes as a u32 has.
    let answer = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, value, length) };
    assert_eq!(answer, 0, "{}", std::io::Error::last_os_error());
}

/// What the receiving program reads before it says so.
const READ_BYTES: usize = 32_768;

fn send(mut socket: TcpStream, traffic: Traffic) {
    let mut answer = [0];
    if let Traffic::OwnWindow(bytes) = traffic {
        // The first window; from then on as much as the peer says to have read.
        socket.write_all(&vec![0; bytes]).unwrap();
    }
    let mut step = || match traffic {
        Traffic::Paced(bytes) => {
            sleep(Duration::from_millis(100));
            socket.write_all(&vec![0; bytes])
        }
        Traffic::Messages(bytes) => {
            socket.write_all(&vec![0; bytes])?;
            socket.read_exact(&mut answer)
        }
        Traffic::TwoWrites => {
            socket.write_all(&[0; 100])?;
            socket.write_all(&[0; 100])?;
            socket.read_exact(&mut answer)
        }
        Traffic::OwnWindow(_) => {
            socket.read_exact(&mut answer)?;
            socket.write_all(&[0; READ_BYTES])
        }
        _ => socket.write_all(&[0; 65536]),
    };
    while step().is_ok() {}
}

fn receive(mut socket: TcpStream, traffic: Traffic) {
    let mut step = || match traffic {
        Traffic::SlowReader(bytes) => {
            sleep(Duration::from_millis(100));
            socket.read_exact(&mut vec![0; bytes])
        }
        Traffic::Messages(bytes) => {
            socket.read_exact(&mut vec![0; bytes])?;
            socket.write_all(&[0])
        }
        Traffic::TwoWrites => {
            socket.read_exact(&mut [0; 200])?;
            socket.write_all(&[0])
        }
        Traffic::OwnWindow(_) => {
            socket.read_exact(&mut [0; READ_BYTES])?;
            socket.write_all(&[0])
        }
        Traffic::Chatty => {
            sleep(Duration::from_millis(100));
            socket.write_all(&[0])
        }
        _ => match socket.read(&mut [0; 65536]) {
            Ok(0) => Err(std::io::ErrorKind::UnexpectedEof.into()),
            read => read.map(|_| ()),
        },
    };
    while step().is_ok() {}
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flows that no rule of the policy matches get what was learned of their paths, and follow when it changes.

use crate::support::{Loaded, turn};
use fatpath_abi::fp_flow;
use fatpath_clock::monotonic_ns;
use fatpath_kernel::{KnownPath, PathAddresses, PathChange, PathRule};
use fatpath_policy::{Classifier, Policy, Prefix, parse};
use libbpf_rs::{MapCore, MapFlags};
use socket2::{Domain, Socket, Type};
use std::io::{Read, Write};
use std::mem::offset_of;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

const HOST: &str = "127.0.24.1";

/// Of a rule here; the kernel gives a connection over loopback more.
const LARGEST: usize = 60_000;

fn publish(loaded: &Loaded, text: &str) {
    let policy = parse(&format!("# rules\n{text}"), None).unwrap();
    let tables = Classifier::build(&policy);
    let published = loaded.kernel.publish(&policy, &tables).unwrap();
    assert_eq!(published.problems, Vec::<String>::new());
}

/// Rules that are told apart by the send buffer that they give.
fn rules(buffers: &[usize]) -> Policy {
    let rule = |bytes: &usize| format!("[[rule]]\nname = 'auto-{bytes}'\nsend_buffer = {bytes}\n");
    parse(&buffers.iter().map(rule).collect::<String>(), None).unwrap()
}

fn path(local: &str, peers: &str) -> PathAddresses {
    PathAddresses {
        local: local.parse().unwrap(),
        peers: peers.parse().unwrap(),
    }
}

fn gets(rule: &str) -> Option<PathRule<'_>> {
    Some(PathRule { rule, known: None })
}

fn change(loaded: &Loaded, buffers: &[usize], changes: &[PathChange<'_>]) {
    let rules = rules(buffers).rules;
    loaded.kernel.change_paths(&rules, changes).unwrap();
}

struct Connection {
    client: TcpStream,
    server: TcpStream,
}

impl Connection {
    fn new(from: &str, to: &str) -> Connection {
        let (from, to): (IpAddr, IpAddr) = (from.parse().unwrap(), to.parse().unwrap());
        let listener = TcpListener::bind((to, 0)).unwrap();
        let to = listener.local_addr().unwrap();
        let client = Socket::new(Domain::for_address(to), Type::STREAM, None).unwrap();
        client.bind(&SocketAddr::new(from, 0).into()).unwrap();
        client.connect(&to.into()).unwrap();
        Connection {
            client: client.into(),
            server: listener.accept().unwrap().0,
        }
    }

    /// Setsockopt's, which the kernel doubles.
    fn send_buffer(&self) -> usize {
        socket2::SockRef::from(&self.client)
            .send_buffer_size()
            .unwrap()
            / 2
    }

    fn round_trip(&mut self) {
        self.client.write_all(&[1]).unwrap();
        self.server.read_exact(&mut [0]).unwrap();
        self.server.write_all(&[1]).unwrap();
        self.client.read_exact(&mut [0]).unwrap();
    }

    /// Sends until the flow has what it is to have.
    fn follows(&mut self, is_so: impl Fn(usize) -> bool) {
        let end = Instant::now() + Duration::from_secs(5);
        while !is_so(self.send_buffer()) {
            assert!(Instant::now() < end, "it has {}", self.send_buffer());
            self.round_trip();
        }
    }
}

/// The first connection fills the memory of paths, the second one is answered from it.
fn assert_given(from: &str, to: &str, bytes: Option<usize>) {
    for _ in 0..2 {
        let has = Connection::new(from, to).send_buffer();
        match bytes {
            Some(bytes) => assert_eq!(has, bytes, "{from} to {to}"),
            None => assert!(has > LARGEST, "{from} to {to} has {has}"),
        }
    }
}

#[test]
fn a_learned_path_speaks_where_no_rule_matches() {
    let Some(loaded) = turn() else {
        return;
    };
    assert_given(HOST, "127.0.24.2", None);
    let changes = [
        (path(HOST, "127.0.24.0/24"), gets("auto-33000")),
        (path(HOST, "127.0.24.7/32"), gets("auto-34000")),
        (path("::1", "::1/128"), gets("auto-34000")),
    ];
    change(&loaded, &[33_000, 34_000], &changes);
    assert_given(HOST, "127.0.24.2", Some(33_000));
    assert_given(HOST, "127.0.24.7", Some(34_000));
    assert_given(HOST, "127.0.25.2", None);
    assert_given("127.0.24.3", "127.0.24.2", None);
    assert_given("::1", "::1", Some(34_000));

    // The file goes before, and its rule without settings leaves a flow as it is.
    publish(
        &loaded,
        "[[rule]]\nname = 'r'\ndestination = ['127.0.24.2']\nsend_buffer = 32000\n\
         [[rule]]\nname = 'none'\ndestination = ['127.0.24.7']\n",
    );
    assert_given(HOST, "127.0.24.2", Some(32_000));
    assert_given(HOST, "127.0.24.7", None);
    assert_given(HOST, "127.0.24.9", Some(33_000));

    change(&loaded, &[34_000], &[(path(HOST, "127.0.24.0/24"), None)]);
    assert_given(HOST, "127.0.24.9", None);
    loaded.kernel.forget_paths().unwrap();
    assert_given("::1", "::1", None);
    // A connection of another test that could not be made keeps its rule's name.
    let names = loaded.kernel.rule_names().unwrap();
    let has = |name: &str| names.values().any(|one| one == name);
    assert!(has("r") && has("none"), "{names:?}");
    assert!(!has("auto-33000") && !has("auto-34000"), "{names:?}");
}

#[test]
fn live_flows_follow_at_their_next_round_trip() {
    let Some(loaded) = turn() else {
        return;
    };
    let other = path("192.0.2.1", "198.51.100.0/24");
    let this = path(HOST, "127.0.24.0/24");
    change(&loaded, &[30_000], &[(other, gets("auto-30000"))]);
    let mut flow = Connection::new(HOST, "127.0.24.2");
    let has = flow.send_buffer();
    assert!(has > LARGEST);
    change(&loaded, &[30_000, 31_000], &[(this, gets("auto-31000"))]);
    flow.follows(|bytes| bytes == 31_000);
    change(&loaded, &[30_000, 32_000], &[(this, gets("auto-32000"))]);
    flow.follows(|bytes| bytes == 32_000);
    let law_of = |flow: &Connection| rustix::net::sockopt::tcp_congestion(&flow.client).unwrap();
    let hosts = law_of(&flow);
    let rule = "[[rule]]\nname = 'auto-law'\ncongestion_control = 'fp_bbr'\n";
    let rules = parse(rule, None).unwrap().rules;
    let to_law = [(this, gets("auto-law"))];
    loaded.kernel.change_paths(&rules, &to_law).unwrap();
    let end = Instant::now() + Duration::from_secs(5);
    while law_of(&flow) != "fp_bbr" {
        assert!(Instant::now() < end);
        flow.round_trip();
    }
    change(&loaded, &[30_000], &[(this, None)]);
    while law_of(&flow) != hosts {
        assert!(Instant::now() < end);
        flow.round_trip();
    }
}

/// What a rule gives a flow to start at, and whether it did: fp_cubic then ends its first flight with that window.
#[test]
fn one_flow_at_a_time_starts_at_the_rate_of_a_fresh_path() {
    let Some(loaded) = turn() else {
        return;
    };
    let rule =
        "[[rule]]\nname = 'auto-rate'\ncongestion_control = 'fp_cubic'\ninitial_rate = '8gbit'\n";
    let rules = parse(rule, None).unwrap().rules;
    let started = |base_rtt_us: u32, for_ns: u64| {
        let known = KnownPath {
            base_rtt_us,
            bdp_bytes: 0,
            until_ns: monotonic_ns() + for_ns,
        };
        let rule = PathRule {
            rule: "auto-rate",
            known: Some(known),
        };
        let this = [(path(HOST, "127.0.24.0/24"), Some(rule))];
        loaded.kernel.change_paths(&rules, &this).unwrap();
        let starts = (0..3).map(|_| {
            let _flow = Connection::new(HOST, "127.0.24.2");
            started_ns(&loaded)
        });
        let mut starts: Vec<u64> = starts.collect();
        starts.retain(|at| *at > 0);
        starts.dedup();
        starts.len()
    };
    let hour_ns = 3_600_000_000_000;
    // Handshakes over loopback take less than 4 ms, by which they may exceed the base RTT.
    assert_eq!(started(1, 0), 0, "not fresh any more");
    assert_eq!(started(1_000_000, hour_ns), 0, "far too short a handshake");
    assert_eq!(started(1, hour_ns), 3, "one after the other");
    let at_ns = started_ns(&loaded);
    change(
        &loaded,
        &[40_000],
        &[(path(HOST, "127.0.24.0/24"), gets("auto-40000"))],
    );
    assert_eq!(started_ns(&loaded), at_ns, "what is told anew ends no wait");
}

/// When the last flow of the only path started at its rate.
fn started_ns(loaded: &Loaded) -> u64 {
    let paths = loaded.map("fp_paths");
    let key = paths.keys().next().unwrap();
    let value = paths.lookup(&key, MapFlags::ANY).unwrap().unwrap();
    u64::from_ne_bytes(value[24..32].try_into().unwrap())
}

/// What the laws go by, as it is when the connection is established, and as long as it is fresh.
#[test]
fn a_flow_is_told_what_was_learned_of_its_path() {
    let Some(loaded) = turn() else {
        return;
    };
    for (local, peers, peer) in [
        (HOST, "127.0.24.0/24", "127.0.24.2"),
        ("::1", "::1/128", "::1"),
    ] {
        for (for_ns, told) in [(3_600_000_000_000, (80_000, 2_000_000)), (0, (0, 0))] {
            let known = KnownPath {
                base_rtt_us: 80_000,
                bdp_bytes: 2_000_000,
                until_ns: monotonic_ns() + for_ns,
            };
            let rule = PathRule {
                rule: "auto-40000",
                known: Some(known),
            };
            change(&loaded, &[40_000], &[(path(local, peers), Some(rule))]);
            let flow = Connection::new(local, peer);
            assert_eq!(flow.send_buffer(), 40_000, "the rule of the path");
            assert_eq!(told_of_path(&loaded, &flow.client), told, "{local}");
        }
    }
}

/// Base RTT and bandwidth-delay product.
fn told_of_path(loaded: &Loaded, flow: &TcpStream) -> (u32, u64) {
    let key = flow.as_raw_fd().to_ne_bytes();
    let flows = loaded.map("fp_flows");
    let value = flows.lookup(&key, MapFlags::ANY).unwrap().unwrap();
    let at = offset_of!(fp_flow, base_rtt_us);
    let base_rtt_us = u32::from_ne_bytes(value[at..at + 4].try_into().unwrap());
    let at = offset_of!(fp_flow, bdp_bytes);
    let bdp_bytes = u64::from_ne_bytes(value[at..at + 8].try_into().unwrap());
    (base_rtt_us, bdp_bytes)
}

#[test]
fn profiles_come_and_go_without_end() {
    let Some(loaded) = turn() else {
        return;
    };
    let this = path(HOST, "127.0.24.0/24");
    for first in (5_000..11_000).step_by(200) {
        let buffers: Vec<usize> = (first..first + 250).collect();
        let name = format!("auto-{first}");
        change(&loaded, &buffers, &[(this, gets(&name))]);
        assert_given(HOST, "127.0.24.2", Some(first));
    }
    // Two sets, and what others left: a leak would have thousands.
    assert!(loaded.kernel.rule_names().unwrap().len() <= 600);
}

#[test]
fn as_many_paths_as_are_known_are_looked_up_and_replaced() {
    let Some(loaded) = turn() else {
        return;
    };
    let local: IpAddr = HOST.parse().unwrap();
    let all: Vec<PathAddresses> = (0..65_535u32)
        .map(|n| {
            let network = std::net::Ipv4Addr::from_bits((0x1000_0000 + n) << 8);
            let peers = Prefix::holding(network.into(), 24).unwrap();
            PathAddresses { local, peers }
        })
        .collect();
    let mut changes: Vec<PathChange<'_>> = all.iter().map(|p| (*p, gets("auto-30000"))).collect();
    changes.push((path(HOST, "127.0.24.0/24"), gets("auto-31000")));
    let set = |changes: &[PathChange<'_>]| {
        let rules = rules(&[30_000, 31_000]).rules;
        loaded.kernel.set_paths(&rules, changes).unwrap();
        loaded.map("fp_paths").keys().count()
    };
    assert_eq!(set(&changes), 65_536);
    assert_given(HOST, "127.0.24.2", Some(31_000));
    assert_eq!(set(&changes), 65_536);
    assert_eq!(set(&changes[65_535..]), 1);
    assert_given(HOST, "127.0.24.2", Some(31_000));
    assert_eq!(set(&[]), 0);
    assert_given(HOST, "127.0.24.2", None);
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What arrives over a link is right to the last checksum, whatever was split, dropped, marked,
//! reordered or duplicated on it. Judges are the receiving kernel and tshark. Needs root; says so and
//! skips otherwise.
//!
//! On a link's own device many checksums are partial (the virtio-net header asks the receiver to trust
//! the path): neither judge can judge those. So a router follows whose next device has no offload.
//! Its kernel completes every checksum from what the splitter prepared, and the server's kernel and
//! tshark at the server's device verify every one of them in full.
#![allow(clippy::unwrap_used)] // Clippy does not see that the functions beside the tests are theirs.

mod support;

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};

use fatpath_emulator::{
    CellSpec, ChainSpec, DropCause, End, HostSpec, LinkSpec, Namespace, Network, RouteSpec, Stats,
    Topology,
};
use fatpath_link::{DuplicateSpec, QueueSpec, RateSpec, ReorderSpec, Service};
use support::{can_run, counters, run_name, transfer_tcp, transfer_udp, with_network};

/// None may count.
const ERRORS: [&str; 6] = [
    "TcpInCsumErrors",
    "TcpInErrs",
    "UdpInCsumErrors",
    "Udp6InCsumErrors",
    "IpInHdrErrors",
    "Ip6InHdrErrors",
];

#[test]
fn split_packets_have_right_checksums_and_losses_are_as_set() {
    if !can_run("split_packets_have_right_checksums_and_losses_are_as_set") {
        return;
    }
    let lossy = ChainSpec {
        cells: vec![
            CellSpec::rate(400_000_000, Some(100_000)),
            CellSpec::loss(0.02),
        ],
        seed: 3,
    };
    let topology = routed_path(&run_name("lossy"), lossy);
    let (errors, stats) = with_network(&topology, |network| {
        set_router_up(network);
        transfer_all(network, 10_000_000);
        errors(network)
    });
    assert_eq!(errors, [[0; 6]; 2]);
    assert_none_refused(&stats);

    let there = &stats.links[0].directions[0];
    let reached_loss = there.cells[1].arrived.packets as f64;
    let lost = there.total.dropped(DropCause::Loss).packets as f64;
    let deviation = (reached_loss * 0.02 * 0.98).sqrt();
    assert!(reached_loss > 10_000.0);
    assert!(
        (lost - reached_loss * 0.02).abs() < 4.0 * deviation,
        "{lost} of {reached_loss}"
    );
}

#[test]
fn no_effect_but_corruption_makes_a_wrong_checksum() {
    if !can_run("no_effect_but_corruption_makes_a_wrong_checksum") {
        return;
    }
    for exact in [false, true] {
        let mut topology = routed_path(&run_name("effects"), every_effect());
        topology.links[0].exact = exact;
        let (errors, stats) = with_network(&topology, |network| {
            set_router_up(network);
            transfer_all(network, 4_000_000);
            errors(network)
        });
        assert_eq!(errors, [[0; 6]; 2], "exact: {exact}");
        assert_none_refused(&stats);
        assert_all_happened(&stats);
    }
}

#[test]
fn a_link_splits_super_packets_that_came_over_another() {
    if !can_run("a_link_splits_super_packets_that_came_over_another") {
        return;
    }
    let mut topology = routed_path(&run_name("second"), ChainSpec::default());
    topology.links[1].exact = true;
    // Bursts of all sizes: what fits in a page of memory is kept otherwise by the kernel than what does not.
    topology.links[1].directions[0] = ChainSpec::of([
        CellSpec::rate(100_000_000, Some(100_000)),
        CellSpec::delay(2_000_000),
    ]);
    let (errors, stats) = with_network(&topology, |network| {
        transfer_all(network, 4_000_000);
        errors(network)
    });
    assert_eq!(errors, [[0; 6]; 2]);
    assert_none_refused(&stats);
}

#[test]
fn tshark_sees_no_wrong_checksum() {
    const TEST: &str = "tshark_sees_no_wrong_checksum";
    if !can_run(TEST) {
        return;
    }
    for tool in ["tshark", "dumpcap"] {
        if Command::new(tool).arg("--version").output().is_err() {
            println!("skipped: {TEST}: needs {tool} (apt-get install tshark)");
            return;
        }
    }
    let name = run_name("shark");
    let (seen, stats) = with_network(&routed_path(&name, every_effect()), |network| {
        set_router_up(network);
        let capture = Capture::start(network.host("server").unwrap(), &name);
        transfer_all(network, 4_000_000);
        capture.stop()
    });
    assert_all_happened(&stats);
    assert_eq!(seen.wrong, 0);
    // All of the traffic was there to judge, of both families.
    for family in [0, 1] {
        assert!(seen.right_tcp[family] >= 2_000, "{seen:?}");
        assert!(seen.right_udp[family] >= 1_500, "{seen:?}");
        assert!(seen.marked[family] >= 1, "{seen:?}");
    }
}

/// A bottleneck that marks and drops, then loss, reordering and duplication.
fn every_effect() -> ChainSpec {
    let bottleneck = RateSpec {
        service: Service::Constant {
            rate_bps: 200_000_000,
        },
        queue: QueueSpec {
            limit_bytes: Some(200_000),
            mark_above_bytes: Some(1_000),
            ..QueueSpec::default()
        },
        overhead_bytes: 0,
    };
    let cells = [
        CellSpec::Rate(bottleneck),
        CellSpec::loss(0.01),
        CellSpec::Reorder(ReorderSpec {
            probability: 0.01,
            displacement_packets: 3,
            hold_limit_ns: 5_000_000,
        }),
        CellSpec::Duplicate(DuplicateSpec { probability: 0.01 }),
    ];
    ChainSpec::of(cells)
}

fn assert_all_happened(stats: &Stats) {
    let there = &stats.links[0].directions[0].total;
    assert!(there.dropped(DropCause::Loss).packets > 0);
    assert!(there.marked.packets > 0);
    assert!(there.duplicated.packets > 0);
}

fn assert_none_refused(stats: &Stats) {
    for direction in stats.links.iter().flat_map(|link| &link.directions) {
        assert_eq!(direction.refused_packets, 0);
    }
}

/// Of the server, and of the router, which verifies IPv4 headers.
fn errors(network: &Network) -> [[u64; 6]; 2] {
    ["server", "router"].map(|host| counters(network.host(host).unwrap(), ERRORS))
}

/// `tcp_bytes` of TCP with ECN, and UDP super-packets, over each family.
fn transfer_all(network: &Network, tcp_bytes: usize) {
    let (client, server) = (
        network.host("client").unwrap(),
        network.host("server").unwrap(),
    );
    for host in [client, server] {
        host.set_sysctl("net.ipv4.tcp_ecn", "1").unwrap();
    }
    for address in ["10.2.0.2:5000", "[fd00:2::2]:5000"] {
        let address: SocketAddr = address.parse().unwrap();
        transfer_tcp(client, server, address, tcp_bytes);
        let received = transfer_udp(client, server, address);
        assert!((1_500..2_100).contains(&received), "{received} of 2000");
    }
}

fn set_router_up(network: &Network) {
    let router = network.host("router").unwrap();
    let ethtool = router
        .command("ethtool")
        .args(["-K", "plain", "tx", "off"])
        .output();
    assert!(ethtool.unwrap().status.success());
}

/// client ─ what is tried ─ router ─ server, both families.
fn routed_path(run_name: &str, there: ChainSpec) -> Topology {
    let host = |name: &str, routes: &[(&str, &str)]| HostSpec {
        name: name.into(),
        netns: format!("{run_name}-{name}"),
        routes: routes
            .iter()
            .map(|(to, via)| RouteSpec {
                to: to.parse().unwrap(),
                via: via.parse().unwrap(),
            })
            .collect(),
        forwarding: name == "router",
    };
    let end = |host: &str, ipv4: &str, ipv6: &str| End {
        host: host.into(),
        ipv4: Some(ipv4.parse().unwrap()),
        ipv6: Some(ipv6.parse().unwrap()),
    };
    let link = |name: &str, ends, there: ChainSpec| LinkSpec {
        name: name.into(),
        ends,
        mtu: 1500,
        exact: false,
        directions: [there, ChainSpec::default()],
    };
    Topology {
        wires: vec![],
        hosts: vec![
            host(
                "client",
                &[("10.2.0.0/24", "10.1.0.2"), ("fd00:2::/64", "fd00:1::2")],
            ),
            host("router", &[]),
            host(
                "server",
                &[("10.1.0.0/24", "10.2.0.1"), ("fd00:1::/64", "fd00:2::1")],
            ),
        ],
        links: vec![
            link(
                "tried",
                [
                    end("client", "10.1.0.1/24", "fd00:1::1/64"),
                    end("router", "10.1.0.2/24", "fd00:1::2/64"),
                ],
                there,
            ),
            link(
                "plain",
                [
                    end("router", "10.2.0.1/24", "fd00:2::1/64"),
                    end("server", "10.2.0.2/24", "fd00:2::2/64"),
                ],
                ChainSpec::default(),
            ),
        ],
    }
}

/// A running dumpcap and its file, which go with this value.
struct Capture {
    process: Child,
    file: PathBuf,
    /// Kept open: dumpcap ends when nobody can read what it says.
    _said: BufReader<ChildStderr>,
}

impl Capture {
    /// Returns once it captures what arrives at the server; what that sends has partial checksums.
    fn start(server: &Namespace, name: &str) -> Capture {
        let file = std::env::temp_dir().join(format!("{name}.pcapng"));
        let mut dumpcap = server.command("dumpcap");
        dumpcap.args(["-f", "dst host 10.2.0.2 or dst host fd00:2::2"]);
        dumpcap.args(["-i", "plain", "-B", "64", "-w"]).arg(&file);
        let mut process = dumpcap.stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(process.stderr.take().unwrap());
        let mut lines = said.by_ref().lines().map_while(Result::ok);
        // `File:` is the last that it says before the first packet.
        let started = lines.any(|line| line.starts_with("File:"));
        let capture = Capture {
            process,
            file,
            _said: said,
        };
        assert!(started, "dumpcap ended before it captured");
        capture
    }

    /// Ends it, and has it judged. What came in the last quarter of a second may not be in it.
    fn stop(mut self) -> Seen {
        let pid = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        self.process.wait().unwrap();
        Seen::of(&self.file)
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        // The first two fail only when it has ended by itself, the last when it made no file.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_file(&self.file);
    }
}

/// What tshark says of a capture; of each family, IPv4 first, where there are two numbers.
#[derive(Debug, Default)]
struct Seen {
    wrong: usize,
    right_tcp: [usize; 2],
    right_udp: [usize; 2],
    marked: [usize; 2],
}

impl Seen {
    /// Has tshark verify all checksums.
    fn of(file: &Path) -> Seen {
        let mut tshark = Command::new("tshark");
        for protocol in ["ip", "tcp", "udp"] {
            tshark.args(["-o", &format!("{protocol}.check_checksum:TRUE")]);
        }
        tshark
            .args(["-T", "fields", "-E", "occurrence=f", "-r"])
            .arg(file);
        for field in [
            "ip.checksum.status",
            "tcp.checksum.status",
            "udp.checksum.status",
            "ip.dsfield.ecn",
            "ipv6.tclass.ecn",
        ] {
            tshark.args(["-e", field]);
        }
        let output = tshark.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        let mut seen = Seen::default();
        let rows = String::from_utf8(output.stdout).unwrap();
        rows.lines().for_each(|row| seen.add(row));
        seen
    }

    fn add(&mut self, row: &str) {
        const WRONG: &str = "0";
        const RIGHT: &str = "1";
        const MARKED: &str = "3";
        let fields: Vec<&str> = row.split('\t').collect();
        let [ip, tcp, udp, ecn_v4, ecn_v6] = fields[..] else {
            panic!("{row}")
        };
        let family = usize::from(ip.is_empty());
        self.wrong += usize::from([ip, tcp, udp].contains(&WRONG));
        self.right_tcp[family] += usize::from(tcp == RIGHT);
        self.right_udp[family] += usize::from(udp == RIGHT);
        self.marked[family] += usize::from([ecn_v4, ecn_v6].contains(&MARKED));
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Emulated networks with the real kernel at both ends. Needs root; says so and skips otherwise.
#![allow(unsafe_code)] // setsockopt(UDP_SEGMENT), which no crate wraps.
#![allow(clippy::unwrap_used)] // Clippy does not see that the functions beside the tests are theirs.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::process::{self, Command};
use std::thread;
use std::time::{Duration, Instant};

use fatpath_emulator::{
    CellSpec, ChainSpec, Control, DropCause, End, ForwardOptions, HostSpec, LinkSpec, Namespace,
    NamespaceError, Network, RouteSpec, Stats, Topology, TopologyError, UpError, remove_namespace,
    unshaped,
};

const PATIENCE: Duration = Duration::from_secs(20);

/// Whether the tests can make namespaces here.
fn can_run(test: &str) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        eprintln!("SKIPPED {test}: needs root");
    }
    is_root
}

/// A prefix for namespaces that no other test or process uses.
fn run_name(test: &str) -> String {
    format!("fp-{test}-{}", process::id())
}

/// Brings `topology` up, forwards while `work` runs, and takes it down.
fn with_network<T>(topology: &Topology, work: impl FnOnce(&Network) -> T) -> (T, Stats) {
    let network = Network::up(topology).unwrap();
    let control = Control::new().unwrap();
    thread::scope(|scope| {
        let forwarder = scope.spawn(|| network.forward(ForwardOptions::default(), &control));
        let result = {
            // Also when `work` panics: the scope waits for the forwarder.
            let _stop = StopAtEnd(&control);
            work(&network)
        };
        (result, forwarder.join().unwrap().unwrap())
    })
}

struct StopAtEnd<'a>(&'a Control);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

#[test]
fn a_namespace_is_seen_by_ip_netns_and_runs_programs() {
    if !can_run("a_namespace_is_seen_by_ip_netns_and_runs_programs") {
        return;
    }
    let name = run_name("ns");
    let namespace = Namespace::create(&name).unwrap();
    let listed = Command::new("ip").args(["netns", "list"]).output().unwrap();
    assert!(String::from_utf8_lossy(&listed.stdout).contains(&name));

    namespace
        .set_sysctl("net.ipv4.tcp_rmem", "4096 131072 6291456")
        .unwrap();
    assert_eq!(
        namespace.sysctl("net.ipv4.tcp_rmem").unwrap(),
        "4096\t131072\t6291456"
    );
    assert!(matches!(
        namespace.sysctl("net.no.such"),
        Err(NamespaceError::Sysctl { .. })
    ));

    let links = namespace
        .command("ip")
        .args(["-brief", "link"])
        .output()
        .unwrap();
    let links = String::from_utf8(links.stdout).unwrap();
    assert!(
        links.starts_with("lo ") && links.lines().count() == 1,
        "{links}"
    );
    let echoed = namespace.run(|| {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        TcpStream::connect(listener.local_addr()?)
    });
    echoed.unwrap().unwrap();

    assert!(matches!(
        Namespace::create(&name),
        Err(NamespaceError::InUse(_))
    ));
    remove_namespace(&name).unwrap();
    assert!(matches!(
        Namespace::open(&name),
        Err(NamespaceError::NotFound(_))
    ));
    remove_namespace(&name).unwrap();
}

#[test]
fn a_namespace_of_someone_else_is_not_removed() {
    if !can_run("a_namespace_of_someone_else_is_not_removed") {
        return;
    }
    let name = run_name("foreign");
    let ip_netns = |verb| {
        Command::new("ip")
            .args(["netns", verb, &name])
            .status()
            .unwrap()
    };
    // Ours first, so that a stale record is there: the inode then differs.
    Namespace::create(&name).unwrap();
    assert!(ip_netns("del").success() && ip_netns("add").success());
    assert!(matches!(
        remove_namespace(&name),
        Err(NamespaceError::NotOurs(_))
    ));
    assert!(Namespace::open(&name).is_ok());
    assert!(ip_netns("del").success());
    remove_namespace(&name).unwrap();
}

#[test]
fn a_network_that_cannot_come_up_leaves_nothing() {
    if !can_run("a_network_that_cannot_come_up_leaves_nothing") {
        return;
    }
    let name = run_name("half");
    let mut topology = unshaped::two_hosts(&name, &ChainSpec::default());
    let (to, via) = (
        "192.0.2.0/24".parse().unwrap(),
        "198.51.100.1".parse().unwrap(),
    );
    topology.hosts[1].routes.push(RouteSpec { to, via });
    assert!(matches!(Network::up(&topology), Err(UpError::Route { .. })));
    assert!(matches!(
        Namespace::open(&format!("{name}-client")),
        Err(NamespaceError::NotFound(_))
    ));

    topology.hosts[1].routes.clear();
    topology.links[0].ends[0].host = "nobody".into();
    let refused = Network::up(&topology);
    assert!(matches!(
        refused,
        Err(UpError::Topology(TopologyError::UnknownHost { .. }))
    ));
}

#[test]
fn a_network_that_goes_down_leaves_nothing() {
    if !can_run("a_network_that_goes_down_leaves_nothing") {
        return;
    }
    let name = run_name("gone");
    let topology = unshaped::two_hosts(&name, &ChainSpec::default());
    let (device, _) = with_network(&topology, |network| {
        let shown = network
            .host("client")
            .unwrap()
            .command("ip")
            .args(["addr"])
            .output()
            .unwrap();
        String::from_utf8(shown.stdout).unwrap()
    });
    assert!(
        device.contains("10.99.0.1/24") && device.contains("fd00:99::1/64"),
        "{device}"
    );
    assert!(
        device.contains("qlen 10000") && device.contains("mtu 1500"),
        "{device}"
    );
    assert!(
        !device.contains("fe80") && !device.contains("tentative"),
        "{device}"
    );
    for host in ["client", "server"] {
        let opened = Namespace::open(&format!("{name}-{host}"));
        assert!(matches!(opened, Err(NamespaceError::NotFound(_))));
    }
}

/// Round trips of UDP packets over an idle path: never too early, and not much too late.
#[test]
fn an_idle_path_delays_by_what_was_set() {
    if !can_run("an_idle_path_delays_by_what_was_set") {
        return;
    }
    let direction = ChainSpec::of([CellSpec::delay(10_000_000)]);
    let topology = unshaped::two_hosts(&run_name("delay"), &direction);
    let (mut round_trips, _) = with_network(&topology, |network| {
        let bind = |host, address| {
            let namespace = network.host(host).unwrap();
            let socket = namespace.run(|| UdpSocket::bind(address)).unwrap().unwrap();
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
            socket
        };
        let near = bind("client", SocketAddr::from(([10, 99, 0, 1], 7000)));
        let far = bind("server", SocketAddr::from(([10, 99, 0, 2], 7000)));
        near.connect(far.local_addr().unwrap()).unwrap();
        (0..50)
            .map(|_| round_trip(&near, &far).unwrap())
            .collect::<Vec<_>>()
    });
    round_trips.sort();
    assert!(
        round_trips[0] >= Duration::from_millis(20),
        "{:?}",
        round_trips[0]
    );
    assert!(
        round_trips[25] < Duration::from_millis(22),
        "{:?}",
        round_trips[25]
    );
    println!(
        "added by the machine, median: {:?}",
        round_trips[25] - Duration::from_millis(20)
    );
}

fn round_trip(near: &UdpSocket, far: &UdpSocket) -> io::Result<Duration> {
    let mut bytes = [0; 100];
    let start = Instant::now();
    near.send(&bytes)?;
    let (_, from) = far.recv_from(&mut bytes)?;
    far.send_to(&bytes, from)?;
    near.recv(&mut bytes)?;
    Ok(start.elapsed())
}

/// 200 packets of 1,000 bytes at once, at 1,000 bytes a second, into a queue of 50,000 bytes.
#[test]
fn a_burst_loses_exactly_what_does_not_fit() {
    if !can_run("a_burst_loses_exactly_what_does_not_fit") {
        return;
    }
    for segments_a_call in [1, 40] {
        let direction = ChainSpec::of([CellSpec::rate(8_000, Some(50_000))]);
        let mut topology = unshaped::two_hosts(&run_name("burst"), &direction);
        topology.links[0]
            .ends
            .iter_mut()
            .for_each(|end| end.ipv6 = None);
        let (_, stats) = with_network(&topology, |network| {
            let client = network.host("client").unwrap();
            let socket = client
                .run(|| UdpSocket::bind("10.99.0.1:7000"))
                .unwrap()
                .unwrap();
            set_segment_bytes(&socket, 972).unwrap();
            let payload = vec![7; 972 * segments_a_call];
            for _ in 0..200 / segments_a_call {
                socket.send_to(&payload, "10.99.0.2:7000").unwrap();
            }
            // The forwarder needs a moment, in which less than one packet leaves the queue.
            thread::sleep(Duration::from_millis(300));
        });
        let there = &stats.links[0].directions[0];
        assert_eq!(there.total.arrived.packets, 200);
        assert_eq!(there.total.dropped(DropCause::QueueFull).packets, 150);
        assert_eq!((there.held.packets, there.held.bytes), (50, 50_000));
        assert_eq!(there.missed_packets, 0);
    }
}

/// More packets than a device holds while nobody forwards: the statistics tell.
#[test]
fn what_a_device_dropped_is_counted() {
    if !can_run("what_a_device_dropped_is_counted") {
        return;
    }
    let mut topology = unshaped::two_hosts(&run_name("missed"), &ChainSpec::default());
    topology.links[0]
        .ends
        .iter_mut()
        .for_each(|end| end.ipv6 = None);
    let network = Network::up(&topology).unwrap();
    let client = network.host("client").unwrap();
    let socket = client
        .run(|| UdpSocket::bind("10.99.0.1:7000"))
        .unwrap()
        .unwrap();
    for _ in 0..10_100 {
        socket.send_to(&[7; 100], "10.99.0.2:7000").unwrap();
    }
    let control = Control::new().unwrap();
    let stats = thread::scope(|scope| {
        let forwarder = scope.spawn(|| network.forward(ForwardOptions::default(), &control));
        thread::sleep(Duration::from_millis(500));
        control.stop();
        forwarder.join().unwrap().unwrap()
    });
    let there = &stats.links[0].directions[0];
    assert_eq!(
        (there.total.arrived.packets, there.missed_packets),
        (10_000, 100)
    );
}

/// UDP segmentation offload: one `send` makes a super-packet of segments this long.
fn set_segment_bytes(socket: &UdpSocket, segment_bytes: i32) -> io::Result<()> {
    const UDP_SEGMENT: i32 = 103;
    // SAFETY: the option is an int, which outlives the call.
    let status = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_UDP,
            UDP_SEGMENT,
            (&raw const segment_bytes).cast(),
            size_of_val(&segment_bytes) as libc::socklen_t,
        )
    };
    if status == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// client ─ lossy bottleneck ─ router ─ server, both families. The router's second device has no
/// offload, so its kernel completes the checksums that the splitter prepared, and the server's
/// kernel verifies every one of them in full.
fn lossy_path(run_name: &str) -> Topology {
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
        forwarding: false,
    };
    let end = |host: &str, ipv4: &str, ipv6: &str| End {
        host: host.into(),
        ipv4: Some(ipv4.parse().unwrap()),
        ipv6: Some(ipv6.parse().unwrap()),
    };
    let lossy = ChainSpec {
        cells: vec![
            CellSpec::rate(400_000_000, Some(100_000)),
            CellSpec::loss(0.02),
        ],
        seed: 3,
    };
    let link = |name: &str, ends, there: ChainSpec| LinkSpec {
        name: name.into(),
        ends,
        mtu: 1500,
        exact: false,
        directions: [there, ChainSpec::default()],
    };
    Topology {
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
                "lossy",
                [
                    end("client", "10.1.0.1/24", "fd00:1::1/64"),
                    end("router", "10.1.0.2/24", "fd00:1::2/64"),
                ],
                lossy,
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

#[test]
fn split_packets_have_right_checksums_and_losses_are_as_set() {
    if !can_run("split_packets_have_right_checksums_and_losses_are_as_set") {
        return;
    }
    let (errors, stats) = with_network(&lossy_path(&run_name("lossy")), |network| {
        let router = network.host("router").unwrap();
        router.set_sysctl("net.ipv4.ip_forward", "1").unwrap();
        router
            .set_sysctl("net.ipv6.conf.all.forwarding", "1")
            .unwrap();
        let ethtool = router
            .command("ethtool")
            .args(["-K", "plain", "tx", "off"])
            .output();
        assert!(ethtool.unwrap().status.success());
        let (client, server) = (
            network.host("client").unwrap(),
            network.host("server").unwrap(),
        );
        for address in ["10.2.0.2:5000", "[fd00:2::2]:5000"] {
            let address: SocketAddr = address.parse().unwrap();
            transfer_tcp(client, server, address, 10_000_000);
            transfer_udp(client, server, address);
        }
        ["InCsumErrors", "InErrs"].map(|name| server.run(|| tcp_counter(name)).unwrap())
    });
    assert_eq!(errors, [0, 0]);

    let there = &stats.links[0].directions[0];
    let reached_loss = there.cells[1].arrived.packets as f64;
    let lost = there.total.dropped(DropCause::Loss).packets as f64;
    let deviation = (reached_loss * 0.02 * 0.98).sqrt();
    assert!(reached_loss > 10_000.0);
    assert!(
        (lost - reached_loss * 0.02).abs() < 4.0 * deviation,
        "{lost} of {reached_loss}"
    );
    for direction in stats.links.iter().flat_map(|link| &link.directions) {
        assert_eq!(direction.refused_packets, 0);
    }
}

/// The byte at `offset` of what the tests send: no power of two is a period of it.
fn pattern(offset: usize) -> u8 {
    (offset % 251) as u8
}

fn transfer_tcp(client: &Namespace, server: &Namespace, address: SocketAddr, len_bytes: usize) {
    let listener = server.run(|| TcpListener::bind(address)).unwrap().unwrap();
    let sent: Vec<u8> = (0..len_bytes).map(pattern).collect();
    let mut received = vec![];
    thread::scope(|scope| {
        let mut sender = client.run(|| TcpStream::connect(address)).unwrap().unwrap();
        sender.set_write_timeout(Some(PATIENCE)).unwrap();
        let sending = scope.spawn(move || sender.write_all(&sent));
        let (mut receiver, _) = listener.accept().unwrap();
        receiver.set_read_timeout(Some(PATIENCE)).unwrap();
        receiver.read_to_end(&mut received).unwrap();
        sending.join().unwrap().unwrap();
    });
    assert_eq!(received.len(), len_bytes);
    assert!(
        received
            .iter()
            .enumerate()
            .all(|(offset, byte)| *byte == pattern(offset))
    );
}

/// 100 super-packets of 20 datagrams; each datagram that arrives must be what was sent.
fn transfer_udp(client: &Namespace, server: &Namespace, address: SocketAddr) {
    let segment: Vec<u8> = (0..1000).map(pattern).collect();
    let receiver = server.run(|| UdpSocket::bind(address)).unwrap().unwrap();
    receiver
        .set_read_timeout(Some(Duration::from_millis(500)))
        .unwrap();
    let any_port = if address.is_ipv4() {
        "0.0.0.0:0"
    } else {
        "[::]:0"
    };
    let sender = client.run(|| UdpSocket::bind(any_port)).unwrap().unwrap();
    set_segment_bytes(&sender, 1000).unwrap();
    let mut received = 0;
    for _ in 0..100 {
        sender.send_to(&segment.repeat(20), address).unwrap();
        thread::sleep(Duration::from_millis(2));
    }
    let mut datagram = [0; 2000];
    loop {
        match receiver.recv(&mut datagram) {
            Ok(len_bytes) => assert_eq!(datagram[..len_bytes], segment),
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => panic!("{error}"),
        }
        received += 1;
    }
    // The socket's buffer may be too small for all that was not lost.
    assert!((50..2000).contains(&received), "{received} of 2000");
}

/// A counter of the `Tcp:` lines of /proc/net/snmp, in the namespace of the calling thread. Both
/// families count here.
fn tcp_counter(name: &str) -> u64 {
    let table = std::fs::read_to_string("/proc/thread-self/net/snmp").unwrap();
    let mut rows = table.lines().filter(|line| line.starts_with("Tcp: "));
    let (names, values) = (rows.next().unwrap(), rows.next().unwrap());
    let column = names.split(' ').position(|column| column == name).unwrap();
    values.split(' ').nth(column).unwrap().parse().unwrap()
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Emulated networks with the real kernel at both ends. Needs root; says so and skips otherwise.
#![allow(clippy::unwrap_used)] // Clippy does not see that the functions beside the tests are theirs.

mod support;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use fatpath_emulator::{
    CellSpec, ChainSpec, Control, DropCause, End, ForwardOptions, HostSpec, Namespace,
    NamespaceError, Network, RouteSpec, TopologyError, UpError, WireSpec, remove_namespace,
    unshaped,
};
use support::{PATIENCE, can_run, run_name, set_segment_bytes, transfer_tcp, with_network};

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
    let inode = || {
        let file = Path::new("/run/netns").join(&name);
        std::fs::metadata(file).unwrap().ino()
    };
    // Ours first, so that a stale record is there.
    Namespace::create(&name).unwrap();
    let ours = inode();
    // The kernel gives a number again once it has cleaned up, some ms later.
    for _ in 0..100 {
        assert!(ip_netns("del").success());
        thread::sleep(Duration::from_millis(20));
        assert!(ip_netns("add").success());
        if inode() == ours {
            break;
        }
    }
    assert!(matches!(
        remove_namespace(&name),
        Err(NamespaceError::NotOurs(_))
    ));
    assert!(Namespace::open(&name).is_ok());
    assert!(ip_netns("del").success());
    remove_namespace(&name).unwrap();
}

/// A folder is in the place of the record.
#[test]
fn a_namespace_that_cannot_be_recorded_is_not_made() {
    if !can_run("a_namespace_that_cannot_be_recorded_is_not_made") {
        return;
    }
    let name = run_name("unrecorded");
    let record = Path::new("/run/fatpath/netns").join(&name);
    std::fs::create_dir_all(&record).unwrap();
    let made = Namespace::create(&name);
    std::fs::remove_dir(&record).unwrap();
    assert!(matches!(made, Err(NamespaceError::Io { .. })), "{made:?}");
    assert!(!Path::new("/run/netns").join(&name).exists());
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

/// client, an emulated link, server as a router, a wire, and a host behind it.
#[test]
fn a_wire_carries_packets_without_the_forwarder() {
    if !can_run("a_wire_carries_packets_without_the_forwarder") {
        return;
    }
    let run = run_name("wire");
    let mut topology = unshaped::two_hosts(&run, &ChainSpec::of([CellSpec::delay(5_000_000)]));
    let end = |host: &str, number| End {
        host: host.into(),
        ipv4: ipnet::Ipv4Net::new([10, 98, 0, number].into(), 24).ok(),
        ipv6: ipnet::Ipv6Net::new([0xfd00, 0x98, 0, 0, 0, 0, 0, number.into()].into(), 64).ok(),
    };
    topology.wires.push(WireSpec {
        name: "near".into(),
        ends: [end("server", 1), end("behind", 2)],
        mtu: 1400,
    });
    let routes = |all: [(&str, &str); 2]| {
        let spec = |(to, via): (&str, &str)| RouteSpec {
            to: to.parse().unwrap(),
            via: via.parse().unwrap(),
        };
        all.map(spec).to_vec()
    };
    topology.hosts[0].routes = routes([
        ("10.98.0.0/24", "10.99.0.2"),
        ("fd00:98::/64", "fd00:99::2"),
    ]);
    topology.hosts[1].forwarding = true;
    topology.hosts.push(HostSpec {
        name: "behind".into(),
        netns: format!("{run}-behind"),
        routes: routes([
            ("10.99.0.0/24", "10.98.0.1"),
            ("fd00:99::/64", "fd00:98::1"),
        ]),
        forwarding: false,
    });
    let ((), stats) = with_network(&topology, |network| {
        let [client, behind] = ["client", "behind"].map(|name| network.host(name).unwrap());
        for address in ["10.98.0.2", "fd00:98::2"] {
            let ping = ["-c", "3", "-i", "0.2", "-W", "5", address];
            let said = client.command("ping").args(ping).output().unwrap();
            let said = String::from_utf8_lossy(&said.stdout).into_owned();
            assert!(said.contains(" 3 received"), "{said}");
        }
        let shown = ["-s", "-d", "link", "show", "near"];
        let shown = behind.command("ip").args(shown).output().unwrap();
        let shown = String::from_utf8(shown.stdout).unwrap();
        for told in ["NOARP", "veth", "mtu 1400"] {
            assert!(shown.contains(told), "{shown}");
        }
        // The router also tells its multicast groups.
        let mut lines = shown.lines().skip_while(|line| !line.contains("TX:"));
        let sent = lines.nth(1).and_then(|line| line.split_whitespace().nth(1));
        assert_eq!(sent, Some("6"), "its answers, nothing else: {shown}");
        // Super-packets from the wire to the link, and the other way about.
        for (address, from, to) in [
            ("10.98.0.2:5000", client, behind),
            ("[fd00:98::2]:5000", client, behind),
            ("10.99.0.1:5000", behind, client),
            ("[fd00:99::1]:5000", behind, client),
        ] {
            transfer_tcp(from, to, address.parse().unwrap(), 3_000_000);
        }
    });
    let links: Vec<_> = stats.links.iter().map(|link| &*link.name).collect();
    assert_eq!(links, ["wan"], "a wire is not counted");
    topology.wires[0].name = "wan".into();
    let refused = Network::up(&topology);
    assert!(matches!(
        refused,
        Err(UpError::Topology(TopologyError::NameTwice { .. }))
    ));
}

fn round_trip(near: &UdpSocket, far: &UdpSocket) -> io::Result<Duration> {
    let mut bytes = [0; 100];
    let start = Instant::now();
    near.send(&bytes)?;
    let (_, from) = received(far, &mut bytes)?;
    far.send_to(&bytes, from)?;
    received(near, &mut bytes)?;
    Ok(start.elapsed())
}

/// A wait with a timeout ends with EINTR when the process was stopped or frozen (signal(7)).
fn received(socket: &UdpSocket, bytes: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
    loop {
        match socket.recv_from(bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            received => return received,
        }
    }
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
    let work = |_: &Control| thread::sleep(Duration::from_millis(500));
    let forwarded = network.forward_while(ForwardOptions::default(), work);
    let (_, stats) = forwarded.unwrap();
    let there = &stats.links[0].directions[0];
    assert_eq!(
        (there.total.arrived.packets, there.missed_packets),
        (10_000, 100)
    );
    // The last of those that were read waited for all the others, however fast the machine is. Some
    // of them get an answer: nobody listens.
    let (waiting, back) = (&stats.waiting, &stats.links[0].directions[1]);
    assert_eq!(waiting.count, 10_000 + back.total.arrived.packets);
    assert!(waiting.p99_us > 1_000.0, "{waiting:?}");
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Many hosts: a dumbbell of 2 × 16 with two routers, up in time and connected. Needs root; says so
//! and skips otherwise.
#![allow(clippy::unwrap_used)] // Clippy does not see that the functions beside the tests are theirs.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process;
use std::time::{Duration, Instant};

use fatpath_emulator::{
    CellSpec, ChainSpec, End, ForwardOptions, HostSpec, LinkSpec, Network, RouteSpec, Topology,
};

/// Hosts on each side.
const SIDE: u8 = 16;

/// Routes to nowhere in each router, as of a topology of many prefixes.
const MORE_ROUTES: u16 = 1_000;

const PATIENCE: Duration = Duration::from_secs(10);

/// Side 1 or 2, host 1 to 16: 10.SIDE.NUMBER.1, its router .2. The hosts have a default route only.
fn dumbbell(run_name: &str) -> Topology {
    let host = |name: String, routes: Vec<RouteSpec>, forwarding| HostSpec {
        netns: format!("{run_name}-{name}"),
        name,
        routes,
        forwarding,
    };
    let link = |name: String, one: End, other: End, chain: ChainSpec| LinkSpec {
        name,
        ends: [one, other],
        mtu: 1500,
        exact: false,
        directions: [chain.clone(), chain],
    };
    let bottleneck = ChainSpec::of([
        CellSpec::rate(500_000_000, Some(128_000)),
        CellSpec::delay(5_000_000),
    ]);
    let (left, right) = (end("left", 0, 0, 1), end("right", 0, 0, 2));
    let mut links = vec![link("middle".into(), left, right, bottleneck)];
    let mut hosts = vec![
        host("left".into(), router_routes(2, 2), true),
        host("right".into(), router_routes(1, 1), true),
    ];
    for (side, router) in [(1, "left"), (2, "right")] {
        for number in 1..=SIDE {
            let name = format!("h{side}-{number}");
            let (near, far) = (end(&name, side, number, 1), end(router, side, number, 2));
            links.push(link(format!("l{name}"), near, far, ChainSpec::default()));
            hosts.push(host(name, default_routes(side, number), false));
        }
    }
    let wires = vec![];
    Topology {
        hosts,
        links,
        wires,
    }
}

fn end(host: &str, side: u8, number: u8, last: u8) -> End {
    let (side_v6, number_v6) = (side.into(), number.into());
    let ipv6 = [0xfd00, side_v6, number_v6, 0, 0, 0, 0, last.into()];
    End {
        host: host.into(),
        ipv4: Some(ipnet::Ipv4Net::new([10, side, number, last].into(), 24).unwrap()),
        ipv6: Some(ipnet::Ipv6Net::new(ipv6.into(), 64).unwrap()),
    }
}

fn route(to: &str, via: &str) -> RouteSpec {
    RouteSpec {
        to: to.parse().unwrap(),
        via: via.parse().unwrap(),
    }
}

fn default_routes(side: u8, number: u8) -> Vec<RouteSpec> {
    vec![
        route("0.0.0.0/0", &format!("10.{side}.{number}.2")),
        route("::/0", &format!("fd00:{side:x}:{number:x}::2")),
    ]
}

fn router_routes(far_side: u8, far_router: u8) -> Vec<RouteSpec> {
    let (via, via_v6) = (
        format!("10.0.0.{far_router}"),
        format!("fd00::{far_router}"),
    );
    let mut routes = vec![
        route(&format!("10.{far_side}.0.0/16"), &via),
        route(&format!("fd00:{far_side:x}::/32"), &via_v6),
    ];
    for number in 0..MORE_ROUTES {
        let (high, low) = (number >> 8, number & 0xff);
        routes.push(route(&format!("172.{}.{low}.0/24", 16 + high), &via));
        routes.push(route(&format!("fd01:{number:x}::/64"), &via_v6));
    }
    routes
}

#[test]
fn every_left_host_reaches_every_right_host() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: every_left_host_reaches_every_right_host needs root");
        return;
    }
    let topology = dumbbell(&format!("fp-bell-{}", process::id()));
    let begun = Instant::now();
    let network = Network::up(&topology).unwrap();
    println!("up in {:?}", begun.elapsed());
    let forwarded = network.forward_while(ForwardOptions::default(), |_| {
        [false, true].map(|v6| reach_all(&network, v6))
    });
    let (_, stats) = forwarded.unwrap();
    for link in &stats.links {
        for direction in &link.directions {
            assert_eq!(direction.missed_packets, 0, "{link:?}");
            assert_eq!(direction.total.dropped_total().packets, 0, "{link:?}");
        }
    }
    let ending = Instant::now();
    drop(network);
    println!("down in {:?}", ending.elapsed());
}

/// Each left host sends its number to each right host, which answers with its own.
fn reach_all(network: &Network, v6: bool) {
    let sockets = |side| -> Vec<UdpSocket> {
        (1..=SIDE)
            .map(|number| bind(network, side, number, v6))
            .collect()
    };
    let (left, right) = (sockets(1), sockets(2));
    for (one, number) in left.iter().zip(1..) {
        for other in &right {
            one.send_to(&[number], other.local_addr().unwrap()).unwrap();
        }
    }
    for (other, number) in right.iter().zip(1..) {
        let mut heard = vec![];
        for _ in 0..SIDE {
            let mut from = [0];
            let (_, address) = other.recv_from(&mut from).unwrap();
            other.send_to(&[number], address).unwrap();
            heard.push(from[0]);
        }
        heard.sort_unstable();
        assert!(heard.into_iter().eq(1..=SIDE));
    }
    for one in &left {
        let mut heard = vec![];
        for _ in 0..SIDE {
            let mut from = [0];
            one.recv(&mut from).unwrap();
            heard.push(from[0]);
        }
        heard.sort_unstable();
        assert!(heard.into_iter().eq(1..=SIDE));
    }
}

fn bind(network: &Network, side: u8, number: u8, v6: bool) -> UdpSocket {
    let address: SocketAddr = match v6 {
        true => format!("[fd00:{side:x}:{number:x}::1]:7000")
            .parse()
            .unwrap(),
        false => (Ipv4Addr::new(10, side, number, 1), 7000).into(),
    };
    let namespace = network.host(&format!("h{side}-{number}")).unwrap();
    let socket = namespace.run(|| UdpSocket::bind(address)).unwrap().unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernel makes of packets that a link damages, and of its messages that packets are too
//! big. Needs root; says so and skips otherwise.
#![allow(clippy::unwrap_used)] // Clippy does not see that the functions beside the tests are theirs.

mod support;

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use fatpath_emulator::{CellSpec, ChainSpec, DropCause, Namespace, Topology, unshaped};
use fatpath_link::{CorruptSpec, MtuSpec};
use support::{
    can_run, counters, pattern, receive_all, run_name, set_option, transfer_tcp, transfer_udp,
    udp_pair, with_network, with_network_then,
};

const ADDRESSES: [&str; 2] = ["10.99.0.2:5000", "[fd00:99::2]:5000"];

/// Two hosts, and a link that does something on the way there only.
fn one_way(name: &str, cell: CellSpec) -> Topology {
    let mut topology = unshaped::two_hosts(&run_name(name), &ChainSpec::default());
    topology.links[0].directions[0] = ChainSpec::of([cell]);
    topology
}

/// Every damaged packet is dropped by the server's kernel, for its checksum.
#[test]
fn the_receiving_kernel_finds_every_corrupted_packet() {
    if !can_run("the_receiving_kernel_finds_every_corrupted_packet") {
        return;
    }
    let topology = one_way(
        "corrupt",
        CellSpec::Corrupt(CorruptSpec { probability: 0.02 }),
    );
    let work = |network: &fatpath_emulator::Network| {
        let (client, server) = (
            network.host("client").unwrap(),
            network.host("server").unwrap(),
        );
        for address in ADDRESSES {
            let address: SocketAddr = address.parse().unwrap();
            transfer_tcp(client, server, address, 10_000_000);
            let received = transfer_udp(client, server, address);
            assert!((1_800..2_000).contains(&received), "{received} of 2000");
        }
        let received = transfer_without_checksum(client, server, ADDRESSES[0].parse().unwrap());
        assert!((800..1_000).contains(&received), "{received} of 1000");
    };
    let (found, stats) = with_network_then(&topology, work, |network, ()| {
        // What was written last may still be on its way up.
        thread::sleep(Duration::from_millis(300));
        let names = ["TcpInCsumErrors", "UdpInCsumErrors", "Udp6InCsumErrors"];
        counters(network.host("server").unwrap(), names)
    });
    let there = &stats.links[0].directions[0];
    let corrupted = there.total.corrupted.packets;
    assert!(found.iter().all(|errors| *errors > 0), "{found:?}");
    assert_eq!(found.iter().sum::<u64>(), corrupted, "{found:?}");
    assert_eq!(there.refused_packets, 0);
}

/// 1,000 datagrams over IPv4 with a checksum of 0, which receivers do not verify.
fn transfer_without_checksum(client: &Namespace, server: &Namespace, address: SocketAddr) -> usize {
    let datagram: Vec<u8> = (0..100).map(pattern).collect();
    let (sender, receiver) = udp_pair(client, server, address);
    set_option(&sender, libc::SOL_SOCKET, libc::SO_NO_CHECK, 1).unwrap();
    for _ in 0..1_000 {
        sender.send_to(&datagram, address).unwrap();
    }
    receive_all(&receiver, &datagram)
}

/// A sender whose packets are too big learns it from the link's messages, and goes on.
#[test]
fn senders_learn_the_mtu_of_the_path() {
    if !can_run("senders_learn_the_mtu_of_the_path") {
        return;
    }
    let topology = one_way("mtu", CellSpec::Mtu(MtuSpec { mtu_bytes: 1400 }));
    let (_, stats) = with_network(&topology, |network| {
        let (client, server) = (
            network.host("client").unwrap(),
            network.host("server").unwrap(),
        );
        for address in ADDRESSES {
            let address: SocketAddr = address.parse().unwrap();
            transfer_tcp(client, server, address, 5_000_000);
            assert!(route_to(client, address).contains("mtu 1400"));
            datagram_arrives(client, server, address);
        }
        let names = ["IcmpInDestUnreachs", "Icmp6InPktTooBigs"];
        assert!(counters(client, names).iter().all(|received| *received > 0));
        let names = ["IcmpInErrors", "IcmpInCsumErrors", "Icmp6InErrors"];
        assert_eq!(counters(client, names), [0; 3]);
    });
    let there = &stats.links[0].directions[0];
    assert!(there.total.dropped(DropCause::TooBig).packets > 0);
    let back = &stats.links[0].directions[1];
    assert_eq!((there.refused_packets, back.refused_packets), (0, 0));
}

/// Their sender ignores what it knows of the path, so that it is the link that fragments them; the kernel puts them together.
#[test]
fn datagrams_without_the_df_flag_go_on_in_fragments() {
    const IP_PMTUDISC_OMIT: libc::c_int = 5;
    const DATAGRAMS: u64 = 50;
    if !can_run("datagrams_without_the_df_flag_go_on_in_fragments") {
        return;
    }
    let topology = one_way("fragments", CellSpec::Mtu(MtuSpec { mtu_bytes: 1400 }));
    let datagram: Vec<u8> = (0..1_450).map(pattern).collect();
    let (received, stats) = with_network(&topology, |network| {
        let hosts = ["client", "server"].map(|name| network.host(name).unwrap());
        let address = ADDRESSES[0].parse().unwrap();
        let (sender, receiver) = udp_pair(hosts[0], hosts[1], address);
        set_option(
            &sender,
            libc::IPPROTO_IP,
            libc::IP_MTU_DISCOVER,
            IP_PMTUDISC_OMIT,
        )
        .unwrap();
        for _ in 0..DATAGRAMS {
            sender.send_to(&datagram, address).unwrap();
        }
        receive_all(&receiver, &datagram)
    });
    assert_eq!(received as u64, DATAGRAMS);
    let there = &stats.links[0].directions[0].total;
    assert_eq!(there.dropped(DropCause::TooBig).packets, 0);
    assert_eq!(there.fragmented.packets, DATAGRAMS);
    assert_eq!(there.fragmented.bytes, 20 * DATAGRAMS);
}

/// The route of a host, with what it has learnt of it.
fn route_to(host: &Namespace, address: SocketAddr) -> String {
    let mut ip = host.command("ip");
    let output = ip
        .args(["route", "get", &address.ip().to_string()])
        .output();
    String::from_utf8(output.unwrap().stdout).unwrap()
}

/// A datagram of 1,500 bytes gets through in fragments, now that its sender knows the MTU.
fn datagram_arrives(client: &Namespace, server: &Namespace, address: SocketAddr) {
    let datagram: Vec<u8> = (0..1_450).map(pattern).collect();
    let (sender, receiver) = udp_pair(client, server, address);
    sender.send_to(&datagram, address).unwrap();
    assert_eq!(receive_all(&receiver, &datagram), 1);
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory of the forwarder when more is sent than it can write. A process of its own, whose memory is the
//! forwarder's. Needs root; says so and skips otherwise.
#![allow(clippy::unwrap_used)] // Clippy does not see that the functions beside the tests are theirs.

mod support;

use std::net::UdpSocket;

use fatpath_emulator::{CellSpec, ChainSpec, unshaped};
use fatpath_link::DuplicateSpec;
use support::{can_run, run_name, set_segment_bytes, with_network};

const SUPER_PACKETS: usize = 2_000;
const SEGMENTS: usize = 64;
/// With headers, each takes a buffer of 2 KiB.
const SEGMENT_BYTES: usize = 500;
/// A tenth of what all of them would take.
const MOST_KIB: u64 = (SUPER_PACKETS * SEGMENTS * 2 * 2 / 10) as u64;

/// Every read makes 128 packets, twice of what is written before the next one.
#[test]
fn a_flood_does_not_fill_the_memory() {
    if !can_run("a_flood_does_not_fill_the_memory") {
        return;
    }
    let twice = CellSpec::Duplicate(DuplicateSpec { probability: 1.0 });
    let mut topology = unshaped::two_hosts(&run_name("flood"), &ChainSpec::of([twice]));
    topology.links[0].exact = true;
    topology.links[0]
        .ends
        .iter_mut()
        .for_each(|end| end.ipv6 = None);
    let before_kib = most_resident_kib();
    let (_, stats) = with_network(&topology, |network| {
        let client = network.host("client").unwrap();
        let socket = client.run(|| UdpSocket::bind("10.99.0.1:7000"));
        let socket = socket.unwrap().unwrap();
        set_segment_bytes(&socket, SEGMENT_BYTES as i32).unwrap();
        let payload = vec![7; SEGMENT_BYTES * SEGMENTS];
        for _ in 0..SUPER_PACKETS {
            socket.send_to(&payload, "10.99.0.2:7000").unwrap();
        }
    });
    let there = &stats.links[0].directions[0].total;
    assert_eq!(there.left.packets, 2 * there.arrived.packets);
    let grown_kib = most_resident_kib() - before_kib;
    assert!(grown_kib < MOST_KIB, "{grown_kib} KiB");
}

/// The most memory that this process ever had.
fn most_resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.unwrap()
        .split_whitespace()
        .next()
        .unwrap()
        .parse()
        .unwrap()
}

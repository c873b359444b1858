// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a host answers to packets of a test from one end: whatever it is, nothing panics, and what nobody asked for is no answer.
#![no_main]

use fatpath_probe::Secret;
use fatpath_probe::answered::packet::{Ends, Packets};
use libfuzzer_sys::fuzz_target;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

/// Answers of IPv4 and IPv6, by ICMP and by TCP.
static ALL: LazyLock<Vec<Packets>> = LazyLock::new(|| {
    let of = |ports| {
        let v4 = Ends {
            local: Ipv4Addr::LOCALHOST.into(),
            peer: Ipv4Addr::LOCALHOST.into(),
            ports,
            has_ipv4_header: true,
        };
        let v6 = Ends {
            local: Ipv6Addr::LOCALHOST.into(),
            peer: Ipv6Addr::LOCALHOST.into(),
            has_ipv4_header: false,
            ..v4
        };
        [v4, v6].map(|ends| Packets::new(ends, Secret::new(&[7; 32])))
    };
    [None, Some([40_000, 9])].into_iter().flat_map(of).collect()
});

fuzz_target!(|bytes: &[u8]| {
    for (index, packets) in ALL.iter().enumerate() {
        let taken = packets.answered(bytes, 1);
        assert!(taken.is_none() || index >= 2, "an echo request that was never sent was answered");
    }
});

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A walk over the connections that did something: it leaves out the others, and none that waits for anything.

use crate::sampling_in_turn;
use crate::support::wire::{B4, Wire, transfer};
use fatpath_clock::monotonic_ns;
use fatpath_kernel::Kernel;
use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

/// Local ends of the connections that a walk tells of.
fn moved(kernel: &Kernel, since_ns: u64) -> HashSet<SocketAddr> {
    let mut found = HashSet::new();
    let note = |sample: fatpath_api::Sample| {
        found.insert(sample.flow.local);
    };
    kernel.walk_moved(since_ns, note).unwrap();
    found
}

fn local(flow: &TcpStream) -> SocketAddr {
    flow.local_addr().unwrap()
}

#[test]
fn it_leaves_out_only_what_did_nothing_and_waits_for_nothing() {
    let Some(loaded) = sampling_in_turn("flows = 'all'") else {
        return;
    };
    let wire = Wire::lay("moved");
    let flows: Vec<_> = (0..3).map(|_| wire.connection(B4)).collect();
    let [idle, busy, full] = &flows[..] else {
        panic!()
    };
    assert!(moved(&loaded.kernel, 0).is_superset(&flows.iter().map(|f| local(&f.0)).collect()));
    // Its peer does not read: it has data to send for as long as it lives.
    full.0.set_nonblocking(true).unwrap();
    while (&full.0).write(&[7; 65536]).is_ok() {}
    let mut unread = &busy.1;
    (&busy.0).write_all(&[7]).unwrap();
    let mut byte = [0];
    std::thread::sleep(std::time::Duration::from_millis(50)); // a delayed acknowledgement: 40 ms
    let before_reading = monotonic_ns();
    unread.read_exact(&mut byte).unwrap();
    let found = moved(&loaded.kernel, before_reading);
    assert!(found.contains(&local(&busy.1)), "its program has read");
    assert!(found.contains(&local(&full.0)), "it has data to send");
    assert!(!found.contains(&local(&idle.0)) && !found.contains(&local(&idle.1)));
    let before = monotonic_ns();
    transfer(&idle.0, &idle.1, 1000);
    assert!(moved(&loaded.kernel, before).contains(&local(&idle.0)));
}

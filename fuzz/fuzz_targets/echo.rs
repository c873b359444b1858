// SPDX-License-Identifier: MIT OR Apache-2.0
//! What two hosts say to each other in a test between them: lines over the connection, and datagrams. What is taken is in range,
//! and never costs more than the limits of whom it comes from.

#![no_main]

use fatpath_measure::echo::{Datagram, HEADER_BYTES};
use fatpath_measure::trains::{self, Heard};
use fatpath_measure::{Ask, Cost, Ledger, Peer, Plan, Reply, Run, parse, shown};
use fatpath_train::{Departure, Response, Train};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;
use std::time::Duration;

const FILE: &str = "
[[peer]]
name = 'a'
prefix = '192.0.2.0/24'
key = 'ed25519:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA='
kinds = ['echo', 'one_way', 'rate', 'iperf3']
";

static PLAN: LazyLock<Plan> = LazyLock::new(|| parse(FILE).expect("it is right"));

fuzz_target!(|bytes: &[u8]| {
    if let Some(datagram) = Datagram::decode(bytes) {
        let mut again = [0; HEADER_BYTES];
        datagram.encode(&mut again);
        assert_eq!(Datagram::decode(&again), Some(datagram));
    }
    let Ok(line) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Ok(Reply::Refused { why }) = Reply::read(line) {
        assert!(!shown(&why).contains(char::is_control));
    }
    if let Ok(ask) = Ask::read(line) {
        check(&PLAN.peers[0], &ask.cost(&PLAN.peers[0]));
    }
    if let Ok(train) = trains::read(line) {
        assert!(train.packets > 0 && train.bytes() < 1 << 28);
    }
    if let Ok(Reply::Arrived { runs, .. }) = Reply::read(line) {
        hear(&runs);
    }
});

/// A train of 100 packets that took 10 ms.
fn hear(runs: &[Run]) {
    let train = Train {
        rate_bps: 120_000_000,
        packets: 100,
        packet_bytes: 1500,
    };
    let mut heard = Heard::of(&train);
    if heard.take(runs).is_ok()
        && let Ok(arrived) = heard.end(Duration::from_millis(10))
    {
        let sent = [Departure {
            at_ns: 0,
            first: 0,
            packets: 100,
        }];
        if let Ok(response) = Response::of(&train, &sent, &arrived) {
            assert!(response.output_bps.is_finite());
        }
    }
}

fn check(peer: &Peer, cost: &Cost) {
    let mut ledger = Ledger::default();
    if ledger.begin(peer, cost, 0).is_ok() {
        assert!(cost.bytes <= peer.bytes_a_day && cost.duration_us <= peer.longest_us);
        assert!(cost.rate_bps <= peer.rate_bps);
    }
    assert!(ledger.of(&peer.name, 0).bytes <= peer.bytes_a_day);
}

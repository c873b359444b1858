// SPDX-License-Identifier: MIT OR Apache-2.0
//! What two hosts say to each other in a test between them: lines over the connection, and datagrams. What is taken is in range,
//! and never costs more than the limits of whom it comes from.

#![no_main]

use fatpath_measure::echo::{Datagram, HEADER_BYTES};
use fatpath_measure::{Ask, Ledger, Peer, Plan, Reply, parse, shown};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

const FILE: &str = "
[[peer]]
name = 'a'
prefix = '192.0.2.0/24'
key = 'ed25519:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA='
";

static PLAN: LazyLock<Plan> = LazyLock::new(|| parse(FILE).expect("it is right"));

fuzz_target!(|bytes: &[u8]| {
    if let Some(datagram) = Datagram::decode(bytes) {
        let mut again = [0; HEADER_BYTES];
        datagram.encode(&mut again);
        assert_eq!(Datagram::decode(&again), Some(datagram));
    }
    let Ok(line) = std::str::from_utf8(bytes) else { return };
    if let Ok(Reply::Refused { why }) = Reply::read(line) {
        assert!(!shown(&why).contains(char::is_control));
    }
    if let Ok(ask) = Ask::read(line) {
        check(&PLAN.peers[0], &ask);
    }
});

fn check(peer: &Peer, ask: &Ask) {
    let mut ledger = Ledger::default();
    if ledger.begin(peer, ask, 0).is_ok() {
        assert!(ask.bytes() <= peer.bytes_a_day && ask.duration_us() <= peer.longest_us);
        assert!(ask.rate_bps() <= peer.rate_bps);
    }
    assert!(ledger.of(&peer.name, 0).bytes <= peer.bytes_a_day);
}

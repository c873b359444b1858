// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a rude flow knows of its path does not change while its program has little to send.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use fatpath_api::RudeMark;
use fatpath_cc::Window;
use fatpath_policy::{Classifier, parse};
use libbpf_rs::{MapCore, MapFlags};
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};
use support::option::{RUDE_ON, set_rude};
use support::wire::{B4, Wire, transfer};
use support::{Loaded, alone};

const POLICY: &str = "[[rule]]\nname = 'wire'\ndestination = ['10.77.0.0/24']\nrude = 'allowed'\n";

/// Where `round` and `is_started_up` lie in struct cc_path, which follows the fair window in struct rude_state.
const ROUND_AT: usize = 72;
const IS_STARTED_UP_AT: usize = 75;

/// A few segments, so that more than one acknowledgement comes; a bulk flow of this wire sends faster.
const MESSAGE_BYTES: usize = 4_000;
/// Longer than the rounds of start-up: what is in flight before the first acknowledgement teaches nothing.
const BULK_BYTES: usize = 50_000_000;
/// A round of the path's estimate (CC_PATH_MIN_ROUND_US) ends at the first acknowledgement after it.
const ROUND: Duration = Duration::from_millis(10);

/// The round of the cycle that the path's estimate is in; none during start-up.
fn round(loaded: &Loaded, flow: &TcpStream) -> Option<u8> {
    let key = flow.as_raw_fd().to_ne_bytes();
    let state = loaded.map("fp_rude_states").lookup(&key, MapFlags::ANY);
    let state = state.unwrap().unwrap();
    let path = &state[size_of::<Window>()..];
    (path[IS_STARTED_UP_AT] == 1).then_some(path[ROUND_AT])
}

fn gate_open(wire: &Wire) -> Loaded {
    let loaded = Loaded::at("applimited");
    let missing = &loaded.laws_missing;
    assert!(missing.is_none(), "{missing:?}");
    let policy = parse(POLICY, None).unwrap();
    let tables = Classifier::build(&policy);
    loaded.kernel.publish(&policy, &tables).unwrap();
    let hosts = [wire.a.name().to_owned()];
    let gate = loaded.kernel.open_rude_gate(RudeMark::default(), &hosts);
    gate.unwrap();
    loaded
}

#[test]
fn rounds_with_little_to_send_teach_nothing_of_the_path() {
    let Some(_alone) = alone() else { return };
    let wire = Wire::lay("applimited");
    wire.without_offload();
    let loaded = gate_open(&wire);
    let (sender, receiver) = wire.connection(B4);
    set_rude(&sender, RUDE_ON).unwrap();
    let end = Instant::now() + Duration::from_secs(60);
    while round(&loaded, &sender).is_none() {
        assert!(Instant::now() < end, "still starting up");
        transfer(&sender, &receiver, BULK_BYTES);
    }
    let mut rounds = Vec::new();
    for _ in 0..15 {
        std::thread::sleep(ROUND);
        transfer(&sender, &receiver, MESSAGE_BYTES);
        rounds.push(round(&loaded, &sender));
    }
    // The first message may still end the round of what was sent before.
    assert!(rounds[1..].iter().all(|it| *it == rounds[1]), "{rounds:?}");
}

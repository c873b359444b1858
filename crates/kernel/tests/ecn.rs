// SPDX-License-Identifier: MIT OR Apache-2.0
//! A rude flow does not react to congestion marks, so it asks for none: its segments leave without ECT.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use support::wire::{B4, B6, Capture, Segment, Wire, negotiate_ecn, transfer};
use support::{Loaded, Mode, alone};

const ECT0: u8 = 2;

/// What a flow sends while it is `mode`.
fn sent(wire: &Wire, loaded: &Loaded, to: &str, mode: Mode) -> Vec<Segment> {
    let (sender, receiver) = wire.connection(to);
    loaded.set_mode(&sender, mode);
    let capture = Capture::start(&wire.b);
    transfer(&sender, &receiver, 300_000);
    let from = sender.local_addr().unwrap();
    let mut seen = capture.stop();
    seen.retain(|segment| segment.from == from);
    seen
}

/// Retransmissions and ACKs have none (RFC 3168, 6.1.4 and 6.1.5).
fn has_ect(segments: &[Segment]) -> bool {
    segments.iter().any(|segment| segment.ecn == ECT0)
}

#[test]
fn only_a_rude_flow_leaves_without_ect() {
    let Some(_alone) = alone() else { return };
    let wire = Wire::lay("ect");
    let loaded = Loaded::at("ect");
    loaded.kernel.mark_in(&Wire::file(&wire.a)).unwrap();
    negotiate_ecn(&wire.a);
    negotiate_ecn(&wire.b);
    for is_offloaded in [true, false] {
        if !is_offloaded {
            wire.without_offload();
        }
        for (bits, dscp) in [(0x200, 0), (0, 5)] {
            loaded.mark_with(bits, dscp);
            for to in [B4, B6] {
                let rude = sent(&wire, &loaded, to, Mode::Rude);
                assert!(rude.iter().all(|segment| segment.ecn == 0), "{to}");
                let is_large = |segment: &Segment| segment.payload_bytes > 10_000;
                assert_eq!(rude.iter().any(is_large), is_offloaded, "TSO");
                assert!(rude.iter().all(|segment| segment.ip_checksum_is_good));
                let is_good = |segment: &Segment| segment.tcp_checksum_is_good;
                assert!(is_offloaded || rude.iter().all(is_good));
                for mode in [Mode::Polite, Mode::GoingPolite] {
                    assert!(has_ect(&sent(&wire, &loaded, to, mode)), "{to}");
                }
            }
        }
    }
}

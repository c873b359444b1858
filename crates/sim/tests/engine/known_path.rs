// SPDX-License-Identifier: MIT OR Apache-2.0
//! Slow start on a path that is known, alone and where others fill it.

use fatpath_cc::{KnownPath, Law, Start};
use fatpath_link::CellSpec;
use fatpath_sim::{Buffer, FlowSpec, Spec};

use crate::support::*;

const RATE_BPS: u64 = 200_000_000;
const RTT_NS: u64 = 80 * MS_NS;
/// 2 MB, of 1500 bytes each.
const BDP_PKTS: u32 = 1_333;

const KNOWN: KnownPath = KnownPath {
    bdp_pkts: BDP_PKTS,
    base_rtt_us: (RTT_NS / 1000) as u32,
};

fn knowing(pacing: bool, initial_rate_bps: u64) -> FlowSpec {
    let mut flow = bulk(None);
    flow.tcp.law = Law::named("cubic").expect("a law");
    flow.tcp.send_buffer = Buffer::Fixed(1 << 30);
    flow.tcp.receive_buffer = Buffer::Auto(65_536, 1 << 30);
    flow.tcp.pacing = pacing;
    flow.tcp.start.hystart = true;
    flow.tcp.start.initial_ssthresh_pkts = BDP_PKTS;
    flow.tcp.start.known = KNOWN;
    flow.tcp.start.initial_rate_bps = initial_rate_bps;
    flow
}

/// By slow start from ten segments, and from what a third or a half of the rate needs.
#[test]
fn alone_a_flow_goes_up_to_what_the_path_holds() {
    for pacing in [false, true] {
        for rate_bps in [0, RATE_BPS / 3, RATE_BPS / 2] {
            let queue = CellSpec::rate(RATE_BPS, Some(1_000_000));
            let mut spec: Spec = path(RTT_NS, [queue], 2 * S_NS);
            spec.sample_every_ns = Some(10 * MS_NS);
            spec.flows = vec![knowing(pacing, rate_bps)];
            let samples = outcome(&spec).flows.remove(0).samples;
            let last = samples.last().expect("samples");
            assert_eq!(last.retransmits, 0, "{pacing} {rate_bps}");
            assert_eq!(last.ssthresh_pkts, BDP_PKTS, "{pacing} {rate_bps}");
        }
    }
}

/// At whatever rate it starts: here nobody asks how long its handshake took.
#[test]
fn beside_others_slow_start_ends_at_a_quarter_of_what_the_path_holds() {
    for rate_bps in [0, RATE_BPS / 3, RATE_BPS / 2] {
        let deep = CellSpec::rate(RATE_BPS, Some(8_000_000));
        let mut spec: Spec = path(RTT_NS, [deep], 4 * S_NS);
        spec.sample_every_ns = Some(10 * MS_NS);
        let late = FlowSpec {
            start_ns: 2_500 * MS_NS,
            ..knowing(false, rate_bps)
        };
        spec.flows = vec![late, knowing(false, 0), knowing(false, 0)];
        let samples = outcome(&spec).flows.remove(0).samples;
        let last = samples.last().expect("samples");
        assert_eq!(last.retransmits, 0, "{rate_bps}");
        assert_eq!(last.ssthresh_pkts, BDP_PKTS / 4, "{rate_bps}");
    }
}

fn under_bbr(known: KnownPath) -> FlowSpec {
    let mut flow = knowing(false, 0);
    flow.tcp.law = Law::named("bbr").expect("a law");
    flow.tcp.start = Start {
        known,
        ..Start::default()
    };
    flow
}

/// The more its neighbours have. They fill the queue at some of these moments.
#[test]
fn beside_others_bbr_starts_at_a_quarter_of_the_rate() {
    let neighbours_have = |known: KnownPath, start_ns: u64| {
        let queue = CellSpec::rate(RATE_BPS, Some(2_000_000));
        let mut spec: Spec = path(RTT_NS, [queue], 12 * S_NS);
        let late = FlowSpec {
            start_ns,
            ..under_bbr(known)
        };
        spec.flows = vec![late, knowing(false, 0), knowing(false, 0)];
        let flows = outcome(&spec).flows;
        flows[1].delivered_bytes + flows[2].delivered_bytes
    };
    let starts = || (25..35).map(|tenths| tenths * 100 * MS_NS);
    let [unknown, known] = [KnownPath::default(), KNOWN].map(|known| {
        let all = starts().map(|start_ns| neighbours_have(known, start_ns));
        all.sum::<u64>() as f64 / starts().count() as f64
    });
    assert!(known > 1.01 * unknown, "{known} and {unknown}");
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's own `cubic` at its start.

use fatpath_cc::Law;
use fatpath_link::CellSpec;
use fatpath_sim::{Buffer, FlowSpec, Sample, Spec};

use crate::support::*;

const RATE_BPS: u64 = 200_000_000;
const RTT_NS: u64 = 80 * MS_NS;
/// 2 MB, of 1500 bytes each.
const BDP_PKTS: u32 = 1_333;

fn cubic() -> FlowSpec {
    let mut flow = bulk(None);
    flow.tcp.law = Law::named("cubic").expect("a law");
    flow.tcp.starts_as_kernel = true;
    flow.tcp.send_buffer = Buffer::Fixed(1 << 30);
    flow.tcp.receive_buffer = Buffer::Fixed(1 << 30);
    flow
}

fn samples_alone(flow: FlowSpec) -> Vec<Sample> {
    let deep = CellSpec::rate(RATE_BPS, Some(8_000_000));
    let mut spec: Spec = path(RTT_NS, [deep], 6 * S_NS);
    spec.sample_every_ns = Some(10 * MS_NS);
    spec.flows = vec![flow];
    outcome(&spec).flows.remove(0).samples
}

/// The first sample with a threshold.
fn slow_start_end(samples: &[Sample]) -> usize {
    let has_threshold = |s: &Sample| s.cwnd_pkts > 0 && s.ssthresh_pkts < 1 << 20;
    samples
        .iter()
        .position(has_threshold)
        .expect("slow start ends")
}

/// Half a window of queue at the end of a round shows at the beginning of the next one, and as a train: the tests of
/// `kernel_cubic.rs` tell the two apart.
#[test]
fn slow_start_ends_before_the_path_is_full() {
    let samples = samples_alone(cubic());
    let found = &samples[slow_start_end(&samples)];
    let part = f64::from(found.ssthresh_pkts) / f64::from(BDP_PKTS);
    assert!((0.45..0.9).contains(&part), "{part} of the path");
    let retransmits = samples.last().expect("samples").retransmits;
    assert_eq!(retransmits, 0, "the queue of 4 bdp takes seconds to fill");
}

/// By a twentieth a round trip from there: the rest of the path takes about a second, RFC 9438's growth several.
#[test]
fn until_the_first_loss_the_window_grows_by_a_twentieth_a_round_trip() {
    let samples = samples_alone(cubic());
    let began = slow_start_end(&samples);
    let [first, later] = [began, began + 80].map(|at| f64::from(samples[at].cwnd_pkts));
    // 800 ms are ten round trips without a queue.
    let ratio = later / first;
    assert!((1.4..1.8).contains(&ratio), "{ratio}");
}

#[test]
fn slow_start_ends_where_a_queue_grows() {
    let deep = CellSpec::rate(RATE_BPS, Some(8_000_000));
    let mut spec: Spec = path(RTT_NS, [deep], 4 * S_NS);
    spec.sample_every_ns = Some(10 * MS_NS);
    let late = FlowSpec {
        start_ns: 2_500 * MS_NS,
        ..cubic()
    };
    spec.flows = vec![late, cubic(), cubic()];
    let samples = outcome(&spec).flows.remove(0).samples;
    let last = samples.last().expect("samples");
    assert!(last.ssthresh_pkts < BDP_PKTS / 4, "{last:?}");
}

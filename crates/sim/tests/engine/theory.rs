// SPDX-License-Identifier: MIT OR Apache-2.0
//! Goodput against the formulas of the field.

use fatpath_cc::Law;
use fatpath_link::{CellSpec, LossSpec};
use fatpath_sim::{Buffer, DelayedAcks, FlowSpec, Spec};

use crate::support::*;

/// Buffers that never limit, and an ACK for each segment.
fn unlimited() -> FlowSpec {
    let mut flow = bulk(None);
    flow.tcp.send_buffer = Buffer::Fixed(1 << 30);
    flow.tcp.receive_buffer = Buffer::Fixed(1 << 30);
    flow.tcp.delayed_acks = DelayedAcks::Off;
    flow
}

#[test]
fn a_receive_window_gives_itself_each_round_trip() {
    for window_pkts in [10, 100, 1_000] {
        let mut spec = path(100 * MS_NS, [], 20 * S_NS);
        spec.flows = vec![unlimited()];
        spec.flows[0].tcp.receive_buffer = Buffer::Fixed(window_pkts * 1448);
        let expected_bytes = window_pkts as f64 * 1448.0 * 20.0 / 0.1;
        let share = outcome(&spec).flows[0].delivered_bytes as f64 / expected_bytes;
        // Less one round trip for the handshake, and slow start.
        assert!((0.93..1.0).contains(&share), "{window_pkts}: {share}");
    }
}

/// One loss a cycle of 1/p segments: the window goes to and fro between W/2 and W, and its mean is
/// sqrt(3/2 / p) (Mathis et al. 1997).
#[test]
fn periodic_loss_gives_what_mathis_says() {
    for (every, rtt_ms) in [(100, 50), (1_000, 50), (10_000, 20)] {
        let lost = CellSpec::Loss(LossSpec::Periodic {
            every,
            first: every / 2,
        });
        let mut spec = path(rtt_ms * MS_NS, [lost], 100 * S_NS);
        spec.flows = vec![unlimited()];
        spec.flows[0].tcp.start.initial_ssthresh_pkts = 20;
        let window_pkts = (1.5 * every as f64).sqrt();
        let expected_bps = window_pkts * 1448.0 * 8.0 / (rtt_ms as f64 / 1e3);
        let ratio = outcome(&spec).flows[0].goodput_bps() / expected_bps;
        assert!((0.85..1.1).contains(&ratio), "1/{every}: {ratio}");
    }
}

/// What `law` gives at a loss every `every` segments, as a share of a mean window of `window_pkts`.
fn share_of(law: Law, every: u64, window_pkts: f64) -> f64 {
    let lost = CellSpec::Loss(LossSpec::Periodic {
        every,
        first: every / 2,
    });
    let mut spec = path(20 * MS_NS, [lost], 15 * S_NS);
    spec.flows = vec![unlimited()];
    spec.flows[0].tcp.law = law;
    spec.flows[0].tcp.start.initial_ssthresh_pkts = (0.8 * window_pkts) as u32;
    outcome(&spec).flows[0].goodput_bps() / (window_pkts * 1448.0 * 8.0 / 0.02)
}

/// A cycle takes b W / a round trips at a mean of (1 - b/2) W: the mean is sqrt(a (2 - b) / (2 b p)).
#[test]
fn aimd_gives_its_formula() {
    let (a, b, every) = (4.0, 0.25, 2_000);
    let aimd = Law::named("aimd").unwrap();
    let law = aimd.with("a", a).unwrap().with("b", b).unwrap();
    let window_pkts = (a * (2.0 - b) / (2.0 * b) * every as f64).sqrt();
    let share = share_of(law, every, window_pkts);
    assert!((0.85..1.1).contains(&share), "{share}");
}

/// Kelly 2003: the window falls by b and comes back by a for each acknowledgement, in
/// ln(1 - b) / -ln(1 + a) round trips whatever the window.
#[test]
fn scalable_gives_its_formula() {
    let (a, b, every) = (0.01, 0.125, 5_000);
    let scalable = Law::named("scalable").unwrap();
    let law = scalable.with("a", a).unwrap().with("b", b).unwrap();
    let round_trips = (1.0 - b).ln() / -(1.0 + a).ln();
    let share = share_of(law, every, every as f64 / round_trips);
    assert!((0.85..1.1).contains(&share), "{share}");
}

/// RFC 3649, 5: W = 0.12 / p^0.835, twice what Reno has at 1e-4.
#[test]
fn highspeed_gives_its_formula() {
    let every = 10_000;
    let window_pkts = 0.12 * (every as f64).powf(0.835);
    let share = share_of(Law::named("highspeed").unwrap(), every, window_pkts);
    assert!((0.85..1.15).contains(&share), "{share}");
}

/// Seed 004: from a window of n on, additive increase by one a round trip.
#[test]
fn the_window_grows_by_one_each_round_trip() {
    let mut spec = path(50 * MS_NS, [], 11 * S_NS);
    spec.flows = vec![unlimited()];
    spec.flows[0].tcp.start.initial_ssthresh_pkts = 10;
    spec.sample_every_ns = Some(S_NS);
    let outcome = outcome(&spec);
    let samples = &outcome.flows[0].samples;
    let grown = samples[9].cwnd_pkts - samples[0].cwnd_pkts;
    assert!((178..=181).contains(&grown), "{grown} in 9 s");
}

/// Two equal flows over a drop-tail queue, the second begun later.
fn two_flows() -> Spec {
    let queue = CellSpec::rate(20_000_000, Some(100_000));
    let mut spec = path(40 * MS_NS, [queue], 120 * S_NS);
    spec.flows = vec![unlimited(), unlimited()];
    spec.flows[1].start_ns = 700 * MS_NS;
    spec.sample_every_ns = Some(20 * S_NS);
    spec
}

#[test]
fn two_equal_flows_share_a_full_link() {
    let outcome = outcome(&two_flows());
    // Without the first 20 s, in which the first is ahead.
    let delivered = [0, 1].map(|flow: usize| {
        let flow = &outcome.flows[flow];
        (flow.delivered_bytes - flow.samples[0].delivered_bytes) as f64
    });
    let used = (delivered[0] + delivered[1]) * 8.0 / 100.0 / 20e6;
    assert!(used > 0.85 && used <= 1448.0 / 1500.0, "{used}");
    let share = delivered[0] / (delivered[0] + delivered[1]);
    assert!((0.35..0.65).contains(&share), "{share}");
    assert!(outcome.links[0][0].peak_queue_bytes <= 100_000);
    assert!(outcome.links[0][0].peak_queue_bytes > 97_000);
}

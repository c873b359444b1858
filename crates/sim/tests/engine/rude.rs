// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flows without congestion control: what they reach, the fair window that they keep meanwhile, and how
//! they become polite.

use fatpath_link::CellSpec;
use fatpath_sim::{
    Buffer, ChangeSpec, FlowSpec, Outcome, RudeOff, RudeRate, RudeSpec, Sample, Spec,
};

use crate::support::*;

const RTT_NS: u64 = 40 * MS_NS;
/// Data of 1448 bytes in packets of 1500.
const DATA_OF_RATE: f64 = 1448.0 / 1500.0;

fn rate(rate_bps: u64, queue_pkts: u64) -> CellSpec {
    CellSpec::rate(rate_bps, Some(1500 * queue_pkts))
}

fn rude(rate: RudeRate, off: Option<RudeOff>) -> FlowSpec {
    let mut flow = bulk(None);
    flow.tcp.rude = Some(RudeSpec {
        rate,
        off,
        converged_milli: 10,
    });
    flow.tcp.send_buffer = Buffer::Fixed(1 << 26);
    flow.tcp.receive_buffer = Buffer::Fixed(1 << 26);
    flow
}

/// 100 Mb/s, 333 segments a round trip.
fn alone(flow: FlowSpec, queue_pkts: u64, p: f64, end_ns: u64) -> Outcome {
    let cells = [rate(100_000_000, queue_pkts), CellSpec::loss(p)];
    let mut spec = path(RTT_NS, cells, end_ns);
    spec.flows = vec![flow];
    spec.sample_every_ns = Some(10 * MS_NS);
    outcome(&spec)
}

fn goodput_mbps(outcome: &Outcome) -> f64 {
    outcome.flows[0].goodput_bps() / 1e6
}

#[test]
fn a_share_is_reached_whatever_the_loss() {
    for p in [0.0, 0.001, 0.01, 0.05] {
        let outcome = alone(rude(RudeRate::Share(90_000_000), None), 100, p, 5 * S_NS);
        let share = goodput_mbps(&outcome) / (90.0 * (1.0 - p));
        assert!((0.93..1.01).contains(&share), "{p}: {share}");
        assert_eq!(outcome.flows[0].congestion_events, 0);
        let lost = outcome.flows[0].retransmits as f64;
        let sent = outcome.flows[0].delivered_bytes as f64 / 1448.0;
        assert!(lost <= 1.3 * sent * p + 30.0, "{p}: {lost} retransmitted");
    }
}

#[test]
fn without_a_share_what_the_path_carries_is_found() {
    for (queue_pkts, p) in [(333, 0.0), (333, 0.01), (333, 0.05), (33, 0.0), (33, 0.01)] {
        let outcome = alone(rude(RudeRate::Estimated, None), queue_pkts, p, 5 * S_NS);
        let share = goodput_mbps(&outcome) / (100.0 * DATA_OF_RATE * (1.0 - p));
        assert!((0.85..1.01).contains(&share), "{queue_pkts}, {p}: {share}");
        let lost = outcome.flows[0].retransmits as f64;
        let sent = outcome.flows[0].delivered_bytes as f64 / 1448.0;
        let own = (lost - sent * p) / sent;
        assert!(own < 0.05, "{queue_pkts}, {p}: {own} lost by itself");
    }
}

/// The window, 2.5 times what the path holds, stands in the queue; one that is estimated keeps its queue short.
#[test]
fn an_unlimited_flow_fills_its_window_and_the_queue() {
    let most_in_flight_pkts = |rate| {
        let mut flow = rude(rate, None);
        flow.tcp.cwnd_clamp_pkts = 833;
        let outcome = alone(flow, 1000, 0.0, 5 * S_NS);
        assert_eq!(outcome.flows[0].retransmits, 0, "{rate:?}");
        let settled = outcome.flows[0].samples.iter().skip(200);
        settled.map(|sample| sample.in_flight_pkts).max().unwrap()
    };
    assert_eq!(most_in_flight_pkts(RudeRate::Unlimited), 833);
    let estimated_pkts = most_in_flight_pkts(RudeRate::Estimated);
    assert!(estimated_pkts < 600, "{estimated_pkts}");
}

#[test]
fn an_estimate_follows_the_path() {
    let (fast, slow) = (rate(100_000_000, 100), rate(40_000_000, 100));
    let mut spec = path(RTT_NS, [fast.clone()], 15 * S_NS);
    let becomes = |at_ns, cell| ChangeSpec {
        at_ns,
        link: 0,
        directions: link([0, 1], RTT_NS, [cell]).directions,
    };
    spec.changes = vec![becomes(5 * S_NS, slow), becomes(10 * S_NS, fast)];
    spec.flows = vec![rude(RudeRate::Estimated, None)];
    spec.sample_every_ns = Some(100 * MS_NS);
    let outcome = outcome(&spec);
    let samples = &outcome.flows[0].samples;
    let delivered = |s: u64| {
        let sample = samples.iter().find(|sample| sample.at_ns >= s * S_NS);
        sample.map_or(0.0, |sample| sample.delivered_bytes as f64 * 8e-6)
    };
    let mbps = |from_s, to_s| (delivered(to_s) - delivered(from_s)) / (to_s - from_s) as f64;
    assert!((85.0..97.0).contains(&mbps(2, 5)), "{}", mbps(2, 5));
    assert!((34.0..39.0).contains(&mbps(7, 10)), "{}", mbps(7, 10));
    assert!((85.0..97.0).contains(&mbps(12, 14)), "{}", mbps(12, 14));
}

fn mean_fair_pkts<'s>(samples: impl Iterator<Item = &'s Sample>) -> f64 {
    let fair: Vec<f64> = samples
        .filter_map(|sample| sample.fair_pkts.map(f64::from))
        .collect();
    fair.iter().sum::<f64>() / fair.len() as f64
}

/// sqrt(3/2 / p), as if Reno were alone on the path.
#[test]
fn the_fair_window_is_what_reno_would_have() {
    for (p, rate) in [
        (0.01, RudeRate::Share(90_000_000)),
        (0.001, RudeRate::Share(90_000_000)),
        (0.001, RudeRate::Estimated),
    ] {
        let outcome = alone(rude(rate, None), 333, p, 60 * S_NS);
        let settled = outcome.flows[0].samples.iter().skip(1_000);
        let ratio = mean_fair_pkts(settled) / (1.5f64 / p).sqrt();
        assert!((0.8..1.2).contains(&ratio), "{p}, {rate:?}: {ratio}");
    }
}

/// As though a congestion event had occurred: what is in flight drains to F, and the flow is Reno's.
#[test]
fn now_leaves_no_more_in_flight_than_is_fair() {
    let off = RudeOff {
        at_ns: 3 * S_NS,
        nicely: false,
    };
    let outcome = alone(
        rude(RudeRate::Share(90_000_000), Some(off)),
        333,
        0.01,
        6 * S_NS,
    );
    let samples = &outcome.flows[0].samples;
    let before = samples.iter().rfind(|sample| sample.fair_pkts.is_some());
    let before = before.unwrap();
    assert!(before.in_flight_pkts > 250 && before.at_ns <= 3 * S_NS + RTT_NS);
    let later = |sample: &&Sample| sample.at_ns > 3 * S_NS + 2 * RTT_NS;
    for sample in samples.iter().filter(later) {
        assert_eq!(sample.fair_pkts, None);
        assert!(sample.in_flight_pkts < 60, "{}", sample.in_flight_pkts);
    }
    // Recovery, in which it was, ends with the fair window; one loss may have come since.
    let fair_pkts = before.fair_pkts.unwrap();
    let after = samples.iter().find(later).unwrap();
    assert!(
        2 * after.cwnd_pkts + 1 >= fair_pkts,
        "{} of {fair_pkts}",
        after.cwnd_pkts
    );
    assert!(outcome.flows[0].congestion_events > 0, "polite since");
}

/// A rude flow with 90 % of 40 Mb/s and two polite ones: 167 segments a round trip.
fn beside_two() -> Spec {
    let mut spec = path(50 * MS_NS, [rate(40_000_000, 30)], 60 * S_NS);
    let off = RudeOff {
        at_ns: 10 * S_NS,
        nicely: true,
    };
    let polite = bulk(None);
    spec.flows = vec![
        rude(RudeRate::Share(35_000_000), Some(off)),
        polite.clone(),
        polite,
    ];
    spec.sample_every_ns = Some(50 * MS_NS);
    spec
}

/// Table 1 of the paper, on a path: the difference of R and F stays while they grow and halves when they
/// fall; so many congestion events, each the time that three flows need to fill what one gave up.
#[test]
fn nicely_both_windows_converge_as_table_1_says() {
    let outcome = outcome(&beside_two());
    let going: Vec<_> = outcome.flows[0]
        .samples
        .iter()
        .filter(|sample| sample.at_ns > 10 * S_NS + 100 * MS_NS)
        .filter_map(|sample| Some((sample, sample.fair_pkts?)))
        .collect();
    let gap_pkts = |(sample, fair_pkts): &(&Sample, u32)| sample.cwnd_pkts.abs_diff(*fair_pkts);
    // Five samples of rising windows: recovery, in which R falls by and by, is over.
    let is_growing = |pair: &&[(&Sample, u32)]| pair.is_sorted_by_key(|(_, fair_pkts)| *fair_pkts);
    let grown = going.windows(6).filter(is_growing);
    let gaps_pkts: Vec<u32> = grown.map(|pair| gap_pkts(&pair[5])).collect();
    assert!(gaps_pkts[0] > 50, "{gaps_pkts:?}");
    assert!(
        gaps_pkts.is_sorted_by(|before, after| after <= before),
        "{gaps_pkts:?}"
    );
    let steps = gaps_pkts.windows(2).filter(|pair| pair[0] != pair[1]);
    for pair in steps {
        assert!(pair[1] <= pair[0].div_ceil(2) + 1, "halved: {gaps_pkts:?}");
    }
    let last_ns = going[going.len() - 1].0.at_ns;
    // A hundredth of F of some 60 segments is less than one: 7 halvings of 100, and each takes less than
    // 197 / 2 / 3 round trips of 59 ms at most.
    let algebra_ns = 8 * 33 * 59 * MS_NS;
    assert!(last_ns < 10 * S_NS + algebra_ns, "{last_ns}");
    let after = |flow: usize| {
        let samples = &outcome.flows[flow].samples;
        let at = samples
            .iter()
            .find(|sample| sample.at_ns > last_ns)
            .unwrap();
        let end = samples.last().unwrap();
        (end.delivered_bytes - at.delivered_bytes) as f64
    };
    let fair_bytes = (after(0) + after(1) + after(2)) / 3.0;
    for flow in 0..3 {
        let share = after(flow) / fair_bytes;
        assert!((0.7..1.3).contains(&share), "{flow}: {share}");
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flows that share a pacing rate: each of those that send has its stated part, those that do not have none.

use fatpath_sim::{FlowOutcome, FlowSpec, SharedRate, Source, Spec};
use proptest::prelude::*;

use crate::support::*;

const WHOLE_BPS: u64 = 80_000_000;
const RTT_NS: u64 = 20 * MS_NS;

fn sharing(group: usize, source: Source) -> FlowSpec {
    let mut flow = flow(source);
    flow.tcp.pacing_rate_bps = Some(WHOLE_BPS);
    flow.shared_rate = Some(SharedRate {
        bps: WHOLE_BPS,
        group,
    });
    flow
}

fn bulk_between(group: usize, start_ns: u64, stop_ns: u64) -> FlowSpec {
    let (bytes, again) = (None, false);
    FlowSpec {
        start_ns,
        stop_ns: Some(stop_ns),
        ..sharing(group, Source::Bulk { bytes, again })
    }
}

/// Nothing but their pace bounds them.
fn over_wide_path(flows: Vec<FlowSpec>, end_ns: u64) -> Spec {
    let mut spec = path(RTT_NS, [], end_ns);
    spec.flows = flows;
    spec.sample_every_ns = Some(100 * MS_NS);
    spec
}

/// What a flow delivered between two moments, of the whole rate.
fn part(flow: &FlowOutcome, from_ns: u64, until_ns: u64) -> f64 {
    let at = |at_ns| {
        let mut samples = flow.samples.iter();
        let last = samples.rfind(|sample| sample.at_ns <= at_ns);
        last.map_or(0, |sample| sample.delivered_bytes)
    };
    let seconds = (until_ns - from_ns) as f64 / S_NS as f64;
    8.0 * (at(until_ns) - at(from_ns)) as f64 / seconds / WHOLE_BPS as f64
}

fn is_near(part: f64, stated: f64) -> bool {
    (part / stated - 1.0).abs() < 0.03
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn each_of_those_that_send_has_its_part(flows in 1usize..20, apart_ms in 0u64..50) {
        let start_ns = |index: usize| index as u64 * apart_ms * MS_NS;
        let each = (0..flows).map(|index| bulk_between(0, start_ns(index), 6 * S_NS));
        let outcome = outcome(&over_wide_path(each.collect(), 6 * S_NS));
        for flow in &outcome.flows {
            let part = part(flow, 3 * S_NS, 6 * S_NS - 100 * MS_NS);
            prop_assert!(is_near(part, 1.0 / flows as f64), "{flows}: {part}");
        }
    }
}

/// One of three stops after 3 s, a fourth comes after 6 s: those that are there have a half each, and then a third.
#[test]
fn parts_follow_those_that_stop_and_begin() {
    let flows = vec![
        bulk_between(0, 0, 9 * S_NS),
        bulk_between(0, 0, 9 * S_NS),
        bulk_between(0, 0, 3 * S_NS),
        bulk_between(0, 6 * S_NS, 9 * S_NS),
    ];
    let outcome = outcome(&over_wide_path(flows, 9 * S_NS));
    let times = [(1, 3, 3.0), (4, 6, 2.0), (7, 9, 3.0)];
    for (from_s, until_s, stated) in times {
        let part = part(
            &outcome.flows[0],
            from_s * S_NS,
            until_s * S_NS - 100 * MS_NS,
        );
        assert!(is_near(part, 1.0 / stated), "{from_s} s: {part}");
    }
}

/// Chunks of 1 MB a second leave the other the whole rate between them; with pauses of 100 ms only, none of it.
#[test]
fn a_pause_gives_the_others_the_whole_rate() {
    let beside_chunks = |chunk_bytes, every_ns| {
        let count = None;
        let chunks = sharing(
            0,
            Source::Chunks {
                chunk_bytes,
                first_chunk_bytes: None,
                every_ns,
                count,
            },
        );
        let flows = vec![bulk_between(0, 0, 10 * S_NS), chunks];
        let outcome = outcome(&over_wide_path(flows, 10 * S_NS));
        part(&outcome.flows[0], 2 * S_NS, 10 * S_NS - 100 * MS_NS)
    };
    // A chunk takes 0.2 s at half the rate, and the flow counts for 0.12 to 0.24 s more.
    let far_apart = beside_chunks(1_000_000, S_NS);
    assert!((0.75..0.87).contains(&far_apart), "{far_apart}");
    let close = beside_chunks(100_000, 100 * MS_NS);
    assert!(is_near(close, 0.5), "{close}");
}

#[test]
fn another_group_and_a_smaller_rate_of_its_own_stay() {
    let mut slow = bulk_between(0, 0, 6 * S_NS);
    slow.tcp.pacing_rate_bps = Some(WHOLE_BPS / 8);
    let flows = vec![
        slow,
        bulk_between(0, 0, 6 * S_NS),
        bulk_between(1, 0, 6 * S_NS),
    ];
    let outcome = outcome(&over_wide_path(flows, 6 * S_NS));
    for (flow, stated) in outcome.flows.iter().zip([0.125, 0.5, 1.0]) {
        let part = part(flow, 2 * S_NS, 6 * S_NS - 100 * MS_NS);
        assert!(is_near(part, stated), "{stated}: {part}");
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flows of all kinds over one link: together and alone they never get more than it carries.

use fatpath_link::{CellSpec, Random};
use fatpath_sim::{FlowSpec, Source, Spec};

use crate::support::*;

const RATE_BPS: u64 = 20_000_000;

/// A flow at random: any source, any time, more than the link carries.
fn any_flow(random: &mut Random) -> FlowSpec {
    let mut to = |most: u64| (random.unit() * most as f64) as u64;
    let source = match to(4) {
        0 => Source::ConstantRate {
            rate_bps: 1_000_000 + to(2 * RATE_BPS),
            payload_bytes: 100 + to(2_000) as u32,
        },
        1 => Source::Chunks {
            chunk_bytes: 1 + to(1_000_000),
            first_chunk_bytes: None,
            every_ns: to(S_NS),
            count: None,
        },
        2 => Source::Web {
            users: 1 + to(20) as u32,
            mean_object_bytes: 50_000.0,
            shape: 1.5,
            objects_per_page: 3,
            mean_think_ns: 300 * MS_NS,
        },
        _ => Source::Bulk {
            bytes: None,
            again: false,
        },
    };
    let mut flow = flow(source);
    flow.start_ns = to(2 * S_NS);
    flow.stop_ns = (to(2) == 0).then(|| flow.start_ns + MS_NS + to(3 * S_NS));
    flow.lasts_ns = (to(2) == 0).then(|| MS_NS + to(2 * S_NS));
    flow
}

fn any_spec(seed: u64) -> Spec {
    let random = &mut Random::stream(seed, 0);
    let queue_bytes = 20_000 + (random.unit() * 8e6) as u64;
    let queue = CellSpec::rate(RATE_BPS, Some(queue_bytes));
    let cells = [CellSpec::loss(0.001 * random.unit()), queue];
    let mut spec = path(20 * MS_NS, cells, 4 * S_NS);
    spec.flows = (0..2 + seed % 4).map(|_| any_flow(random)).collect();
    spec.sample_every_ns = Some(50 * MS_NS);
    spec
}

/// What the link carries in that time, and a packet that was on it before.
fn most_bytes(time_ns: u64) -> u64 {
    1_500 + (u128::from(time_ns) * u128::from(RATE_BPS) / 8_000_000_000) as u64
}

#[test]
fn no_flows_get_more_than_their_link_carries() {
    for seed in 1..=12 {
        let spec = any_spec(seed);
        let outcome = outcome(&spec);
        for (flow, spec) in outcome.flows.iter().zip(&spec.flows) {
            let most = most_bytes(flow.duration_ns);
            assert!(flow.delivered_bytes <= most, "{seed}: {spec:?}: {flow:?}");
            if let Some(seen) = flow.datagrams {
                assert!(seen.received + seen.lost <= seen.sent, "{seed}: {seen:?}");
            }
        }
        let ends = outcome.flows.iter().zip(&spec.flows);
        let ends = ends.map(|(flow, spec)| spec.start_ns + flow.duration_ns);
        let begin_ns = spec.flows.iter().map(|flow| flow.start_ns).min().unwrap();
        let most = most_bytes(ends.max().unwrap() - begin_ns);
        let all: u64 = outcome.flows.iter().map(|flow| flow.delivered_bytes).sum();
        assert!(0 < all && all <= most, "{seed}: {all} of {most}");
    }
}

/// By every moment: what lies beyond a hole comes later, never sooner.
#[test]
fn no_flows_get_more_by_any_moment() {
    for seed in 101..=104 {
        let spec = any_spec(seed);
        let outcome = outcome(&spec);
        for at_ns in (1..80).map(|sample| sample * 50 * MS_NS) {
            let by_then = outcome.flows.iter().map(|flow| {
                let samples = flow.samples.iter();
                let last = samples.take_while(|sample| sample.at_ns <= at_ns).last();
                last.map_or(0, |sample| sample.delivered_bytes)
            });
            let all: u64 = by_then.sum();
            assert!(all <= most_bytes(at_ns), "{seed}: {all} by {at_ns}");
        }
    }
}

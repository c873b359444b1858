// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several links, changes, and any small network.

use fatpath_link::{CellSpec, CorruptSpec, DelaySpec, Distribution, DuplicateSpec, JitterSpec};
use fatpath_link::{ChainSpec, ReorderSpec};
use fatpath_sim::{ChangeSpec, Detection, FlowSpec, LinkSpec, Source, Spec};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::support::{self, *};

#[test]
fn a_way_of_two_links_takes_both_and_is_as_fast_as_the_slower() {
    let fast = link([0, 1], 10 * MS_NS, [CellSpec::rate(100_000_000, None)]);
    let slow = link(
        [1, 2],
        30 * MS_NS,
        [CellSpec::rate(10_000_000, Some(100_000))],
    );
    let mut spec = row(vec![fast, slow], 20 * S_NS);
    spec.flows = vec![bulk(None), bulk(Some(1_000))];
    spec.flows[0].to = 2;
    // Crosswise over the second link, in the other direction, which has no queue.
    (spec.flows[1].from, spec.flows[1].to) = (2, 1);
    let outcome = outcome(&spec);
    let used = outcome.flows[0].goodput_bps() / (10e6 * 1448.0 / 1500.0);
    assert!((0.9..1.0).contains(&used), "{used}");
    assert_eq!(outcome.flows[1].delivered_bytes, 1_000);
    let [first, second] = [0, 1].map(|link: usize| &outcome.links[link][0].counters);
    let dropped = second.dropped_total().packets;
    assert!(dropped > 0, "{second:?} {:?}", outcome.flows[0]);
    // The other flow's SYN-ACK and ACK are the rest.
    let others = second.arrived.packets - first.left.packets;
    assert_eq!(others, 2);
    assert_eq!(first.dropped_total().packets, 0);
}

#[test]
fn a_link_that_becomes_slower_is_slower_from_then_on() {
    let mut spec = path(
        10 * MS_NS,
        [CellSpec::rate(20_000_000, Some(50_000))],
        20 * S_NS,
    );
    spec.flows = vec![bulk(None)];
    spec.sample_every_ns = Some(S_NS);
    let slower = link(
        [0, 1],
        10 * MS_NS,
        [CellSpec::rate(5_000_000, Some(50_000))],
    );
    spec.changes = vec![ChangeSpec {
        at_ns: 10 * S_NS,
        link: 0,
        directions: slower.directions,
    }];
    let outcome = outcome(&spec);
    let samples = &outcome.flows[0].samples;
    let mbps = |from: usize, until: usize| {
        let bytes = samples[until].delivered_bytes - samples[from].delivered_bytes;
        bytes as f64 * 8e-6 / (until - from) as f64
    };
    let (before, after) = (mbps(2, 8), mbps(11, 18));
    assert!((17.0..19.4).contains(&before), "{before}");
    assert!((4.3..4.9).contains(&after), "{after}");
}

#[test]
fn a_packet_above_the_mtu_is_lost_and_counted() {
    let mut spec = path(10 * MS_NS, [], 3 * S_NS);
    spec.links[0].mtu_bytes = 1_400;
    spec.flows = vec![bulk(Some(100_000))];
    let outcome = outcome(&spec);
    assert_eq!(outcome.flows[0].delivered_bytes, 0);
    assert!(outcome.flows[0].timeouts > 0);
    let link = &outcome.links[0][0];
    assert!(link.too_big.packets > 10 && link.counters.arrived.packets > 0);
}

/// A segment is lost with any of its four fragments.
#[test]
fn a_segment_above_the_mtu_arrives_in_fragments_where_it_may() {
    let mut spec = path(10 * MS_NS, [CellSpec::loss(0.002)], 20 * S_NS);
    let mut flow = bulk(Some(100_000_000));
    flow.tcp.mss_bytes = 5_834;
    flow.may_be_fragmented = true;
    spec.flows = vec![flow];
    let outcome = outcome(&spec);
    assert_eq!(outcome.flows[0].delivered_bytes, 100_000_000);
    let link = &outcome.links[0][0];
    assert_eq!(link.too_big.packets, 0);
    let segments = 100_000_000_u64.div_ceil(5_834);
    let fragments = link.counters.arrived.packets;
    assert!(
        (4 * segments..9 * segments / 2).contains(&fragments),
        "{fragments}"
    );
    let again = outcome.flows[0].retransmits as f64 / segments as f64;
    assert!((0.006..0.011).contains(&again), "{again}");
}

fn cell() -> impl Strategy<Value = CellSpec> {
    let share = || 0.0..0.05f64;
    let limit = proptest::option::of(3_000..200_000u64);
    let jitter = (0..5 * MS_NS, any::<bool>()).prop_map(|(mean_ns, reorders)| {
        CellSpec::Delay(DelaySpec {
            delay_ns: MS_NS,
            jitter: Some(JitterSpec {
                distribution: Distribution::Exponential { mean_ns },
                reorders,
            }),
        })
    });
    prop_oneof![
        (100_000..10_000_000u64, limit)
            .prop_map(|(rate_bps, limit)| CellSpec::rate(rate_bps, limit)),
        share().prop_map(CellSpec::loss),
        (0..50 * MS_NS).prop_map(CellSpec::delay),
        jitter,
        share().prop_map(|probability| CellSpec::Duplicate(DuplicateSpec { probability })),
        share().prop_map(|probability| CellSpec::Corrupt(CorruptSpec { probability })),
        (share(), 1..30u32).prop_map(|(probability, displacement_packets)| {
            CellSpec::Reorder(ReorderSpec {
                probability,
                displacement_packets,
                hold_limit_ns: 10 * MS_NS,
            })
        }),
    ]
}

fn chain() -> impl Strategy<Value = ChainSpec> {
    let rate_bps = 100_000..10_000_000u64;
    (vec(cell(), 0..4), any::<u64>(), rate_bps).prop_map(|(mut cells, seed, rate_bps)| {
        cells.push(CellSpec::rate(rate_bps, Some(100_000)));
        ChainSpec { cells, seed }
    })
}

fn any_link(between: [usize; 2]) -> impl Strategy<Value = LinkSpec> {
    (chain(), chain()).prop_map(move |(there, back)| LinkSpec {
        between,
        mtu_bytes: 1_500,
        directions: [there, back],
    })
}

fn source() -> impl Strategy<Value = Source> {
    let bytes = || 1..200_000u64;
    prop_oneof![
        (proptest::option::of(bytes()), any::<bool>())
            .prop_map(|(bytes, again)| Source::Bulk { bytes, again }),
        (bytes(), proptest::option::of(bytes()), 0..S_NS).prop_map(
            |(chunk_bytes, first_chunk_bytes, every_ns)| Source::Chunks {
                chunk_bytes,
                first_chunk_bytes,
                every_ns,
                count: Some(5),
            }
        ),
        (1..5u32, 1..4u32, 0..S_NS).prop_map(|(users, objects_per_page, mean_think_ns)| {
            Source::Web {
                users,
                mean_object_bytes: 8_000.0,
                shape: 1.3,
                objects_per_page,
                mean_think_ns,
            }
        }),
        (10_000..5_000_000u64, 1..1_472u32).prop_map(|(rate_bps, payload_bytes)| {
            Source::ConstantRate {
                rate_bps,
                payload_bytes,
            }
        }),
    ]
}

fn any_flow() -> impl Strategy<Value = FlowSpec> {
    let ends = prop_oneof![Just([0, 1]), Just([0, 2]), Just([2, 0]), Just([1, 2])];
    let times = (0..2 * S_NS, proptest::option::of(0..3 * S_NS));
    (ends, times, source(), any::<bool>()).prop_map(
        |([from, to], (start_ns, lasts_ns), source, rack)| {
            let mut spec = flow(source);
            (spec.from, spec.to, spec.start_ns) = (from, to, start_ns);
            spec.stop_ns = lasts_ns.map(|lasts_ns| start_ns + lasts_ns);
            if !rack {
                spec.tcp.detection = Detection::Sack;
            }
            spec
        },
    )
}

/// Three hosts in a row, any flows between them, and a change in between.
fn any_spec() -> impl Strategy<Value = Spec> {
    let links = (any_link([0, 1]), any_link([1, 2]), any_link([1, 2]));
    (links, vec(any_flow(), 1..5), any::<u64>()).prop_map(|((one, two, later), flows, seed)| Spec {
        flows,
        seed,
        changes: vec![ChangeSpec {
            at_ns: 2 * S_NS,
            link: 1,
            directions: later.directions,
        }],
        sample_every_ns: Some(500 * MS_NS),
        ..row(vec![one, two], 4 * S_NS)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn one_spec_has_one_outcome_and_nothing_is_lost_uncounted(spec in any_spec()) {
        let outcome = outcome(&spec);
        prop_assert_eq!(&outcome, &support::outcome(&spec));
        for link in outcome.links.iter().flatten() {
            let counters = &link.counters;
            let added = counters.duplicated.packets + counters.fragmented.packets;
            let came = counters.arrived.packets + added;
            let went = counters.left.packets + counters.dropped_total().packets;
            prop_assert_eq!(came, went + link.held.packets);
        }
        for (flow, spec) in outcome.flows.iter().zip(&spec.flows) {
            prop_assert!(flow.completions.bytes <= flow.delivered_bytes);
            prop_assert!(flow.samples.is_sorted_by_key(|sample| sample.delivered_bytes));
            let limit = match spec.source {
                Source::Bulk { bytes: Some(bytes), again: false } => bytes,
                Source::Chunks { chunk_bytes, first_chunk_bytes, .. } => {
                    first_chunk_bytes.unwrap_or(chunk_bytes) + 4 * chunk_bytes
                }
                _ => u64::MAX,
            };
            prop_assert!(flow.delivered_bytes <= limit);
            if let Some(datagrams) = flow.datagrams {
                prop_assert!(datagrams.lost <= datagrams.sent);
            }
        }
    }
}

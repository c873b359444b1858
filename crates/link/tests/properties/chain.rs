// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chains of any cells in any order.

use fatpath_link::{Cell, CellSpec, Chain, ChainSpec, Count, Counters, DuplicateSpec, MtuSpec};
use proptest::prelude::*;

use crate::support::*;

proptest! {
    #[test]
    fn nothing_is_lost_uncounted_at_any_instant(spec in any_spec(), traffic in traffic()) {
        let mut chain = spec.build::<Run>().unwrap();
        let (mut pushed, mut popped) = (Count::default(), Count::default());
        let mut now_ns = 0;
        for (gap_ns, run) in &traffic {
            now_ns += gap_ns;
            chain.push(now_ns, *run);
            pushed.add(run.wire);
            while let Some(departure) = chain.pop(now_ns) {
                popped.add(departure.packet.wire);
            }
            let counters = chain.counters();
            prop_assert_eq!(counters.arrived, pushed);
            prop_assert_eq!(counters.left, popped);
            prop_assert_eq!(came(&counters), went(&counters, chain.held()));
        }
    }

    #[test]
    fn every_cell_accounts_for_itself(spec in any_spec(), traffic in traffic()) {
        let mut chain = spec.build::<Run>().unwrap();
        pass(&mut chain, &traffic);
        prop_assert_eq!(chain.held(), Count::default());
        for cell in chain.cell_counters() {
            prop_assert_eq!(came(&cell), went(&cell, Count::default()));
        }
    }

    #[test]
    fn what_was_not_dropped_comes_out_once_and_in_order(
        spec in orderly_spec(),
        traffic in traffic(),
    ) {
        let mut chain = spec.build::<Run>().unwrap();
        let departures = pass(&mut chain, &traffic);
        let numbers = numbers(&departures);
        prop_assert!(numbers.is_sorted_by(|one, next| one < next));
        let dropped = chain.counters().dropped_total().packets;
        prop_assert_eq!(numbers.len() as u64 + dropped, pushed(&traffic).packets);
        prop_assert_eq!(chain.held(), Count::default());
    }

    #[test]
    fn moments_of_departure_never_go_back(spec in any_spec(), traffic in traffic()) {
        let departures = pass(&mut spec.build::<Run>().unwrap(), &traffic);
        prop_assert!(departures.is_sorted_by_key(|departure| departure.at_ns));
    }

    /// A caller that comes late, or only at the end, gets the same packets with the same moments.
    #[test]
    fn lateness_of_the_caller_changes_nothing(spec in any_spec(), traffic in traffic()) {
        let in_time = pass(&mut spec.build::<Run>().unwrap(), &traffic);
        let mut chain = spec.build::<Run>().unwrap();
        let mut now_ns = 0;
        for (gap_ns, run) in &traffic {
            now_ns += gap_ns;
            chain.push(now_ns, *run);
        }
        let mut late = vec![];
        pop_due(&mut chain, u64::MAX / 2, &mut late);
        prop_assert_eq!(times(&in_time), times(&late));
        prop_assert_eq!(fates(&in_time), fates(&late));
    }

    /// Of cells that take no time or a time of their own; a super-packet that leaves a bottleneck whole
    /// reaches the next cell otherwise than its segments would.
    #[test]
    fn segments_fare_alike_as_super_packets_or_singly(
        cell in any_cell(),
        seed: u64,
        traffic in traffic(),
    ) {
        let whole = pass(&mut chain([cell.clone()], seed), &traffic);
        let split = pass(&mut chain([cell.clone()], seed), &singles(&traffic));
        prop_assert_eq!(fates(&whole), fates(&split));
        if !matches!(cell, CellSpec::Rate(_)) {
            prop_assert_eq!(times(&whole), times(&split));
        }
    }

    #[test]
    fn equal_seeds_treat_equal_traffic_alike(spec in any_spec(), traffic in traffic()) {
        let [one, other] = [(); 2].map(|()| pass(&mut spec.build::<Run>().unwrap(), &traffic));
        prop_assert_eq!(times(&one), times(&other));
        prop_assert_eq!(fates(&one), fates(&other));
    }
}

fn came(counters: &Counters) -> Count {
    sum([counters.arrived, counters.duplicated, counters.fragmented])
}

fn went(counters: &Counters, held: Count) -> Count {
    sum([counters.left, counters.dropped_total(), held])
}

/// Packets of 1,000 bytes, at 1,000 bytes a microsecond, come on whole microseconds: each leaves at
/// the very moment at which another arrives. Whether the delay comes before or after, the packet that
/// leaves makes room first.
#[test]
fn a_delay_before_the_bottleneck_does_as_one_after_it() {
    let gaps_ns = [0, 0, 0, 1_000, 0, 1_000, 1_000, 2_000, 0, 0, 1_000];
    let runs = (0..).map(|first| Run::single(first, 1000));
    let traffic: Vec<_> = gaps_ns.into_iter().zip(runs).collect();
    let bottleneck = CellSpec::rate(8_000_000_000, Some(2_000));
    let delay = CellSpec::delay(5_000);
    let before = pass(&mut chain([delay.clone(), bottleneck.clone()], 1), &traffic);
    let after = pass(&mut chain([bottleneck, delay], 1), &traffic);
    assert_eq!(numbers(&before), [0, 1, 3, 5, 6, 7, 8, 10]);
    assert_eq!(times(&before), times(&after));
}

#[test]
fn a_chain_of_no_cells_passes_at_once() {
    let mut chain: Chain<Run> = ChainSpec::default().build().unwrap();
    chain.push(5, Run::single(0, 100));
    assert_eq!(chain.next_due_ns(), Some(5));
    assert_eq!(chain.pop(5).map(|departure| departure.at_ns), Some(5));
    assert_eq!(chain.next_due_ns(), None);
}

/// Two cells of the same effect in a chain, and the same cell under two seeds, choose independently.
#[test]
fn each_cell_has_a_stream_of_its_own() {
    let duplicate = || CellSpec::Duplicate(DuplicateSpec { probability: 0.5 });
    let once = |seed| numbers(&pass(&mut chain([duplicate()], seed), &steady(1_000, 1)));
    assert_ne!(once(1), once(2));
    assert_ne!(once(u64::MAX), once(0));
    // Were they the same, every segment would be lost by both or by none.
    let mut both = chain([CellSpec::loss(0.5), CellSpec::loss(0.5)], 7);
    let left = pass(&mut both, &steady(10_000, 1)).len() as f64;
    assert!((left - 2_500.0).abs() < 4.0 * 1_875f64.sqrt(), "{left}");
}

#[test]
fn the_peak_of_a_chain_is_that_of_its_deepest_queue() {
    let slow = CellSpec::rate(12_000_000, None);
    let mut chain = chain([slow.clone(), CellSpec::delay(1_000_000), slow], 1);
    chain.push(0, Run::full(0, 4));
    assert_eq!(chain.take_peak_bytes(0), 6_000);
    // After 1 ms a segment has been sent; after 5 ms all are in the second queue.
    assert_eq!(chain.take_peak_bytes(1_000_000), 6_000);
    assert_eq!(chain.take_peak_bytes(2_000_000), 4_500);
    assert_eq!(chain.take_peak_bytes(5_000_000), 6_000);
    assert_eq!(chain.take_peak_bytes(9_000_000), 6_000);
    assert_eq!(chain.take_peak_bytes(9_000_000), 0);
}

#[test]
fn a_reply_leaves_a_chain_when_its_packet_meets_the_mtu() {
    let mtu = CellSpec::Mtu(MtuSpec { mtu_bytes: 1_000 });
    let mut chain = chain([CellSpec::delay(10), mtu, CellSpec::delay(10)], 1);
    chain.push(0, Run::single(0, 1_001));
    assert_eq!(chain.pop(9).map(|departure| departure.packet), None);
    assert_eq!(chain.pop_reply(), None);
    assert_eq!(chain.next_due_ns(), Some(10));
    assert!(chain.pop(10).is_none());
    assert!(chain.pop_reply().is_some_and(|reply| reply.is_reply));
    assert_eq!(chain.pop_reply(), None);
}

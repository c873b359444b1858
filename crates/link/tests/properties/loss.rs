// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loss, by every pattern.

use std::collections::BTreeMap;

use fatpath_link::{Cell, CellSpec, DropCause, LossSpec, LossWindow};
use proptest::prelude::*;

use crate::support::*;

/// Whether each segment was lost.
fn lost_of(spec: LossSpec, traffic: &Traffic, seed: u64) -> Vec<bool> {
    let mut lost = vec![true; pushed(traffic).packets as usize];
    let mut chain = chain([CellSpec::Loss(spec)], seed);
    for number in numbers(&pass(&mut chain, traffic)) {
        lost[number as usize] = false;
    }
    lost
}

/// Whether each of many segments was lost.
fn lost(spec: LossSpec, segments: u64, seed: u64) -> Vec<bool> {
    let starts = (0..segments).step_by(1_000);
    let run = |first| Run::full(first, (segments - first).min(1_000) as u32);
    let traffic = starts.map(|first| (1, run(first))).collect();
    lost_of(spec, &traffic, seed)
}

fn count(lost: &[bool]) -> f64 {
    lost.iter().filter(|lost| **lost).count() as f64
}

proptest! {
    #[test]
    fn what_is_lost_is_counted_as_lost(spec in loss(), traffic in traffic()) {
        let mut chain = chain([CellSpec::Loss(spec)], 1);
        let left = numbers(&pass(&mut chain, &traffic)).len() as u64;
        let dropped = chain.counters().dropped(DropCause::Loss).packets;
        prop_assert_eq!(left + dropped, pushed(&traffic).packets);
    }

    /// Against a count by hand of each flow's data segments.
    #[test]
    fn listed_packets_are_lost_and_no_others(
        flow in proptest::option::of(1..4u32),
        packets in proptest::collection::btree_set(1..200u64, 0..60),
        traffic in traffic(),
    ) {
        let spec = LossSpec::Packets { flow, packets: packets.iter().copied().collect() };
        let left = numbers(&pass(&mut chain([CellSpec::Loss(spec)], 1), &traffic));
        let mut order = vec![];
        let mut seen = BTreeMap::new();
        let survives = |run: &Run| {
            if !run.has_data {
                return true;
            }
            if !order.contains(&run.port) {
                order.push(run.port);
            }
            let segment = seen.entry(run.port).or_insert(0);
            *segment += 1;
            let meant = flow.is_none_or(|flow| order.get(flow as usize - 1) == Some(&run.port));
            !(meant && packets.contains(segment))
        };
        let all = singles(&traffic).into_iter().map(|(_, run)| run);
        let expected: Vec<_> = all.filter(survives).map(|run| run.first).collect();
        prop_assert_eq!(left, expected);
    }

    #[test]
    fn periodic_loss_is_periodic(every in 1..50u64, offset in 0..50u64, packets in 1..300u64) {
        let first = offset % every + 1;
        let lost = lost(LossSpec::Periodic { every, first }, packets, 1);
        for (number, lost) in (1..).zip(lost) {
            prop_assert_eq!(lost, number % every == first % every);
        }
    }
}

/// Four standard deviations of the binomial, for seeds and sizes of packets that never change.
#[test]
fn as_many_segments_are_lost_as_the_probability_says() {
    for (loss, pushed) in [(0.5, 100_000u64), (0.01, 2_000_000), (0.0001, 20_000_000)] {
        for seed in 0..5 {
            let mut cell = chain([CellSpec::loss(loss)], seed);
            for first in (0..pushed).step_by(1_000) {
                cell.push(first, Run::full(first, 1_000));
                while cell.pop(first).is_some() {}
            }
            let lost = cell.counters().dropped(DropCause::Loss).packets as f64;
            let expected = pushed as f64 * loss;
            let deviation = (expected * (1.0 - loss)).sqrt();
            assert!(
                (lost - expected).abs() < 4.0 * deviation,
                "{lost} of {expected}, seed {seed}"
            );
        }
    }
}

/// Losses are independent: the share lost right after a loss is the share lost anywhere.
#[test]
fn a_loss_does_not_foretell_the_next() {
    let (probability, packets) = (0.1, 1_000_000);
    let lost = lost(LossSpec::Independent { probability }, packets, 7);
    let pairs = lost.windows(2).filter(|pair| pair[0] && pair[1]).count() as f64;
    let expected = packets as f64 * probability * probability;
    assert!(
        (pairs - expected).abs() < 4.0 * expected.sqrt(),
        "{pairs} pairs, not {expected}"
    );
}

/// Gilbert's bursts: their mean length is 1 / to_good, their share to_bad / (to_bad + to_good).
#[test]
fn bursts_are_as_long_and_as_frequent_as_the_chain_says() {
    let (to_bad, to_good, packets) = (0.005, 0.2, 2_000_000);
    let spec = LossSpec::GilbertElliott {
        to_bad,
        to_good,
        loss_in_good: 0.0,
        loss_in_bad: 1.0,
    };
    let lost = lost(spec, packets, 11);
    let share = count(&lost) / packets as f64;
    let bursts = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
    let length = count(&lost) / bursts;
    // Lengths are geometric: their deviation is √(1 − p) / p.
    let length_error = (1.0 - to_good).sqrt() / to_good / bursts.sqrt();
    assert!(
        (length - 1.0 / to_good).abs() < 4.0 * length_error,
        "{length}"
    );
    // Correlation widens the binomial's variance by (1 + r) / (1 − r), r = 1 − to_bad − to_good.
    let expected = to_bad / (to_bad + to_good);
    let correlation = 1.0 - to_bad - to_good;
    let spread = (1.0 + correlation) / (1.0 - correlation);
    let share_error = (expected * (1.0 - expected) * spread / packets as f64).sqrt();
    assert!((share - expected).abs() < 4.0 * share_error, "{share}");
}

/// Elliott's: the losses of both states add up.
#[test]
fn both_states_lose_their_share() {
    let (to_bad, to_good, packets) = (0.01, 0.04, 2_000_000);
    let (loss_in_good, loss_in_bad) = (0.002, 0.3);
    let spec = LossSpec::GilbertElliott {
        to_bad,
        to_good,
        loss_in_good,
        loss_in_bad,
    };
    let share = count(&lost(spec, packets, 3)) / packets as f64;
    let bad = to_bad / (to_bad + to_good);
    let expected = bad * loss_in_bad + (1.0 - bad) * loss_in_good;
    assert!(
        (share - expected).abs() < 0.02 * expected,
        "{share}, not {expected}"
    );
}

/// Seed 004 drops data packet 20 of flow 1: the segments without data and the other flow do not count.
#[test]
fn data_packet_20_of_flow_1() {
    let spec = LossSpec::Packets {
        flow: Some(1),
        packets: vec![20],
    };
    let mut traffic = vec![];
    for number in 0..40 {
        let mut run = Run::single(number, 1500);
        run.has_data = number > 1;
        run.port = if number % 4 == 3 { 2 } else { 1 };
        traffic.push((1, run));
    }
    let left = numbers(&pass(&mut chain([CellSpec::Loss(spec)], 1), &traffic));
    let data_of_1 = (2..40).filter(|number| number % 4 != 3);
    let twentieth = data_of_1.clone().nth(19).unwrap();
    let expected: Vec<_> = (0..40).filter(|number| *number != twentieth).collect();
    assert_eq!(left, expected);
}

#[test]
fn windows_lose_at_their_times_only() {
    let window = |from_ns, until_ns, probability| LossWindow {
        from_ns,
        until_ns,
        probability,
    };
    let windows = vec![
        window(100, 200, 1.0),
        window(200, 300, 0.0),
        window(500, 1_000, 0.5),
    ];
    let lost = lost_of(LossSpec::Windows { windows }, &steady(2_000, 1), 1);
    // Segment n comes at n + 1.
    assert_eq!(count(&lost[..99]), 0.0);
    assert_eq!(count(&lost[99..199]), 100.0);
    assert_eq!(count(&lost[199..499]), 0.0);
    assert!((count(&lost[499..999]) - 250.0).abs() < 4.0 * 125f64.sqrt());
    assert_eq!(count(&lost[999..]), 0.0);
}

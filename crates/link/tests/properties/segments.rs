// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reordering, duplication, corruption and the MTU.

use fatpath_link::{
    Cell, CellSpec, ChainSpec, CorruptSpec, Count, Departure, DropCause, DuplicateSpec, Exceed,
    MtuSpec, PolicerSpec, ReorderSpec,
};
use proptest::prelude::*;

use crate::support::*;

fn reordering(probability: f64, displacement_packets: u32, hold_limit_ns: u64) -> CellSpec {
    CellSpec::Reorder(ReorderSpec {
        probability,
        displacement_packets,
        hold_limit_ns,
    })
}

/// Where each displaced segment came to lie: how many later ones left before it.
fn displacements(left: &[u64]) -> Vec<u64> {
    let mut later_before = vec![];
    for (place, number) in left.iter().enumerate() {
        let before = left[..place].iter().filter(|other| *other > number).count();
        if before > 0 {
            later_before.push(before as u64);
        }
    }
    later_before
}

proptest! {
    /// Exactly the displacement, whatever the probability, as long as enough segments follow.
    #[test]
    fn a_displaced_segment_lets_so_many_later_ones_pass(
        probability in 0.0..0.5f64,
        displacement in 1..20u32,
        seed: u64,
    ) {
        let cell = reordering(probability, displacement, 1_000_000_000);
        let left = numbers(&pass(&mut chain([cell], seed), &steady(300, 1)));
        let displacements = displacements(&left);
        // At the end too few follow.
        let sure = displacements.len().saturating_sub(displacement as usize * 4);
        for later in &displacements[..sure] {
            prop_assert_eq!(*later, u64::from(displacement));
        }
    }

    #[test]
    fn no_segment_is_held_beyond_the_limit(spec in reorder(), traffic in traffic()) {
        let limit_ns = spec.hold_limit_ns;
        let left = times(&pass(&mut chain([CellSpec::Reorder(spec)], 1), &traffic));
        let mut came_ns = vec![];
        let mut now_ns = 0;
        for (gap_ns, run) in &traffic {
            now_ns += gap_ns;
            came_ns.extend(run.numbers().map(|_| now_ns));
        }
        prop_assert_eq!(left.len(), came_ns.len());
        for (number, left_ns) in left {
            let came_ns = came_ns[number as usize];
            prop_assert!(came_ns <= left_ns && left_ns <= came_ns + limit_ns);
        }
    }

    #[test]
    fn duplicates_come_right_behind(probability in probability(), traffic in traffic()) {
        let mut chain = chain([CellSpec::Duplicate(DuplicateSpec { probability })], 1);
        let mut left = numbers(&pass(&mut chain, &traffic));
        prop_assert!(left.is_sorted());
        let duplicated = chain.counters().duplicated.packets;
        prop_assert_eq!(left.len() as u64, pushed(&traffic).packets + duplicated);
        left.dedup();
        prop_assert_eq!(left.len() as u64, pushed(&traffic).packets);
    }

    #[test]
    fn corruption_damages_single_segments_and_counts_them(
        probability in probability(),
        traffic in traffic(),
    ) {
        let mut chain = chain([CellSpec::Corrupt(CorruptSpec { probability })], 1);
        let left = pass(&mut chain, &traffic);
        let is_damaged = |departure: &&Departure<Run>| departure.packet.damage.is_some();
        let damaged = left.iter().filter(is_damaged).map(|departure| &departure.packet);
        prop_assert_eq!(Count::of(damaged), chain.counters().corrupted);
        prop_assert_eq!(Count::of(left.iter().map(|departure| &departure.packet)), pushed(&traffic));
    }

    #[test]
    fn just_what_is_longer_than_the_mtu_is_dropped(mtu_bytes in 68..1600u32, traffic in traffic()) {
        let mut chain = chain([CellSpec::Mtu(MtuSpec { mtu_bytes })], 1);
        let left = numbers(&pass(&mut chain, &traffic));
        let all = singles(&traffic).into_iter().map(|(_, run)| run);
        let (fit, long): (Vec<_>, Vec<_>) = all.partition(|run| run.wire.last_bytes <= mtu_bytes);
        prop_assert_eq!(left, fit.iter().map(|run| run.first).collect::<Vec<_>>());
        prop_assert_eq!(chain.counters().dropped(DropCause::TooBig), Count::of(&long));
    }

    #[test]
    fn just_what_is_longer_than_the_mtu_is_fragmented_where_it_may(mtu_bytes in 68..1600u32, traffic in traffic()) {
        let mut traffic = traffic;
        traffic.iter_mut().for_each(|(_, run)| run.may_be_fragmented = true);
        let mut chain = chain([CellSpec::Mtu(MtuSpec { mtu_bytes })], 1);
        let left = pass(&mut chain, &traffic);
        let data = |run: &Run| u64::from(run.wire.last_bytes.saturating_sub(20));
        let mut passed = std::collections::BTreeMap::<u64, (u64, u64)>::new();
        for run in left.iter().flat_map(|departure| departure.packet.singles()) {
            prop_assert!(run.wire.last_bytes <= mtu_bytes);
            let (parts, bytes) = passed.entry(run.first).or_default();
            *parts += 1;
            *bytes += data(&run);
        }
        for (_, run) in singles(&traffic) {
            let parts = if run.wire.last_bytes <= mtu_bytes { 1 } else { data(&run).div_ceil(u64::from(mtu_bytes) - 20) };
            prop_assert_eq!(passed.get(&run.first), Some(&(parts, data(&run))));
        }
        let counters = chain.counters();
        prop_assert_eq!(sum([counters.arrived, counters.fragmented]), counters.left);
        prop_assert_eq!(counters.dropped_total(), Count::default());
    }

    #[test]
    fn a_policer_passes_at_most_its_rate_and_its_burst(
        rate_bps in rate_bps(),
        burst_bytes in 0..200_000u64,
        traffic in traffic(),
    ) {
        let left = pass(&mut chain([policing(rate_bps, burst_bytes, Exceed::Drop)], 1), &traffic);
        // From any departure to any later one: the bucket is never fuller than the burst.
        for (first, from) in left.iter().enumerate() {
            let mut bytes = 0;
            for to in &left[first..] {
                bytes += u128::from(to.packet.wire.len_bytes(0));
                let elapsed_ns = u128::from(to.at_ns - from.at_ns);
                let tokens = u128::from(burst_bytes) * 8_000_000_000 + elapsed_ns * u128::from(rate_bps);
                prop_assert!(bytes * 8_000_000_000 <= tokens, "{bytes} B in {elapsed_ns} ns");
            }
        }
    }

    #[test]
    fn what_exceeds_a_policer_is_dropped_marked_or_set_alike(
        rate_bps in rate_bps(),
        burst_bytes in 0..200_000u64,
        traffic in traffic(),
    ) {
        let policed = |exceed| {
            let mut chain = chain([policing(rate_bps, burst_bytes, exceed)], 1);
            let left = pass(&mut chain, &traffic);
            (left, chain.counters())
        };
        let (conforming, dropping) = policed(Exceed::Drop);
        let (set, setting) = policed(Exceed::SetDscp(8));
        let kept: Vec<_> = set.into_iter().filter(|departure| departure.packet.dscp == 0).collect();
        prop_assert_eq!(numbers(&kept), numbers(&conforming));
        prop_assert_eq!(setting.marked, dropping.dropped(DropCause::Policed));
        let (_, marking) = policed(Exceed::MarkEcn);
        let exceeding = sum([marking.marked, marking.dropped(DropCause::Policed)]);
        prop_assert_eq!(exceeding, setting.marked);
    }
}

/// Of a bucket of two segments, filled in 12 ms each.
#[test]
fn a_policer_passes_its_burst_at_once_and_then_one_segment_each_time_it_has_tokens() {
    let mut chain = chain([policing(1_000_000, 3_000, Exceed::Drop)], 1);
    let left = pass(
        &mut chain,
        &vec![
            (0, Run::full(0, 4)),
            (11_999_999, Run::full(4, 1)),
            (1, Run::full(5, 2)),
        ],
    );
    assert_eq!(numbers(&left), [0, 1, 5]);
}

/// More tokens than it had it gets only with time; one that polices nothing has them all.
#[test]
fn a_policer_that_changes_keeps_its_tokens() {
    let mut chain = chain([policing(1_000_000, 3_000, Exceed::Drop)], 1);
    let mut left = pass(&mut chain, &vec![(0, Run::full(0, 2))]);
    let wider = ChainSpec::of([policing(1_000_000, 6_000, Exceed::Drop)]);
    chain.adopt(0, &wider).unwrap();
    chain.push(12_000_000, Run::full(2, 3));
    drain(&mut chain, &mut left);
    assert_eq!(numbers(&left), [0, 1, 2]);
    chain
        .adopt(
            12_000_000,
            &ChainSpec::of([CellSpec::Policer(PolicerSpec::NONE)]),
        )
        .unwrap();
    chain.push(12_000_000, Run::full(5, 40));
    drain(&mut chain, &mut left);
    assert_eq!(
        left.last().map(|departure| departure.packet.wire.segments),
        Some(40)
    );
}

fn policing(rate_bps: u64, burst_bytes: u64, exceed: Exceed) -> CellSpec {
    CellSpec::Policer(PolicerSpec {
        rate_bps,
        burst_bytes: Some(burst_bytes),
        exceed,
    })
}

#[test]
fn a_segment_that_none_follows_leaves_at_the_limit() {
    let mut chain = chain([reordering(1.0, 3, 500)], 1);
    chain.push(100, Run::single(0, 1500));
    assert_eq!(chain.next_due_ns(), Some(600));
    assert_eq!(chain.held().packets, 1);
    assert!(chain.pop(599).is_none());
    assert_eq!(chain.pop(700).map(|departure| departure.at_ns), Some(600));
}

/// As many are displaced, duplicated or damaged as the probability says: four standard deviations.
#[test]
fn probabilities_are_kept() {
    let (probability, packets) = (0.02, 200_000);
    let traffic = steady(packets, 1);
    let expected = packets as f64 * probability;
    let deviation = (expected * (1.0 - probability)).sqrt();
    let check = |what: &str, count: u64| {
        let off = (count as f64 - expected).abs();
        assert!(off < 4.0 * deviation, "{what}: {count}, not {expected}");
    };
    let left = numbers(&pass(
        &mut chain([reordering(probability, 1, 1_000)], 5),
        &traffic,
    ));
    let overtaken = left.windows(2).filter(|pair| pair[0] > pair[1]).count();
    // Those that are displaced together go back together.
    let runs = 1.0 - probability;
    check("displaced", (overtaken as f64 / runs) as u64);
    let mut duplicate = chain([CellSpec::Duplicate(DuplicateSpec { probability })], 5);
    pass(&mut duplicate, &traffic);
    check("duplicated", duplicate.counters().duplicated.packets);
    let mut corrupt = chain([CellSpec::Corrupt(CorruptSpec { probability })], 5);
    pass(&mut corrupt, &traffic);
    check("corrupted", corrupt.counters().corrupted.packets);
}

#[test]
fn a_super_packet_gets_one_reply() {
    let mut chain = chain([CellSpec::Mtu(MtuSpec { mtu_bytes: 1_400 })], 1);
    chain.push(0, Run::full(0, 45));
    assert_eq!(chain.next_due_ns(), None);
    let reply = chain.pop_reply().unwrap();
    assert!(reply.is_reply && reply.wire.last_bytes == 1_400);
    assert_eq!(chain.pop_reply(), None);
    assert_eq!(chain.counters().dropped(DropCause::TooBig).packets, 45);
}

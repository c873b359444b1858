// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chains that take on another spec while traffic runs.

use fatpath_link::{
    Cell, CellSpec, ChainSpec, Count, Departure, Discipline, LossSpec, QueueSpec, RateSpec,
    ReorderSpec, Service,
};
use proptest::prelude::*;

use crate::support::*;

const MS_NS: u64 = 1_000_000;
/// Sends 1,500 bytes a millisecond.
const SLOW_BPS: u64 = 12_000_000;

/// Passes traffic; before the packet of each index, the chain adopts a spec.
fn pass_adopting(
    spec: &ChainSpec,
    changes: &[(usize, ChainSpec)],
    traffic: &Traffic,
    mut look: impl FnMut(&fatpath_link::Chain<Run>, Count),
) -> Vec<Departure<Run>> {
    let mut chain = spec.build::<Run>().unwrap();
    let mut departures = vec![];
    let mut now_ns = 0;
    for (index, (gap_ns, run)) in traffic.iter().enumerate() {
        // Half-way to the packet, so that the change meets the cells at work.
        now_ns += gap_ns / 2;
        for (_, spec) in changes.iter().filter(|change| change.0 == index) {
            chain.adopt(now_ns, spec).unwrap();
        }
        now_ns += gap_ns - gap_ns / 2;
        chain.push(now_ns, *run);
        pop_due(&mut chain, now_ns, &mut departures);
        look(
            &chain,
            Count::of(departures.iter().map(|left| &left.packet)),
        );
    }
    // An outage may have become endless: then what is held is still held.
    drain(&mut chain, &mut departures);
    departures
}

fn changes(
    spec: impl Strategy<Value = ChainSpec>,
) -> impl Strategy<Value = Vec<(usize, ChainSpec)>> {
    proptest::collection::vec((0..40usize, spec), 1..5)
}

proptest! {
    #[test]
    fn a_change_loses_nothing_uncounted(
        spec in any_spec(),
        changes in changes(any_spec()),
        traffic in traffic_of(40),
    ) {
        pass_adopting(&spec, &changes, &traffic, |chain, popped| {
            let counters = chain.counters();
            let went = sum([popped, counters.dropped_total(), chain.held()]);
            assert_eq!(sum([counters.arrived, counters.duplicated, counters.fragmented]), went);
            assert_eq!(counters.left, popped);
        });
    }

    #[test]
    fn a_change_keeps_order(
        spec in orderly_spec(),
        changes in changes(orderly_spec()),
        traffic in traffic_of(40),
    ) {
        let left = pass_adopting(&spec, &changes, &traffic, |_, _| {});
        prop_assert!(numbers(&left).is_sorted_by(|one, next| one < next));
        prop_assert!(left.is_sorted_by_key(|departure| departure.at_ns));
    }

    #[test]
    fn to_adopt_what_is_so_already_changes_nothing(
        spec in any_spec(),
        at in proptest::collection::vec(0..40usize, 1..5),
        traffic in traffic_of(40),
    ) {
        let changes: Vec<_> = at.into_iter().map(|index| (index, spec.clone())).collect();
        let changed = pass_adopting(&spec, &changes, &traffic, |_, _| {});
        let unchanged = pass_adopting(&spec, &[], &traffic, |_, _| {});
        prop_assert_eq!(times(&changed), times(&unchanged));
        prop_assert_eq!(fates(&changed), fates(&unchanged));
    }

    /// A caller that did not pop before a change gets what one gets who did.
    #[test]
    fn a_change_meets_what_is_due_at_its_moment(
        (spec, to) in (any_spec(), any_spec()),
        traffic in traffic_of(40),
    ) {
        let left = |in_time: bool| {
            let mut chain = spec.build::<Run>().unwrap();
            let (mut now_ns, mut left) = (0, vec![]);
            for (index, (gap_ns, run)) in traffic.iter().enumerate() {
                if index == traffic.len() / 2 {
                    if in_time {
                        pop_due(&mut chain, now_ns + gap_ns / 2, &mut left);
                    }
                    chain.adopt(now_ns + gap_ns / 2, &to).unwrap();
                }
                now_ns += gap_ns;
                chain.push(now_ns, *run);
            }
            drain(&mut chain, &mut left);
            (times(&left), fates(&left))
        };
        prop_assert_eq!(left(true), left(false));
    }

    /// Whatever was, an empty chain does nothing to what comes after the last of what was held.
    #[test]
    fn what_is_no_more_does_nothing(spec in any_spec(), traffic in traffic_of(40)) {
        let mut chain = spec.build::<Run>().unwrap();
        pass(&mut chain, &traffic);
        let now_ns = 1 << 60;
        let before = chain.counters();
        chain.adopt(now_ns, &ChainSpec::default()).unwrap();
        chain.push(now_ns, Run::full(0, 45));
        let after = chain.pop(now_ns).map(|departure| (departure.at_ns, departure.packet));
        prop_assert_eq!(after, Some((now_ns, Run::full(0, 45))));
        prop_assert_eq!(before.dropped_total(), chain.counters().dropped_total());
    }

    #[test]
    fn a_spec_out_of_range_changes_nothing(spec in any_spec(), traffic in traffic_of(40)) {
        let mut chain = spec.build::<Run>().unwrap();
        prop_assert!(chain.adopt(0, &ChainSpec::of([CellSpec::loss(2.0)])).is_err());
        let left = pass(&mut chain, &traffic);
        prop_assert_eq!(times(&left), times(&pass(&mut spec.build::<Run>().unwrap(), &traffic)));
    }
}

fn spec(cells: impl Into<Vec<CellSpec>>) -> ChainSpec {
    ChainSpec::of(cells)
}

/// When single segments of 1,500 bytes leave that come at 0, if the chain changes at `change_ns`.
fn left_ns(cells: &[CellSpec], packets: u64, change_ns: u64, to: &[CellSpec]) -> Vec<u64> {
    let mut chain = spec(cells).build::<Run>().unwrap();
    (0..packets).for_each(|number| chain.push(0, Run::single(number, 1500)));
    let mut left = vec![];
    pop_due(&mut chain, change_ns, &mut left);
    chain.adopt(change_ns, &spec(to)).unwrap();
    drain(&mut chain, &mut left);
    left.iter().map(|departure| departure.at_ns).collect()
}

fn slow(limit_bytes: Option<u64>) -> CellSpec {
    CellSpec::rate(SLOW_BPS, limit_bytes)
}

#[test]
fn what_is_being_sent_goes_on_at_the_new_rate() {
    let tenth = CellSpec::rate(SLOW_BPS / 10, None);
    let left = left_ns(&[slow(None)], 2, MS_NS / 2, &[tenth]);
    assert_eq!(left, [11 * MS_NS / 2, 31 * MS_NS / 2]);
}

#[test]
fn a_super_packet_that_is_being_sent_goes_on_at_the_new_rate() {
    let mut chain = spec([slow(None)]).build::<Run>().unwrap();
    chain.push(0, Run::full(0, 4));
    let to = spec([CellSpec::rate(SLOW_BPS / 2, None)]);
    chain.adopt(3 * MS_NS / 2, &to).unwrap();
    let mut left = vec![];
    drain(&mut chain, &mut left);
    // 2.5 of 4 ms were left.
    assert_eq!(left.last().map(|last| last.at_ns), Some(13 * MS_NS / 2));
    assert_eq!(numbers(&left), [0, 1, 2, 3]);
}

#[test]
fn what_waits_leaves_at_once_when_the_limit_goes() {
    let unlimited = CellSpec::Rate(RateSpec {
        service: Service::Unlimited,
        queue: QueueSpec::default(),
        overhead_bytes: 0,
    });
    for to in [vec![unlimited], vec![]] {
        let left = left_ns(&[slow(None)], 3, 3 * MS_NS / 2, &to);
        assert_eq!(left, [MS_NS, 3 * MS_NS / 2, 3 * MS_NS / 2]);
    }
}

#[test]
fn a_shorter_delay_overtakes_nothing() {
    let mut chain = spec([CellSpec::delay(10 * MS_NS)]).build::<Run>().unwrap();
    chain.push(0, Run::single(0, 1500));
    chain.adopt(MS_NS, &spec([CellSpec::delay(MS_NS)])).unwrap();
    chain.push(2 * MS_NS, Run::single(1, 1500));
    chain.push(9 * MS_NS + 1, Run::single(2, 1500));
    let mut left = vec![];
    drain(&mut chain, &mut left);
    assert_eq!(
        times(&left),
        [(0, 10 * MS_NS), (1, 10 * MS_NS), (2, 10 * MS_NS + 1)]
    );
}

#[test]
fn a_smaller_limit_drops_nothing_that_waits_and_admits_nothing_until_it_fits() {
    let mut chain = spec([slow(Some(15_000))]).build::<Run>().unwrap();
    (0..10).for_each(|number| chain.push(0, Run::single(number, 1500)));
    chain.adopt(0, &spec([slow(Some(3_000))])).unwrap();
    assert_eq!(chain.take_peak_bytes(0), 15_000);
    chain.push(8 * MS_NS, Run::single(10, 1500));
    chain.push(9 * MS_NS, Run::single(11, 1500));
    let mut left = vec![];
    drain(&mut chain, &mut left);
    assert_eq!(numbers(&left), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11]);
}

#[test]
fn what_waits_moves_over_to_another_discipline() {
    let with = |discipline| {
        CellSpec::Rate(RateSpec {
            service: Service::Constant { rate_bps: SLOW_BPS },
            queue: QueueSpec {
                discipline,
                limit_packets: Some(5),
                ..QueueSpec::default()
            },
            overhead_bytes: 0,
        })
    };
    let codel = Discipline::Codel {
        target_ns: 1,
        interval_ns: 1,
        ecn: false,
    };
    let mut chain = spec([with(Discipline::DropTail)]).build::<Run>().unwrap();
    chain.push(0, Run::full(0, 5));
    chain.adopt(0, &spec([with(Discipline::DropHead)])).unwrap();
    // Drop-head makes room at the cost of the oldest that waits.
    chain.push(0, Run::single(5, 1500));
    // CoDel sees how long they waited: of 2, 3, 4, 5 it drops 2 at 1 ms, when 1 has waited already.
    chain.adopt(0, &spec([with(codel)])).unwrap();
    let mut left = vec![];
    drain(&mut chain, &mut left);
    assert_eq!(numbers(&left), [0, 2, 4, 5]);
}

#[test]
fn a_cell_put_in_front_leaves_the_queue_behind_it_as_it_is() {
    let to = [
        CellSpec::delay(5 * MS_NS),
        slow(None),
        CellSpec::delay(MS_NS),
    ];
    let left = left_ns(&[slow(None), CellSpec::delay(MS_NS)], 2, MS_NS / 2, &to);
    assert_eq!(left, [2 * MS_NS, 3 * MS_NS]);
}

#[test]
fn the_displaced_keep_to_their_limit_when_reordering_ends() {
    let reorder = CellSpec::Reorder(ReorderSpec {
        probability: 1.0,
        displacement_packets: 3,
        hold_limit_ns: 10,
    });
    let mut chain = spec([reorder]).build::<Run>().unwrap();
    chain.push(0, Run::single(0, 1500));
    chain.adopt(5, &ChainSpec::default()).unwrap();
    chain.push(6, Run::single(1, 1500));
    let mut left = vec![];
    drain(&mut chain, &mut left);
    assert_eq!(times(&left), [(1, 6), (0, 10)]);
}

/// Flows and their data segments are counted on when the list changes.
#[test]
fn another_list_of_packets_counts_on() {
    let list = |packets| {
        spec([CellSpec::Loss(LossSpec::Packets {
            flow: Some(1),
            packets,
        })])
    };
    let mut chain = list(vec![2]).build::<Run>().unwrap();
    chain.push(0, Run::full(0, 10));
    chain.adopt(0, &list(vec![2, 12])).unwrap();
    chain.push(0, Run::full(10, 10));
    let mut left = vec![];
    drain(&mut chain, &mut left);
    let expected: Vec<_> = (0..20).filter(|number| ![1, 11].contains(number)).collect();
    assert_eq!(numbers(&left), expected);
}

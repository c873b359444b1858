// SPDX-License-Identifier: MIT OR Apache-2.0
//! What holds for every cell and every traffic. A packet here is a run of numbered segments, so that
//! a test sees which of them came out, in which order, and when.

use fatpath_link::{
    Bottleneck, Cell, CellSpec, Chain, ChainSpec, Count, Delay, Departure, DropCause, DropTail,
    Ecn, Flow, Loss, Packet, RateClock, Wire,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// Segments `first`, `first + 1`, ….
#[derive(Clone, Copy, Debug)]
struct Run {
    first: u64,
    wire: Wire,
}

impl Packet for Run {
    fn wire(&self) -> Wire {
        self.wire
    }

    fn split_front(&mut self, count: u32) -> Run {
        assert!(
            0 < count && count < self.wire.segments,
            "{count} of {:?}",
            self.wire
        );
        let front_wire = Wire {
            segments: count,
            last_bytes: self.wire.segment_bytes,
            ..self.wire
        };
        let front = Run {
            first: self.first,
            wire: front_wire,
        };
        self.first += u64::from(count);
        self.wire.segments -= count;
        if self.wire.segments == 1 {
            self.wire.segment_bytes = self.wire.last_bytes;
        }
        front
    }

    fn ecn(&self) -> Ecn {
        Ecn::NotCapable
    }

    fn mark(&mut self) {}

    fn flow(&self) -> Option<Flow> {
        None
    }

    fn has_data(&self) -> bool {
        true
    }

    fn duplicate(&self) -> Run {
        *self
    }

    fn corrupt(&mut self, _random: u64) {}

    fn too_big(&self, _mtu_bytes: u32) -> Option<Run> {
        None
    }
}

impl Run {
    fn numbers(&self) -> std::ops::Range<u64> {
        self.first..self.first + u64::from(self.wire.segments)
    }

    /// The same segments as packets of one each.
    fn singles(mut self) -> Vec<Run> {
        let mut singles = vec![];
        while self.wire.segments > 1 {
            singles.push(self.split_front(1));
        }
        singles.push(self);
        singles
    }
}

/// Gaps before packets, and the packets, numbered on.
fn traffic() -> impl Strategy<Value = Vec<(u64, Run)>> {
    let gap_ns = prop_oneof![Just(0u64), 0..1_000_000u64, 0..100_000_000u64];
    let wire =
        (prop_oneof![Just(1u32), 1..46u32], 40..1501u32).prop_flat_map(|(segments, bytes)| {
            (40..=bytes).prop_map(move |last| match segments {
                1 => Wire::single(last),
                _ => Wire {
                    segments,
                    segment_bytes: bytes,
                    last_bytes: last,
                },
            })
        });
    vec((gap_ns, wire), 1..60).prop_map(|packets| {
        let mut next = 0;
        let number = |(gap_ns, wire): (u64, Wire)| {
            let run = Run { first: next, wire };
            next += u64::from(wire.segments);
            (gap_ns, run)
        };
        packets.into_iter().map(number).collect()
    })
}

fn spec() -> impl Strategy<Value = ChainSpec> {
    let rate_bps = prop_oneof![Just(None), (1_000u64..=1_000_000_000_000).prop_map(Some)];
    let queue_bytes = prop_oneof![Just(None), (0u64..300_000).prop_map(Some)];
    let loss = prop_oneof![Just(0.0), Just(1.0), 0.0..1.0f64, 0.0..0.01f64];
    (
        0..50_000_000u64,
        rate_bps,
        queue_bytes,
        loss,
        0..100u32,
        any::<u64>(),
    )
        .prop_map(
            |(delay_ns, rate_bps, queue_bytes, loss, overhead_bytes, seed)| {
                let rate = rate_bps.map(|rate_bps| {
                    let mut rate = CellSpec::rate(rate_bps, queue_bytes);
                    if let CellSpec::Rate(rate) = &mut rate {
                        rate.overhead_bytes = overhead_bytes;
                    }
                    rate
                });
                let cells = rate.into_iter();
                let cells = cells.chain([CellSpec::loss(loss), CellSpec::delay(delay_ns)]);
                ChainSpec {
                    cells: cells.collect(),
                    seed: seed >> 1,
                }
            },
        )
}

/// Pushes all traffic, each packet at its moment, and pops whatever is due; then drains.
fn pass(cell: &mut dyn Cell<Run>, traffic: &[(u64, Run)]) -> Vec<Departure<Run>> {
    let mut departures = vec![];
    let mut now_ns = 0;
    for (gap_ns, run) in traffic {
        now_ns += gap_ns;
        pop_due(cell, now_ns, &mut departures);
        cell.push(now_ns, *run);
    }
    while let Some(due_ns) = cell.next_due_ns() {
        pop_due(cell, due_ns, &mut departures);
    }
    departures
}

fn pop_due(cell: &mut dyn Cell<Run>, now_ns: u64, departures: &mut Vec<Departure<Run>>) {
    departures.extend(std::iter::from_fn(|| cell.pop(now_ns)));
}

fn numbers(departures: &[Departure<Run>]) -> Vec<u64> {
    departures
        .iter()
        .flat_map(|departure| departure.packet.numbers())
        .collect()
}

/// When each segment left.
fn times(departures: &[Departure<Run>]) -> Vec<(u64, u64)> {
    let timed = |departure: &Departure<Run>| {
        let at_ns = departure.at_ns;
        departure
            .packet
            .numbers()
            .map(move |number| (number, at_ns))
    };
    departures.iter().flat_map(timed).collect()
}

fn sum(mut one: Count, other: Count) -> Count {
    one += other;
    one
}

fn drop_tail(rate_bps: u64, limit_bytes: u64, overhead: u32) -> Bottleneck<Run, DropTail<Run>> {
    Bottleneck::new(
        RateClock::new(rate_bps),
        overhead,
        DropTail::new(limit_bytes, overhead),
    )
}

fn singles(traffic: &[(u64, Run)]) -> Vec<(u64, Run)> {
    let spread = |(gap_ns, run): &(u64, Run)| {
        let mut gap_ns = Some(*gap_ns);
        run.singles()
            .into_iter()
            .map(move |single| (gap_ns.take().unwrap_or(0), single))
    };
    traffic.iter().flat_map(spread).collect()
}

proptest! {
    #[test]
    fn nothing_is_lost_uncounted_at_any_instant(spec in spec(), traffic in traffic()) {
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
            let accounted = sum(sum(popped, counters.dropped_total()), chain.held());
            prop_assert_eq!(accounted, pushed);
        }
    }

    #[test]
    fn what_was_not_dropped_comes_out_once_and_in_order(spec in spec(), traffic in traffic()) {
        let mut chain = spec.build::<Run>().unwrap();
        let departures = pass(&mut chain, &traffic);
        let numbers = numbers(&departures);
        prop_assert!(numbers.is_sorted_by(|one, next| one < next));
        prop_assert!(departures.is_sorted_by_key(|departure| departure.at_ns));
        let pushed: u64 = traffic.iter().map(|(_, run)| u64::from(run.wire.segments)).sum();
        let dropped = chain.counters().dropped_total().packets;
        prop_assert_eq!(numbers.len() as u64 + dropped, pushed);
        prop_assert_eq!(chain.held(), Count::default());
    }

    /// A caller that comes late, or only at the end, gets the same packets with the same moments.
    #[test]
    fn lateness_of_the_caller_changes_nothing(spec in spec(), traffic in traffic()) {
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
    }

    #[test]
    fn the_rate_is_never_exceeded_over_any_interval(
        rate_bps in 1_000u64..=1_000_000_000_000,
        overhead in 0..100u32,
        traffic in traffic(),
    ) {
        let departures = pass(&mut drop_tail(rate_bps, u64::MAX, overhead), &traffic);
        for (index, first) in departures.iter().enumerate() {
            let mut bits = 0u128;
            for later in &departures[index + 1..] {
                bits += 8 * u128::from(later.packet.wire.len_bytes(overhead));
                // 1 ns, since departures are rounded to it.
                let allowed = u128::from(later.at_ns - first.at_ns + 1) * u128::from(rate_bps);
                prop_assert!(bits * 1_000_000_000 <= allowed);
            }
        }
    }

    #[test]
    fn a_busy_bottleneck_wastes_no_time(
        rate_bps in 1_000u64..=1_000_000_000_000,
        traffic in traffic(),
    ) {
        let burst: Vec<_> = traffic.iter().map(|(_, run)| (0, *run)).collect();
        let departures = pass(&mut drop_tail(rate_bps, u64::MAX, 0), &burst);
        let bits: u128 = burst.iter().map(|(_, run)| 8 * u128::from(run.wire.len_bytes(0))).sum();
        let exact_ns = (bits * 1_000_000_000).div_ceil(u128::from(rate_bps));
        prop_assert_eq!(departures.last().map(|last| u128::from(last.at_ns)), Some(exact_ns));
    }

    #[test]
    fn the_queue_drops_the_same_segments_whether_they_come_as_super_packets_or_singly(
        rate_bps in 1_000u64..=100_000_000_000,
        limit_bytes in 0u64..200_000,
        overhead in 0..100u32,
        traffic in traffic(),
    ) {
        let whole = pass(&mut drop_tail(rate_bps, limit_bytes, overhead), &traffic);
        let split = pass(&mut drop_tail(rate_bps, limit_bytes, overhead), &singles(&traffic));
        prop_assert_eq!(numbers(&whole), numbers(&split));
    }

    #[test]
    fn the_queue_never_passes_its_limit_by_a_byte(
        rate_bps in 1_000u64..=100_000_000_000,
        limit_bytes in 0u64..200_000,
        overhead in 0..100u32,
        traffic in traffic(),
    ) {
        let mut bottleneck = drop_tail(rate_bps, limit_bytes, overhead);
        let mut now_ns = 0;
        for (gap_ns, run) in &traffic {
            now_ns += gap_ns;
            bottleneck.push(now_ns, *run);
            prop_assert!(bottleneck.depth_bytes(now_ns) <= limit_bytes);
        }
    }

    #[test]
    fn a_burst_fills_the_queue_to_the_last_segment_that_fits(
        limit_bytes in 0u64..200_000,
        segment_bytes in 40..1501u32,
        packets in 1..300u64,
    ) {
        let burst: Vec<_> = (0..packets)
            .map(|first| (0, Run { first, wire: Wire::single(segment_bytes) }))
            .collect();
        let mut bottleneck = drop_tail(1_000_000, limit_bytes, 0);
        let passed = pass(&mut bottleneck, &burst).len() as u64;
        prop_assert_eq!(passed, packets.min(limit_bytes / u64::from(segment_bytes)));
        let dropped = bottleneck.counters().dropped(DropCause::QueueFull);
        prop_assert_eq!(dropped.packets, packets - passed);
        prop_assert_eq!(dropped.bytes, dropped.packets * u64::from(segment_bytes));
    }

    #[test]
    fn the_same_segments_are_lost_whether_they_come_as_super_packets_or_singly(
        loss in 0.0..=1.0f64,
        seed: u64,
        traffic in traffic(),
    ) {
        let whole = pass(&mut Loss::new(loss, seed), &traffic);
        let split = pass(&mut Loss::new(loss, seed), &singles(&traffic));
        prop_assert_eq!(times(&whole), times(&split));
    }

    #[test]
    fn propagation_takes_exactly_its_time(delay_ns in 0..10_000_000_000u64, traffic in traffic()) {
        let departures = pass(&mut Delay::new(delay_ns), &traffic);
        let mut now_ns = 0;
        for ((gap_ns, run), departure) in traffic.iter().zip(&departures) {
            now_ns += gap_ns;
            prop_assert_eq!(departure.at_ns, now_ns + delay_ns);
            prop_assert_eq!(departure.packet.first, run.first);
        }
        prop_assert_eq!(departures.len(), traffic.len());
    }
}

/// Four standard deviations of the binomial, for seeds and sizes of packets that never change.
#[test]
fn as_many_segments_are_lost_as_the_probability_says() {
    for (loss, pushed) in [(0.5, 100_000u64), (0.01, 2_000_000), (0.0001, 20_000_000)] {
        for seed in 0..5 {
            let mut cell = Loss::new(loss, seed);
            for first in (0..pushed).step_by(40) {
                let wire = Wire {
                    segments: 40,
                    segment_bytes: 1500,
                    last_bytes: 1500,
                };
                cell.push(first, Run { first, wire });
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
    let (loss, pushed) = (0.1, 1_000_000);
    let wire = Wire::single(1500);
    let traffic: Vec<_> = (0..pushed).map(|first| (0, Run { first, wire })).collect();
    let mut survived = vec![false; pushed as usize];
    for number in numbers(&pass(&mut Loss::new(loss, 7), &traffic)) {
        survived[number as usize] = true;
    }
    let pairs = survived
        .windows(2)
        .filter(|pair| !pair[0] && !pair[1])
        .count() as f64;
    let expected = pushed as f64 * loss * loss;
    assert!(
        (pairs - expected).abs() < 4.0 * expected.sqrt(),
        "{pairs} pairs, not {expected}"
    );
}

/// Packets of 1,000 bytes, at 1,000 bytes a microsecond, come on whole microseconds: each leaves at
/// the very moment at which another arrives. Whether the delay comes before or after, the packet that
/// leaves makes room first.
#[test]
fn a_delay_before_the_bottleneck_does_as_one_after_it() {
    let gaps_ns = [0, 0, 0, 1_000, 0, 1_000, 1_000, 2_000, 0, 0, 1_000];
    let run = |first| Run {
        first,
        wire: Wire::single(1000),
    };
    let traffic: Vec<_> = gaps_ns.into_iter().zip((0..).map(run)).collect();
    let bottleneck = || Box::new(drop_tail(8_000_000_000, 2_000, 0)) as Box<dyn Cell<Run>>;
    let delay = || Box::new(Delay::new(5_000)) as Box<dyn Cell<Run>>;
    let before = pass(&mut Chain::new(vec![delay(), bottleneck()]), &traffic);
    let after = pass(&mut Chain::new(vec![bottleneck(), delay()]), &traffic);
    assert_eq!(numbers(&before), [0, 1, 3, 5, 6, 7, 8, 10]);
    assert_eq!(times(&before), times(&after));
}

#[test]
fn a_chain_of_no_cells_passes_at_once() {
    let mut chain: Chain<Run> = ChainSpec::default().build().unwrap();
    chain.push(
        5,
        Run {
            first: 0,
            wire: Wire::single(100),
        },
    );
    assert_eq!(chain.next_due_ns(), Some(5));
    assert_eq!(chain.pop(5).map(|departure| departure.at_ns), Some(5));
    assert_eq!(chain.next_due_ns(), None);
}

#[test]
fn a_spec_out_of_range_is_refused() {
    let refused = |spec: ChainSpec| spec.build::<Run>().is_err();
    let big = u32::MAX;
    let mut overhead = CellSpec::rate(1_000, None);
    if let CellSpec::Rate(rate) = &mut overhead {
        rate.overhead_bytes = big;
    }
    for cell in [
        CellSpec::rate(999, None),
        CellSpec::rate(1_000_000_000_001, None),
        CellSpec::loss(1.01),
        CellSpec::loss(f64::NAN),
        CellSpec::delay(u64::MAX),
        overhead,
    ] {
        assert!(refused(ChainSpec::of([cell])));
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Propagation, with jitter and without.

use fatpath_link::{Cell, CellSpec, ChainSpec, DelaySpec, Distribution, JitterSpec};
use proptest::prelude::*;

use crate::support::*;

const MS_NS: u64 = 1_000_000;

proptest! {
    #[test]
    fn propagation_takes_exactly_its_time(delay_ns in 0..10_000_000_000u64, traffic in traffic()) {
        let departures = pass(&mut chain([CellSpec::delay(delay_ns)], 1), &traffic);
        let mut now_ns = 0;
        for ((gap_ns, run), departure) in traffic.iter().zip(&departures) {
            now_ns += gap_ns;
            prop_assert_eq!(departure.at_ns, now_ns + delay_ns);
            prop_assert_eq!(departure.packet, *run);
        }
        prop_assert_eq!(departures.len(), traffic.len());
    }

    #[test]
    fn what_may_not_reorder_keeps_order(spec in delay(Some(false)), traffic in traffic()) {
        let departures = pass(&mut chain([CellSpec::Delay(spec)], 1), &traffic);
        let all: Vec<_> = (0..pushed(&traffic).packets).collect();
        prop_assert_eq!(numbers(&departures), all);
    }

    #[test]
    fn no_segment_leaves_before_it_came_nor_after_the_longest_delay(
        spec in delay(None),
        traffic in traffic(),
    ) {
        let departures = pass(&mut chain([CellSpec::Delay(spec)], 1), &traffic);
        let mut came_ns = vec![];
        let mut now_ns = 0;
        for (gap_ns, run) in &traffic {
            now_ns += gap_ns;
            came_ns.extend(run.numbers().map(|_| now_ns));
        }
        for (number, left_ns) in times(&departures) {
            prop_assert!(came_ns[number as usize] <= left_ns);
            prop_assert!(left_ns <= now_ns + ChainSpec::MAX_DELAY_NS);
        }
    }
}

fn jitter(distribution: Distribution, reorders: bool) -> CellSpec {
    CellSpec::Delay(DelaySpec {
        delay_ns: 100 * MS_NS,
        jitter: Some(JitterSpec {
            distribution,
            reorders,
        }),
    })
}

/// The delays of packets that come 1 ms apart, in their order.
fn delays_ns(distribution: Distribution, packets: u64) -> Vec<f64> {
    let traffic = steady(packets, MS_NS);
    let mut times = times(&pass(&mut chain([jitter(distribution, true)], 3), &traffic));
    times.sort_unstable();
    let delay_ns = |(number, left_ns): (u64, u64)| (left_ns - (number + 1) * MS_NS) as f64;
    times.into_iter().map(delay_ns).collect()
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}

/// Mean and standard deviation of each distribution, against the closed forms, to four standard
/// errors and a little more for those of the deviation.
#[test]
fn jitter_is_distributed_as_its_name_says() {
    let packets = 40_000;
    let ms = MS_NS as f64;
    let shape = 5.0;
    for (distribution, jitter_ms, deviation_ms) in [
        (
            Distribution::Uniform {
                half_width_ns: 3 * MS_NS,
            },
            0.0,
            3f64.sqrt(),
        ),
        (
            Distribution::Normal {
                std_dev_ns: 2 * MS_NS,
            },
            0.0,
            2.0,
        ),
        (Distribution::Exponential { mean_ns: 2 * MS_NS }, 2.0, 2.0),
        (
            Distribution::Pareto {
                mean_ns: 2 * MS_NS,
                shape,
            },
            2.0,
            2.0 * (shape / (shape - 2.0)).sqrt(),
        ),
    ] {
        let delays = delays_ns(distribution, packets);
        let mean_ms = mean(delays.iter().map(|delay_ns| delay_ns / ms));
        let square = |delay_ns: &f64| (delay_ns / ms - mean_ms).powi(2);
        let measured_ms = mean(delays.iter().map(square)).sqrt();
        let error_ms = 4.0 * deviation_ms / (packets as f64).sqrt();
        let off_ms = (mean_ms - 100.0 - jitter_ms).abs();
        assert!(off_ms < error_ms, "{distribution:?}: {mean_ms}");
        let off_share = (measured_ms / deviation_ms - 1.0).abs();
        assert!(off_share < 0.05, "{distribution:?}: {measured_ms}");
    }
}

/// The tail of Lomax's distribution: P(X > x) = (1 + x/scale)^−shape.
#[test]
fn the_tail_of_pareto_is_long() {
    let distribution = Distribution::Pareto {
        mean_ns: MS_NS,
        shape: 1.5,
    };
    let packets = 100_000;
    let delays = delays_ns(distribution, packets);
    let scale_ms = 0.5;
    for beyond_ms in [1.0, 10.0, 100.0] {
        let long = |delay_ns: &&f64| **delay_ns > (100.0 + beyond_ms) * MS_NS as f64;
        let count = delays.iter().filter(long).count() as f64;
        let expected = packets as f64 * (1.0 + beyond_ms / scale_ms).powf(-1.5);
        assert!((count - expected).abs() < 4.0 * expected.sqrt(), "{count}");
    }
}

#[test]
fn jitter_that_may_reorder_does() {
    let distribution = Distribution::Normal {
        std_dev_ns: 5 * MS_NS,
    };
    let left = |reorders| {
        let mut chain = chain([jitter(distribution, reorders)], 1);
        numbers(&pass(&mut chain, &steady(1_000, MS_NS)))
    };
    assert!(!left(true).is_sorted());
    assert!(left(false).is_sorted());
}

/// A super-packet of which jitter parts nothing stays whole.
#[test]
fn segments_of_one_delay_stay_together() {
    let distribution = Distribution::Uniform { half_width_ns: 0 };
    let traffic = vec![(0, Run::full(0, 45))];
    let departures = pass(&mut chain([jitter(distribution, true)], 1), &traffic);
    assert_eq!(departures.len(), 1);
}

/// Equal moments leave in the order in which they came, however many there are.
#[test]
fn equal_moments_keep_order() {
    let distribution = Distribution::Uniform { half_width_ns: 1 };
    let traffic = vec![(0, Run::full(0, 45)); 1];
    let mut chain = chain([jitter(distribution, true)], 1);
    let mut times: Vec<_> = times(&pass(&mut chain, &traffic))
        .into_iter()
        .map(|(number, left_ns)| (left_ns, number))
        .collect();
    assert_eq!(times.len(), 45);
    assert!(times.is_sorted());
    times.dedup_by_key(|(left_ns, _)| *left_ns);
    assert_eq!(times.len(), 3);
}

#[test]
fn what_travels_is_held() {
    let mut chain = chain([CellSpec::delay(MS_NS)], 1);
    chain.push(0, Run::full(0, 3));
    assert_eq!(chain.held().packets, 3);
    assert!(chain.pop(MS_NS - 1).is_none());
    assert!(chain.pop(MS_NS).is_some());
}

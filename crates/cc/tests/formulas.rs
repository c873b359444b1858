// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reno, AIMD and Scalable against their formulas.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use fatpath_cc::{Control, Law, Start};
use proptest::prelude::*;
use support::{avoiding, lose, mean_window, recovery_trips, round_trip};

/// Seed 002, "Variance and Convergence": a, b, recovery, halving and doubling in round trips.
const SCALABLE_TABLE: [(f64, f64, f64, f64, f64); 4] = [
    (1.0 / 25.0, 1.0 / 2.0, 17.7, 1.0, 17.7),
    (1.0 / 50.0, 1.0 / 4.0, 14.5, 2.41, 35.0),
    (1.0 / 100.0, 1.0 / 8.0, 13.4, 5.19, 69.7),
    (1.0 / 200.0, 1.0 / 16.0, 12.9, 10.7, 139.0),
];

fn scalable(a: f64, b: f64) -> Law {
    let law = Law::named("scalable").unwrap();
    law.with_all(&[("a", a), ("b", b)]).unwrap()
}

/// Round trips to grow from one window to another: the last one counts by the part that was needed.
fn growth_trips(law: Law, from_pkts: u32, to_pkts: u32) -> f64 {
    let mut control = Control::new(law, Start::default());
    let mut window = avoiding(from_pkts);
    let mut trips = 0.0;
    loop {
        let before = window.cwnd_pkts;
        round_trip(&mut control, &mut window, 1000);
        if window.cwnd_pkts >= to_pkts {
            let needed = (f64::from(to_pkts) / f64::from(before)).ln();
            return trips + needed / (f64::from(window.cwnd_pkts) / f64::from(before)).ln();
        }
        trips += 1.0;
    }
}

/// log(1 - b) / log(1 + a), whatever the window. An acknowledged window grows by a factor between
/// 1 + a and e^a, for the window that is acknowledged grows meanwhile.
#[test]
fn scalable_recovers_in_the_round_trips_of_its_table() {
    for (a, b, recovery, _, _) in SCALABLE_TABLE {
        let formula = (1.0 - b).ln() / (1.0 + a).ln();
        assert!((-formula - recovery).abs() < 0.06, "the table's {recovery}");
        for window_pkts in [10_000, 1_000_000] {
            let kept = (f64::from(window_pkts) * (1.0 - b)) as u32;
            let trips = growth_trips(scalable(a, b), kept, window_pkts);
            assert!(
                (trips / recovery - 1.0).abs() < 0.03,
                "({a}, {b}): {trips} of {recovery}"
            );
        }
    }
}

#[test]
fn scalable_doubles_in_the_round_trips_of_its_table() {
    for (a, b, _, _, doubling) in SCALABLE_TABLE {
        let trips = growth_trips(scalable(a, b), 100_000, 200_000);
        assert!(
            (trips / doubling - 1.0).abs() < 0.03,
            "({a}, {b}): {trips} of {doubling}"
        );
    }
}

/// The rate halves in log(1/2) / log(1 - b) round trips with a loss each.
#[test]
fn scalable_halves_in_the_round_trips_of_its_table() {
    for (a, b, _, halving, _) in SCALABLE_TABLE {
        let mut control = Control::new(scalable(a, b), Start::default());
        let mut window = avoiding(1 << 30);
        let trips = halving.ceil() as u32;
        let (mut before, mut after) = (0.0, f64::from(window.cwnd_pkts));
        for _ in 0..trips {
            lose(&mut control, &mut window);
            (before, after) = (after, f64::from(window.cwnd_pkts));
        }
        let half = f64::from(1 << 29);
        assert!(
            after <= half && half < before,
            "({a}, {b}): {after} after {trips}"
        );
        let needed = (half / before).ln() / (after / before).ln();
        let measured = f64::from(trips - 1) + needed;
        assert!(
            (measured - halving).abs() < 0.05,
            "({a}, {b}): {measured} of {halving}"
        );
    }
}

/// Seed 002, "Fairness": at or below the legacy window the traditional algorithm.
#[test]
fn scalable_is_reno_up_to_its_legacy_window() {
    let law = scalable(0.01, 0.125);
    for cwnd_pkts in [4, 10, 15] {
        let (mut scalable, mut reno) = (avoiding(cwnd_pkts), avoiding(cwnd_pkts));
        let mut control = Control::new(law, Start::default());
        round_trip(&mut control, &mut scalable, 1);
        round_trip(&mut Control::new(Law::RENO, Start::default()), &mut reno, 1);
        assert_eq!(scalable.cwnd_pkts, reno.cwnd_pkts);
        lose(&mut control, &mut scalable);
        assert_eq!(scalable.cwnd_pkts, cwnd_pkts.div_ceil(2));
    }
    let mut control = Control::new(law, Start::default());
    let mut window = avoiding(16);
    lose(&mut control, &mut window);
    assert_eq!(window.cwnd_pkts, 8);
    let mut window = avoiding(24);
    lose(&mut control, &mut window);
    assert_eq!(window.cwnd_pkts, 21);
}

#[test]
fn aimd_recovers_in_w_b_over_a_round_trips() {
    for (a, b) in [(1.0, 0.5), (4.0, 0.125), (6.0, 0.3)] {
        let trips = recovery_trips(Law::aimd(a, b).unwrap(), 1000);
        let expected = b * 1000.0 / a;
        assert!(
            (f64::from(trips) - expected).abs() <= 2.0,
            "({a}, {b}): {trips} round trips"
        );
    }
}

/// Seed 002's table for 200 ms: half of the window at a segment a round trip.
#[test]
fn reno_recovers_in_half_of_the_window_round_trips() {
    for window_pkts in [170u32, 1700, 17_000] {
        let trips = recovery_trips(Law::RENO, window_pkts);
        assert!(
            trips.abs_diff(window_pkts / 2) <= 1,
            "{window_pkts}: {trips}"
        );
    }
}

/// Seed 003's mean sqrt(a (2 - b) / (2 b p)), over time; Reno's is 1.22 / sqrt(p).
#[test]
fn the_mean_window_is_that_of_the_formula() {
    for (a, b) in [(1.0, 0.5), (4.0, 0.125), (6.0, 0.3), (10.0, 0.31)] {
        let p: f64 = 1e-4;
        let mean = mean_window(Law::aimd(a, b).unwrap(), p);
        let expected = (a * (2.0 - b) / (2.0 * b * p)).sqrt();
        assert!(
            (mean / expected - 1.0).abs() < 0.05,
            "({a}, {b}): {mean} for {expected}"
        );
    }
    let mean = mean_window(Law::RENO, 1e-4);
    assert!(
        (mean / (1.5f64 / 1e-4).sqrt() - 1.0).abs() < 0.05,
        "Reno: {mean}"
    );
}

/// 1/p segments between losses add a/p: the window peaks at a / (b p), and as it grows exponentially
/// its mean over time is that times b / -log(1 - b).
#[test]
fn the_mean_window_of_scalable_is_that_of_its_sawtooth() {
    for (a, b) in [(0.01, 0.125), (0.02, 0.25)] {
        let p = 1e-5;
        let mean = mean_window(scalable(a, b), p);
        let expected = a / (-p * (1.0 - b).ln());
        assert!(
            (mean / expected - 1.0).abs() < 0.05,
            "({a}, {b}): {mean} for {expected}"
        );
    }
}

#[test]
fn reno_is_aimd_of_1_and_a_half() {
    let mut reno = Control::new(Law::RENO, Start::default());
    let mut aimd = Control::new(Law::virtual_mss(1.0).unwrap(), Start::default());
    let (mut one, mut other) = (avoiding(777), avoiding(777));
    for round in 0..1000 {
        round_trip(&mut reno, &mut one, 3);
        round_trip(&mut aimd, &mut other, 3);
        if round % 97 == 0 {
            lose(&mut reno, &mut one);
            lose(&mut aimd, &mut other);
        }
        assert_eq!(one.cwnd_pkts, other.cwnd_pkts);
    }
}

#[test]
fn n_parallel_streams_are_n_and_1_over_2n() {
    assert_eq!(
        Law::parallel_streams(4).unwrap(),
        Law::aimd(4.0, 0.125).unwrap()
    );
    assert!(Law::parallel_streams(0).is_err());
}

proptest! {
    /// One ACK of many segments does what many ACKs do, to within the window's own growth meanwhile.
    #[test]
    fn how_acks_are_merged_hardly_counts(cwnd in 50u32..20_000, a in 0.1f64..100.0) {
        let mut control = Control::new(Law::virtual_mss(a).unwrap(), Start::default());
        let (mut one_by_one, mut at_once) = (avoiding(cwnd), avoiding(cwnd));
        round_trip(&mut control, &mut one_by_one, 1);
        round_trip(&mut control, &mut at_once, 64);
        let slack = 2.0 + a * a / f64::from(cwnd);
        for window in [one_by_one, at_once] {
            prop_assert!((f64::from(window.cwnd_pkts - cwnd) - a).abs() <= slack);
        }
    }
}

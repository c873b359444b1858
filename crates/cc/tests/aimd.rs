// SPDX-License-Identifier: MIT OR Apache-2.0
//! AIMD(a, b) against its formulas, and its invariants under any order of events.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

use fatpath_cc::{Aimd, Window};
use proptest::prelude::*;

/// A window in congestion avoidance.
fn avoiding(cwnd_pkts: u32) -> Window {
    Window {
        ssthresh_pkts: 2,
        ..Window::new(cwnd_pkts)
    }
}

/// Acknowledges a whole window, `acked` segments at a time.
fn round_trip(law: &Aimd, window: &mut Window, acked: u32) {
    let mut left = window.cwnd_pkts;
    while left > 0 {
        let now = left.min(acked);
        law.acked(window, now);
        left -= now;
    }
}

#[test]
fn reno_doubles_in_slow_start_and_stops_at_ssthresh() {
    let mut window = Window {
        ssthresh_pkts: 32,
        ..Window::new(10)
    };
    Aimd::RENO.acked(&mut window, 10);
    assert_eq!(window.cwnd_pkts, 20);
    Aimd::RENO.acked(&mut window, 12);
    assert_eq!(window.cwnd_pkts, 32);
}

#[test]
fn what_slow_start_leaves_over_counts_for_congestion_avoidance() {
    let mut window = Window {
        ssthresh_pkts: 32,
        ..Window::new(30)
    };
    Aimd::new(32_000, 500).unwrap().acked(&mut window, 3);
    assert_eq!(window.cwnd_pkts, 33);
}

#[test]
fn recovery_to_the_old_window_takes_w_b_over_a_round_trips() {
    for (a, b) in [(1, 500), (4, 125), (6, 300)] {
        let law = Aimd::new(a * 1000, b).unwrap();
        let mut window = avoiding(1000);
        window.cwnd_pkts = law.ssthresh(&mut window);
        assert_eq!(window.cwnd_pkts, 1000 - b);
        let mut trips = 0;
        while window.cwnd_pkts < 1000 {
            round_trip(&law, &mut window, 2);
            trips += 1;
        }
        let expected = f64::from(b) / f64::from(a);
        assert!(
            (f64::from(trips) - expected).abs() <= 2.0,
            "({a}, {b}): {trips} round trips"
        );
    }
}

/// A deterministic sawtooth, a loss every 1/p segments: seed 003's mean sqrt(a(2-b)/(2bp)).
#[test]
fn mean_of_the_sawtooth_is_that_of_the_formula() {
    let p = 0.001;
    for (a, b) in [(1.0, 0.5), (4.0, 0.125), (6.0, 0.3)] {
        let law = Aimd::new((a * 1e3) as u32, (b * 1e3) as u32).unwrap();
        let mut window = avoiding(10);
        let (mut since_loss, mut sum, mut trips) = (0.0, 0.0, 0.0);
        for trip in 0..20_000 {
            let sent = f64::from(window.cwnd_pkts);
            round_trip(&law, &mut window, 1);
            since_loss += sent;
            if since_loss >= 1.0 / p {
                window.cwnd_pkts = law.ssthresh(&mut window);
                since_loss = 0.0;
            }
            if trip > 2_000 {
                sum += sent;
                trips += 1.0;
            }
        }
        let expected = (a * (2.0 - b) / (2.0 * b * p)).sqrt();
        let error = sum / trips / expected - 1.0;
        assert!(
            error.abs() < 0.25,
            "({a}, {b}): {} for {expected}",
            sum / trips
        );
    }
}

#[test]
fn parameters_out_of_range_are_refused() {
    for (a, b) in [
        (0, 500),
        (9, 500),
        (10_000_001, 500),
        (1000, 0),
        (1000, 1000),
    ] {
        assert_eq!(Aimd::new(a, b), None, "({a}, {b})");
    }
}

#[derive(Clone, Debug)]
enum Event {
    Acked(u32),
    Loss,
    Timeout,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        8 => (0u32..70_000).prop_map(Event::Acked),
        1 => any::<u32>().prop_map(Event::Acked),
        1 => Just(Event::Loss),
        1 => Just(Event::Timeout),
    ];
    prop::collection::vec(event, 1..200)
}

proptest! {
    #[test]
    fn any_order_of_events_keeps_the_window_sane(
        a in 10u32..=10_000_000,
        b in 1u32..1000,
        start in 1u32..=u32::MAX,
        clamp in 2u32..=u32::MAX,
        events in events(),
    ) {
        let law = Aimd::new(a, b).unwrap();
        let mut window = Window { clamp_pkts: clamp, ..Window::new(start.min(clamp)) };
        for event in events {
            let before = window;
            match event {
                Event::Acked(n) => law.acked(&mut window, n),
                Event::Loss => {
                    window.ssthresh_pkts = law.ssthresh(&mut window);
                    window.cwnd_pkts = window.ssthresh_pkts;
                    prop_assert!(window.cwnd_pkts >= 2);
                    prop_assert!(window.cwnd_pkts <= before.cwnd_pkts.max(2));
                    continue;
                }
                Event::Timeout => {
                    window.ssthresh_pkts = law.ssthresh(&mut window);
                    window.cwnd_pkts = 1;
                    continue;
                }
            }
            prop_assert!(window.cwnd_pkts >= before.cwnd_pkts, "shrank on an ACK");
            prop_assert!(window.cwnd_pkts <= clamp.max(before.cwnd_pkts), "grew past the clamp");
            prop_assert_eq!(window.ssthresh_pkts, before.ssthresh_pkts);
            // What is kept is less than one segment's worth, so no growth is lost or made up.
            prop_assert!(window.credit <= u64::from(window.cwnd_pkts) * 1000);
        }
    }

    /// One ACK of n segments does what n ACKs do, to within the window's own growth meanwhile.
    #[test]
    fn how_acks_are_merged_hardly_counts(cwnd in 50u32..20_000, a in 100u32..100_000) {
        let law = Aimd::new(a, 500).unwrap();
        let (mut one_by_one, mut at_once) = (avoiding(cwnd), avoiding(cwnd));
        round_trip(&law, &mut one_by_one, 1);
        round_trip(&law, &mut at_once, 64);
        let grown = |window: Window| f64::from(window.cwnd_pkts - cwnd);
        let expected = f64::from(a) / 1000.0;
        let slack = 2.0 + expected * expected / f64::from(cwnd);
        prop_assert!((grown(one_by_one) - expected).abs() <= slack);
        prop_assert!((grown(at_once) - expected).abs() <= slack);
    }
}

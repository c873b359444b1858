// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rude TCP: the fair window's slow start is the law's, and ends as the law's does.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use fatpath_cc::{Control, Law, RttSample, Rude, Start, Window, window_laws};
use support::rude::{Path, RTT_US};

/// The round trip of a window for which the path's queue begins at 200 segments, and the numbers of an
/// acknowledgement when `in_flight_pkts` are on their way.
fn measured(window: &Window, acked_seq: u32, in_flight_pkts: u32) -> RttSample {
    RttSample {
        rtt_us: RTT_US + 500 * window.cwnd_pkts.saturating_sub(200),
        acked_seq,
        next_seq: acked_seq.wrapping_add(in_flight_pkts),
    }
}

/// Round trips and the window until slow start is over; of the law alone, and of F beside `r_pkts`.
fn slow_start_alone(law: Law, start: Start) -> (u32, u32) {
    let (mut control, mut window) = (Control::new(law, start), Window::new(10));
    let (mut acked_seq, mut round_trips) = (0, 0);
    while window.cwnd_pkts < window.ssthresh_pkts && window.cwnd_pkts < 10_000 {
        for _ in 0..window.cwnd_pkts {
            acked_seq += 1;
            let sample = measured(&window, acked_seq, window.cwnd_pkts);
            control.rtt_sample(&mut window, &sample);
            control.acked(&mut window, 1);
        }
        round_trips += 1;
    }
    (round_trips, window.cwnd_pkts)
}

fn slow_start_beside(law: Law, start: Start, r_pkts: u32) -> (u32, u32) {
    let mut path = Path::new(r_pkts, 2);
    let mut rude = Rude::new(law, start, &Window::new(10), &path.now);
    let mut round_trips = 0;
    while rude.fair().cwnd_pkts < rude.fair().ssthresh_pkts && rude.fair().cwnd_pkts < 10_000 {
        for _ in 0..r_pkts / 2 {
            let now = path.ack(0.0);
            let sample = measured(rude.fair(), now.delivered_pkts, now.in_flight_pkts);
            rude.acked(&now, &sample);
        }
        round_trips += 1;
    }
    (round_trips, rude.fair().cwnd_pkts)
}

/// RFC 9406, of which F hears as the law would alone: a rise ends slow start, not a flow's own burst of ACKs.
#[test]
fn hystart_ends_the_fair_windows_slow_start_as_it_ends_the_laws() {
    let hystart = Start {
        hystart: true,
        ..Start::default()
    };
    for spec in window_laws() {
        let law = Law::named(spec.name).unwrap();
        let (alone_rounds, alone_pkts) = slow_start_alone(law, hystart);
        for r_pkts in [5_000, 20_000] {
            let (rounds, pkts) = slow_start_beside(law, hystart, r_pkts);
            let ratio = f64::from(pkts) / f64::from(alone_pkts);
            assert!(
                (0.8..1.25).contains(&ratio),
                "{law:?}: {pkts} of {alone_pkts}"
            );
            assert!(
                rounds.abs_diff(alone_rounds) <= 1,
                "{rounds} of {alone_rounds}"
            );
        }
        let (_, without_pkts) = slow_start_beside(law, Start::default(), 20_000);
        assert!(without_pkts >= 10_000 && alone_pkts < 2_000, "{alone_pkts}");
    }
}

/// Going polite, F's slow start is its own, and ends as its law's.
#[test]
fn hystart_ends_the_slow_start_of_a_flow_that_goes_polite() {
    let start = Start {
        hystart: true,
        ..Start::default()
    };
    let path = Path::new(20_000, 2);
    let mut rude = Rude::new(Law::RENO, start, &Window::new(10), &path.now);
    let mut r_pkts = rude.off_nicely(20_000);
    let mut acked_seq = 0;
    while rude.fair().cwnd_pkts < rude.fair().ssthresh_pkts {
        acked_seq += 1;
        let sample = measured(rude.fair(), acked_seq, r_pkts);
        r_pkts = rude.shadow_acked(&sample, r_pkts, r_pkts, 1);
        assert!(rude.fair().cwnd_pkts < 2_500, "after {acked_seq}");
    }
    assert_eq!(r_pkts, 20_000, "R grows with the law's growth of F alone");
}

/// Without HyStart++, losses or a threshold: twice as much a round trip.
#[test]
fn slow_start_is_twofold_a_round_trip() {
    let (round_trips, pkts) = slow_start_beside(Law::RENO, Start::default(), 40_000);
    assert_eq!(slow_start_alone(Law::RENO, Start::default()), (10, 10_240));
    assert!((10..=11).contains(&round_trips), "{round_trips}");
    assert!(pkts >= 10_000);
}

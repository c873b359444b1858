// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rude TCP: the fair window is the law's, Table 1 of its paper, and the three ways of turning it off.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use fatpath_cc::{Law, Rude, RudeNow, Start, Window, window_laws};
use proptest::prelude::*;
use support::rude::{NO_RTT, Path, RTT_US};
use support::{avoiding, mean_window};

/// The mean of F over `acks` acknowledgements, after half as many for it to settle.
fn mean_fair_pkts(law: Law, path: &mut Path, p: f64, acks: u32) -> f64 {
    let mut rude = Rude::new(law, Start::default(), &avoiding(10), &path.now);
    let mut sum = 0.0;
    for ack in 0..acks + acks / 2 {
        rude.acked(&path.ack(p), NO_RTT);
        if ack >= acks / 2 {
            sum += f64::from(rude.fair().cwnd_pkts);
        }
    }
    sum / f64::from(acks)
}

/// sqrt(1.5 / p), Mathis et al., "The macroscopic behavior of the TCP congestion avoidance algorithm"
/// (1997), of a flow that really has 10 to 1000 times as much in flight.
#[test]
fn the_fair_window_of_reno_has_its_mean_whatever_the_flow_really_sends() {
    for (p, r_pkts) in [
        (0.01, 300),
        (0.01, 8_000),
        (0.001, 8_000),
        (0.0001, 8_000),
        (0.001, 40_000),
    ] {
        let formula = (1.5f64 / p).sqrt();
        let mean = mean_fair_pkts(Law::RENO, &mut Path::new(r_pkts, 2), p, 4_000_000);
        let ratio = mean / formula;
        assert!((ratio - 1.0).abs() < 0.2, "{p} of {r_pkts}: {ratio}");
    }
}

#[test]
fn the_fair_window_of_every_law_has_the_mean_that_the_law_has_alone() {
    for spec in window_laws() {
        let law = Law::named(spec.name).unwrap();
        for p in [0.01, 0.001] {
            let alone = mean_window(law, p);
            let beside = mean_fair_pkts(law, &mut Path::new(20_000, 4), p, 4_000_000);
            let ratio = beside / alone;
            assert!((ratio - 1.0).abs() < 0.2, "{} at {p}: {ratio}", spec.name);
        }
    }
}

#[test]
fn a_burst_of_losses_is_one_congestion_event_a_round_trip() {
    let mut path = Path::new(1000, 10);
    let mut rude = Rude::new(Law::RENO, Start::default(), &avoiding(400), &path.now);
    for _ in 0..20 {
        rude.acked(&path.ack(1.0), NO_RTT);
    }
    assert_eq!(rude.fair().cwnd_pkts, 200);
    path.now.now_us += u64::from(RTT_US);
    rude.acked(&path.ack(1.0), NO_RTT);
    assert_eq!(rude.fair().cwnd_pkts, 100);
}

#[test]
fn a_fair_window_that_the_flow_does_not_fill_does_not_grow() {
    let mut path = Path::new(100, 2);
    let mut rude = Rude::new(Law::RENO, Start::default(), &avoiding(101), &path.now);
    for _ in 0..1000 {
        rude.acked(&path.ack(0.0), NO_RTT);
    }
    assert_eq!(rude.fair().cwnd_pkts, 101);
    let mut rude = Rude::new(Law::RENO, Start::default(), &Window::new(10), &path.now);
    for _ in 0..1000 {
        rude.acked(&path.ack(0.0), NO_RTT);
    }
    assert!((100..=200).contains(&rude.fair().cwnd_pkts), "slow start");
}

fn begun(window: &Window, path: &Path) -> Rude {
    Rude::new(Law::RENO, Start::default(), window, &path.now)
}

/// A window and its threshold.
fn window_of(rude: &Rude) -> (u32, u32) {
    (rude.fair().cwnd_pkts, rude.fair().ssthresh_pkts)
}

#[test]
fn congestion_without_a_loss_is_an_event_too() {
    let mut path = Path::new(1000, 10);
    let mut rude = begun(&avoiding(400), &path);
    rude.congested(&path.now);
    rude.congested(&path.now);
    assert_eq!(rude.fair().cwnd_pkts, 200, "one a round trip");
    path.now.now_us += u64::from(RTT_US);
    rude.congested(&path.now);
    assert_eq!(rude.fair().cwnd_pkts, 100);
}

/// RFC 5681, 3.1: half of what was in flight, held when the same segment is lost again; then slow start.
#[test]
fn a_timeout_is_one_event_and_has_one_threshold() {
    let mut path = Path::new(1000, 10);
    let mut rude = begun(&avoiding(400), &path);
    path.now.lost_pkts += 1000;
    path.now.in_flight_pkts = 0;
    rude.timed_out(&path.now);
    assert_eq!(window_of(&rude), (2, 200));
    path.now.lost_pkts += 1; // the retransmission
    rude.timed_out(&path.now);
    assert_eq!(window_of(&rude), (2, 200), "the same loss");
    path.now.in_flight_pkts = 1000;
    for _ in 0..1000 {
        path.now.now_us += u64::from(RTT_US) / 1000;
        path.now.delivered_pkts += 10;
        rude.acked(&path.now, NO_RTT);
    }
    assert!(rude.fair().cwnd_pkts >= 20, "ten round trips of slow start");
    assert_eq!(rude.fair().ssthresh_pkts, 200);
}

#[test]
fn what_was_no_loss_is_undone_once() {
    let path = Path::new(1000, 10);
    let mut rude = begun(&avoiding(400), &path);
    rude.recovery_begins();
    rude.timed_out(&path.now);
    rude.undone();
    assert_eq!(rude.fair().cwnd_pkts, 400);
    rude.undone();
    assert_eq!(rude.fair().cwnd_pkts, 400, "only once");
}

#[test]
fn an_undo_brings_nothing_back_that_was_lost_before() {
    let path = Path::new(1000, 10);
    let mut rude = begun(&avoiding(400), &path);
    rude.recovery_begins();
    rude.congested(&path.now);
    rude.recovery_begins();
    rude.undone();
    assert_eq!(rude.fair().cwnd_pkts, 200);
}

/// What the flow sent on the way to being polite was worked in there.
#[test]
fn a_flow_that_is_rude_again_counts_from_then_on() {
    let mut path = Path::new(1000, 10);
    let mut rude = begun(&avoiding(100), &path);
    rude.off_nicely(1000);
    path.now.delivered_pkts += 1_000_000;
    path.now.lost_pkts += 1_000_000;
    rude.resume(&path.now);
    rude.acked(&path.now, NO_RTT);
    assert_eq!(rude.fair().cwnd_pkts, 100);
}

/// Requests and answers tell nothing of the path: it is tried as the fair window would try it.
#[test]
fn a_first_rate_is_not_what_the_program_had_to_send() {
    let mut path = Path::new(1, 1);
    let mut rude = begun(&avoiding(100), &path);
    path.now.rate_is_app_limited = 1;
    for _ in 0..50 {
        let now = path.ack(0.0);
        rude.acked(&now, NO_RTT);
        let window_pkts = rude.pacing_bytes_per_s(&now, None) as f64 / 14_480.0;
        assert!(window_pkts > 100.0, "{window_pkts} a round trip");
    }
}

/// R is held by something else, say the peer's window: F catches up with what is in flight.
#[test]
fn a_window_that_is_not_in_use_is_not_converged_to() {
    let path = Path::new(1000, 10);
    let mut rude = begun(&avoiding(20), &path);
    assert_eq!(rude.off_nicely(1000), 1000);
    let mut round_trips = 0;
    while !rude.has_converged(100, 10) {
        assert_eq!(rude.shadow_acked(NO_RTT, 1000, 100, 100), 1000);
        round_trips += 1;
        assert!(round_trips <= 81);
    }
    assert!((99..=101).contains(&rude.fair().cwnd_pkts));
}

/// The paper's three cases, 3.2.
#[test]
fn three_ways_of_turning_off() {
    let path = Path::new(1000, 10);
    let slow_start = Window::new(400);
    let begin = |window| Rude::new(Law::RENO, Start::default(), window, &path.now);

    let mut rude = begin(&slow_start);
    rude.off_now(400);
    assert_eq!(
        *rude.fair(),
        slow_start,
        "no more in flight than F: just stop"
    );
    assert!(rude.has_converged(rude.fair().cwnd_pkts, 0));

    let mut rude = begin(&slow_start);
    rude.off_now(401);
    assert_eq!(rude.fair().cwnd_pkts, 400, "more: F, and no slow start");
    assert_eq!(rude.fair().ssthresh_pkts, 400);

    let mut rude = begin(&avoiding(400));
    assert_eq!(rude.off_nicely(300), 400, "nicely with less in flight");
    assert_eq!(rude.off_nicely(1000), 1000, "nicely with more");
    assert!(!rude.has_converged(1000, 10));
    assert!(rude.has_converged(404, 10), "1 % of 400");
    assert!(!rude.has_converged(405, 10));
}

/// A path on which R of the paper's Figure 4 is 90 % of 8333 segments, F a third of the tenth that is
/// left, and both lose whenever R fills the path: so many congestion events, so many round trips.
#[test]
fn figure_4_converges() {
    let now = Path::new(7500, 2).now;
    let mut rude = Rude::new(Law::RENO, Start::default(), &avoiding(278), &now);
    let mut r_pkts = rude.off_nicely(7500);
    let mut round_trips = 0;
    while !rude.has_converged(r_pkts, 10) {
        round_trips += 1;
        r_pkts = match r_pkts > 8333 {
            true => rude.shadow_ssthresh(r_pkts),
            false => rude.shadow_acked(NO_RTT, r_pkts, r_pkts, r_pkts),
        };
        assert!(round_trips < 100_000);
    }
    // R - F = 7222 has to be halved 8 times, from its 1 % of F >= 4124 = R / 2: 833 + 8 x 4167.
    assert!((27_000..34_500).contains(&round_trips), "{round_trips}");
}

fn any_law() -> impl Strategy<Value = Law> {
    prop::sample::select(window_laws().map(|spec| spec.name).collect::<Vec<_>>())
        .prop_map(|name| Law::named(name).unwrap())
}

fn any_now() -> impl Strategy<Value = RudeNow> {
    let small = || prop_oneof![0u32..100_000, any::<u32>()];
    let times = (any::<u64>(), small(), small());
    let counts = (small(), small(), small(), small(), 2u32..=u32::MAX);
    let sizes = (1u32..70_000, 1u32..70_000, any::<u64>(), 0u32..2);
    (times, counts, sizes).prop_map(|(times, counts, sizes)| RudeNow {
        now_us: times.0,
        srtt_us: times.1,
        min_rtt_us: times.2,
        delivered_pkts: counts.0,
        lost_pkts: counts.1,
        in_flight_pkts: counts.2,
        peer_window_pkts: counts.3,
        max_window_pkts: counts.4,
        mss_bytes: sizes.0,
        wire_bytes: sizes.1,
        rate_bytes_per_s: sizes.2 >> (sizes.2 % 64),
        rate_is_app_limited: sizes.3,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever it is told: F from 2 to the clamp (or what it was), the window never below what is in
    /// flight, and always some rate.
    #[test]
    fn any_order_of_acknowledgements_keeps_it_sane(
        law in any_law(),
        cwnd_pkts in prop_oneof![2u32..1000, 2u32..=1 << 31],
        clamp_pkts in prop_oneof![2u32..100_000, 2u32..=u32::MAX],
        share in prop_oneof![Just(None), (1u64..1 << 40).prop_map(Some)],
        events in prop::collection::vec((any_now(), 0u8..20), 1..300),
    ) {
        let polite = Window { clamp_pkts, ..Window::new(cwnd_pkts.min(clamp_pkts)) };
        let mut rude = Rude::new(law, Start::default(), &polite, &events[0].0);
        for (now, kind) in &events {
            match kind {
                0 => rude.timed_out(now),
                1 => rude.undone(),
                2 => { rude.shadow_acked(NO_RTT, now.peer_window_pkts, now.in_flight_pkts, now.delivered_pkts); }
                3 => { rude.shadow_ssthresh(now.in_flight_pkts); }
                4 => rude.congested(now),
                5 => rude.recovery_begins(),
                _ => rude.acked(now, NO_RTT),
            }
            let fair_pkts = rude.fair().cwnd_pkts;
            prop_assert!(fair_pkts >= 2 && fair_pkts <= clamp_pkts, "{fair_pkts}");
            let cwnd_pkts = Rude::cwnd_pkts(now);
            let held_pkts = now.in_flight_pkts.saturating_add(1).min(now.max_window_pkts);
            prop_assert!(cwnd_pkts >= held_pkts && cwnd_pkts <= now.max_window_pkts);
            let pacing = rude.pacing_bytes_per_s(now, share);
            prop_assert!(pacing > 0);
            prop_assert!(share.is_none_or(|share| pacing == share));
        }
    }

    /// 1 Tb/s with 1 s of round trip is 86 million segments: what is paced is exact there too.
    #[test]
    fn no_rate_overflows(
        rate_bytes_per_s in 1_000_000u64..1 << 40,
        srtt_us in 10_000u32..2_000_000,
    ) {
        let mut now = RudeNow { rate_bytes_per_s, srtt_us, in_flight_pkts: 1, ..Path::new(10, 1).now };
        let mut rude = Rude::new(Law::RENO, Start::default(), &avoiding(10), &now);
        rude.acked(&now, NO_RTT);
        let start_up = u128::from(rate_bytes_per_s) * 2885 / 1000;
        prop_assert_eq!(u128::from(rude.pacing_bytes_per_s(&now, None)), start_up);
        for _ in 0..16 {
            now.now_us += u64::from(srtt_us);
            now.delivered_pkts += 1000;
            rude.acked(&now, NO_RTT);
        }
        let pacing = rude.pacing_bytes_per_s(&now, None) as f64 / rate_bytes_per_s as f64;
        prop_assert!((0.94..1.11).contains(&pacing), "{}", pacing);
    }

    /// Table 1, additive increase: R - F stays, (R - F) / F falls.
    #[test]
    fn an_increase_of_both_leaves_their_difference(
        law in any_law(),
        fair_pkts in 2u32..1 << 20,
        more_pkts in 1u32..1 << 24,
        acked in prop::collection::vec(1u32..100_000, 1..20),
    ) {
        let now = Path::new(10, 1).now;
        let mut rude = Rude::new(law, Start::default(), &avoiding(fair_pkts), &now);
        let first = rude.off_nicely(fair_pkts + more_pkts);
        let mut r_pkts = first;
        for acked_pkts in acked {
            r_pkts = rude.shadow_acked(NO_RTT, r_pkts, r_pkts, acked_pkts);
        }
        prop_assert!(r_pkts >= first);
        prop_assert_eq!(r_pkts - rude.fair().cwnd_pkts, more_pkts);
    }

    /// Table 1, multiplicative decrease: R - F falls by the factor, R / F stays; all by whole segments.
    #[test]
    fn a_decrease_of_both_leaves_their_ratio(
        law in any_law(),
        fair_pkts in 8u32..1 << 20,
        more_pkts in 1u32..1 << 24,
    ) {
        let now = Path::new(10, 1).now;
        let mut rude = Rude::new(law, Start::default(), &avoiding(fair_pkts), &now);
        let before = rude.off_nicely(fair_pkts + more_pkts);
        let after = rude.shadow_ssthresh(before);
        let fair_after = rude.fair().cwnd_pkts;
        prop_assert!(after >= fair_after);
        prop_assert!(after - fair_after < more_pkts || more_pkts <= 1);
        let exact = f64::from(before) * f64::from(fair_after) / f64::from(fair_pkts);
        prop_assert!((f64::from(after) - exact).abs() <= 1.0, "{} of {}", after, exact);
    }

    /// F cannot fall below its least, R has to.
    #[test]
    fn every_decrease_is_one_of_the_real_window(law in any_law(), r_pkts in 100u32..1 << 24) {
        let now = Path::new(10, 1).now;
        let mut rude = Rude::new(law, Start::default(), &avoiding(2), &now);
        let real = rude.off_nicely(r_pkts);
        let after = rude.shadow_ssthresh(real);
        prop_assert!(after < r_pkts && after >= r_pkts / 2, "{} of {}", after, r_pkts);
    }

    /// F in slow start catches up by itself.
    #[test]
    fn slow_start_is_the_fair_windows_own(r_pkts in 100u32..1 << 20) {
        let now = Path::new(10, 1).now;
        let mut rude = Rude::new(Law::RENO, Start::default(), &Window::new(10), &now);
        let mut round_trips = 0;
        while !rude.has_converged(r_pkts, 10) {
            prop_assert_eq!(rude.shadow_acked(NO_RTT, r_pkts, r_pkts, r_pkts), r_pkts);
            round_trips += 1;
            prop_assert!(round_trips <= 20);
        }
    }
}

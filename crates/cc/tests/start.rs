// SPDX-License-Identifier: MIT OR Apache-2.0
//! What all laws share: slow start and its limited form, HyStart++, paced starts, idle restarts.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use fatpath_cc::{Control, Idle, Law, PathNow, Start, Window, window_laws};
use support::rounds::{Rounds, begun};
use support::{lose, round_trip};

/// 100 ms, segments of 1448 bytes.
const PATH: PathNow = PathNow {
    srtt_us: 100_000,
    mss_bytes: 1448,
};

fn every_law() -> impl Iterator<Item = Law> {
    window_laws().map(|spec| Law::named(spec.name).unwrap())
}

#[test]
fn slow_start_doubles_and_stops_at_ssthresh() {
    for law in every_law() {
        let start = Start {
            initial_ssthresh_pkts: 32,
            ..Start::default()
        };
        let (mut control, mut window) = begun(law, start);
        control.acked(&mut window, 10);
        assert_eq!(window.cwnd_pkts, 20, "{law}");
        control.acked(&mut window, 12);
        assert_eq!(window.cwnd_pkts, 32, "{law}");
    }
}

#[test]
fn what_slow_start_leaves_over_counts_for_congestion_avoidance() {
    let mut control = Control::new(Law::virtual_mss(32.0).unwrap(), Start::default());
    let mut window = Window {
        ssthresh_pkts: 32,
        ..Window::new(30)
    };
    control.acked(&mut window, 3);
    assert_eq!(window.cwnd_pkts, 33);
}

/// RFC 3742, 2: cwnd / K a round trip, K = int(cwnd / (0.5 max_ssthresh)), which is about half of
/// max_ssthresh; K rises by one or two while the window grows.
#[test]
fn limited_slow_start_adds_half_of_max_ssthresh_a_round_trip() {
    for law in every_law() {
        for acked in [1, 2, 64] {
            let start = Start {
                max_ssthresh_pkts: 100,
                ..Start::default()
            };
            let (mut control, mut window) = begun(law, start);
            while window.cwnd_pkts <= 100 {
                round_trip(&mut control, &mut window, acked);
            }
            for _ in 0..150 {
                let before = window.cwnd_pkts;
                let k = before / 50;
                round_trip(&mut control, &mut window, acked);
                let grown = window.cwnd_pkts - before;
                let expected = before / (k + 2)..=before / k + 1;
                assert!(expected.contains(&grown), "{law}: {grown} at {before}");
            }
        }
    }
}

/// RFC 3742, 3: "it takes: log(max_ssthresh) + (cwnd - max_ssthresh)/(max_ssthresh/2) round-trip times".
#[test]
fn limited_slow_start_takes_the_round_trips_of_rfc_3742() {
    let start = Start {
        max_ssthresh_pkts: 100,
        ..Start::default()
    };
    let (mut control, mut window) = begun(Law::RENO, start);
    window.cwnd_pkts = 1;
    let mut trips = 0.0;
    while window.cwnd_pkts < 10_000 {
        round_trip(&mut control, &mut window, 1);
        trips += 1.0;
    }
    let expected = 100f64.log2() + (10_000.0 - 100.0) / 50.0;
    assert!(
        (trips / expected - 1.0).abs() < 0.05,
        "{trips} for {expected}"
    );
}

#[test]
fn limited_slow_start_counts_each_segment_by_its_k() {
    let start = Start {
        max_ssthresh_pkts: 100,
        ..Start::default()
    };
    // K = int(cwnd / (0.5 max_ssthresh)): 2 at 101 to 149, 3 at 150.
    for (cwnd_pkts, k) in [(101, 2), (149, 2), (150, 3), (199, 3), (200, 4), (1000, 20)] {
        let (mut control, mut window) = begun(Law::RENO, start);
        window.cwnd_pkts = cwnd_pkts;
        for _ in 1..k {
            control.acked(&mut window, 1);
        }
        assert_eq!(window.cwnd_pkts, cwnd_pkts, "before the {k}th");
        // 1/K is rounded down to 2^-32: one more segment pays for it.
        control.acked(&mut window, 1);
        if window.cwnd_pkts == cwnd_pkts {
            control.acked(&mut window, 1);
        }
        assert_eq!(window.cwnd_pkts, cwnd_pkts + 1, "at the {k}th");
    }
}

/// RFC 9406, 4.2: the rise is an eighth of the last round's minimum, 4 to 16 ms; five rounds of
/// conservative slow start, which grows by a quarter, follow; then congestion avoidance.
#[test]
fn hystart_leaves_slow_start_when_the_delay_rises() {
    for law in every_law() {
        for (base_us, rise_us) in [(10_000, 4_000), (80_000, 10_000), (400_000, 16_000)] {
            let mut rounds = Rounds::of(law);
            for _ in 0..3 {
                rounds.round(base_us);
            }
            assert_eq!(
                rounds.window.cwnd_pkts, 80,
                "{law}: it doubles while the delay stays"
            );
            rounds.round(base_us + rise_us - 1);
            assert_eq!(
                rounds.window.cwnd_pkts, 160,
                "{law}: just below the threshold"
            );
            // The base is now that of the round before.
            let base_us = base_us + rise_us - 1;
            let rise_us = (base_us / 8).clamp(4_000, 16_000);
            rounds.round(base_us + rise_us);
            // Eight samples of the round are needed to see the rise, and a round begins some
            // acknowledgements after the window of before is through.
            let conservative = rounds.window.cwnd_pkts;
            assert!(conservative < 160 + 24 + 160 / 4, "{law}: {conservative}");
            for _ in 0..4 {
                assert!(rounds.window.in_slow_start(), "{law}: five rounds");
                rounds.round(base_us + rise_us);
            }
            // The fifth round ends with its last acknowledgement, which the next round's first tells.
            rounds.round(base_us + rise_us);
            assert!(!rounds.window.in_slow_start(), "{law}: {:?}", rounds.window);
            let grown = f64::from(rounds.window.ssthresh_pkts) / 160.0;
            assert!(
                (1.25f64.powi(4)..1.25f64.powi(6)).contains(&grown),
                "{law}: {grown}"
            );
        }
    }
}

/// What the RFC does not have.
#[test]
fn hystart_leaves_at_once_when_the_delay_rises_again() {
    for (first_us, still_us, again_us) in [(90_000, 101_249, 101_250), (300_000, 315_999, 316_000)]
    {
        let mut rounds = Rounds::of(Law::RENO);
        for rtt_us in [80_000, 80_000, 80_000, first_us, still_us, still_us] {
            rounds.round(rtt_us);
        }
        assert!(rounds.window.in_slow_start(), "less than the threshold");
        let before = rounds.window.cwnd_pkts;
        rounds.round(again_us);
        assert!(!rounds.window.in_slow_start());
        // Some acknowledgements pass before the round begins and has its samples.
        let grown = rounds.window.ssthresh_pkts - before;
        assert!(grown < before / 20 + 10, "{before} and {grown}");
    }
}

#[test]
fn hystart_takes_a_second_rise_with_few_segments_for_others() {
    for (cwnd_pkts, leaves) in [(15, false), (16, true)] {
        let mut rounds = Rounds::of(Law::RENO);
        rounds.window.cwnd_pkts = cwnd_pkts;
        for rtt_us in [80_000, 80_000, 90_000, 102_000, 102_000] {
            rounds.round_of_less(rtt_us);
        }
        assert_eq!(!rounds.window.in_slow_start(), leaves, "{cwnd_pkts}");
    }
}

#[test]
fn hystart_begins_anew_after_a_pause() {
    let mut rounds = Rounds::of(Law::RENO);
    for rtt_us in [80_000, 80_000, 80_000, 90_000] {
        rounds.round(rtt_us);
    }
    rounds
        .control
        .idle_restart(&mut rounds.window, 10_000_000, 300_000, 10);
    for cwnd_pkts in [20, 40, 80] {
        rounds.round(120_000);
        assert_eq!(rounds.window.cwnd_pkts, cwnd_pkts);
    }
}

#[test]
fn hystart_goes_back_to_slow_start_when_the_rise_was_not_real() {
    let mut rounds = Rounds::of(Law::RENO);
    for rtt_us in [50_000, 50_000, 60_000, 50_000] {
        rounds.round(rtt_us);
    }
    let before = rounds.window.cwnd_pkts;
    rounds.round(50_000);
    assert_eq!(rounds.window.cwnd_pkts, 2 * before);
}

#[test]
fn hystart_watches_the_first_slow_start_only() {
    let mut rounds = Rounds::of(Law::RENO);
    rounds.round(50_000);
    lose(&mut rounds.control, &mut rounds.window);
    rounds.window.cwnd_pkts = 8;
    rounds.window.ssthresh_pkts = 1000;
    for rtt_us in [50_000, 90_000, 90_000, 90_000] {
        rounds.round(rtt_us);
    }
    assert_eq!(rounds.window.cwnd_pkts, 128);
    assert_eq!(rounds.window.ssthresh_pkts, 1000);
}

#[test]
fn hystart_goes_on_after_a_spurious_loss() {
    let mut rounds = Rounds::of(Law::RENO);
    rounds.round(50_000);
    let prior = rounds.window;
    lose(&mut rounds.control, &mut rounds.window);
    let cwnd_pkts = rounds
        .control
        .undo_cwnd(&mut rounds.window, prior.cwnd_pkts);
    assert_eq!(cwnd_pkts, prior.cwnd_pkts);
    rounds.window.cwnd_pkts = cwnd_pkts;
    rounds.window.ssthresh_pkts = prior.ssthresh_pkts;
    for rtt_us in [50_000, 90_000, 90_000, 90_000, 90_000, 90_000, 90_000] {
        rounds.round(rtt_us);
    }
    assert!(!rounds.window.in_slow_start());
}

/// Seed 001, 3.2: ssthresh x MSS / RTT from the first segment to the first acknowledgement.
#[test]
fn a_given_rate_opens_the_window_at_the_first_segment() {
    for law in every_law() {
        let start = Start {
            initial_rate_bps: 250_000_000,
            ..Start::default()
        };
        let (mut control, mut window) = begun(law, start);
        let rate = control.transmission_starts(&mut window, &PATH).unwrap();
        let window_pkts = 250_000_000 / 8 / 10 / 1448;
        assert_eq!(window.cwnd_pkts, window_pkts);
        assert_eq!(window.ssthresh_pkts, window_pkts);
        let error = rate as f64 / (250e6 / 8.0) - 1.0;
        assert!(error.abs() < 1e-3, "{law}: {rate} bytes a second");
        // The data sufficed: congestion avoidance goes on from there.
        assert!(control.ack_arrived(&mut window, window_pkts));
        assert_eq!(window.cwnd_pkts, window_pkts);
        assert!(!window.in_slow_start());
        assert!(!control.ack_arrived(&mut window, window_pkts), "once only");
    }
}

/// RFC 9959: half of what is known is used at once, and slow start goes on from what was.
#[test]
fn a_start_at_half_of_the_rate_leaves_slow_start_to_the_known_threshold() {
    for law in every_law() {
        let start = Start {
            initial_rate_bps: 50_000_000,
            initial_ssthresh_pkts: 863,
            ..Start::default()
        };
        let (mut control, mut window) = begun(law, start);
        window.srtt_us = PATH.srtt_us;
        let rate = control.transmission_starts(&mut window, &PATH).unwrap();
        assert!(
            rate.abs_diff(50_000_000 / 8) < 50_000_000 / 8 / 100,
            "{law}"
        );
        assert_eq!(
            (window.cwnd_pkts, window.ssthresh_pkts),
            (431, 863),
            "{law}"
        );
        // A loss now is of what was sent.
        let mut lossy = (control.clone(), window);
        let ssthresh_pkts = lossy.0.ssthresh(&mut lossy.1, 45);
        assert!(ssthresh_pkts <= 45, "{law}: {ssthresh_pkts}");
        assert!(lossy.0.ack_arrived(&mut lossy.1, 45), "{law}");
        // The peer's first window let 45 segments go, its next one 135.
        let mut late = (control.clone(), window);
        for in_flight_pkts in [45, 135] {
            window.now_us += 100_000;
            assert!(!control.ack_arrived(&mut window, in_flight_pkts), "{law}");
            assert_eq!(
                (window.cwnd_pkts, window.ssthresh_pkts),
                (431, 863),
                "{law}"
            );
        }
        let mut lossy = (control.clone(), window);
        let ssthresh_pkts = lossy.0.ssthresh(&mut lossy.1, 100);
        assert!(ssthresh_pkts <= 135, "{law}: {ssthresh_pkts}");
        assert!(control.ack_arrived(&mut window, 431), "{law}");
        control.acked(&mut window, 431);
        assert_eq!(window.cwnd_pkts, 862, "{law}");
        // A peer whose window does not open, or a program without data, ends it, too.
        assert!(!late.0.ack_arrived(&mut late.1, 45), "{law}");
        late.1.now_us += 700_000;
        assert!(late.0.ack_arrived(&mut late.1, 50), "{law}");
        assert_eq!((late.1.cwnd_pkts, late.1.ssthresh_pkts), (50, 863), "{law}");
    }
}

#[test]
fn a_short_message_leaves_the_window_that_it_used() {
    let start = Start {
        initial_rate_bps: 250_000_000,
        ..Start::default()
    };
    let (mut control, mut window) = begun(Law::RENO, start);
    control.transmission_starts(&mut window, &PATH).unwrap();
    assert!(control.ack_arrived(&mut window, 100));
    assert_eq!(window.cwnd_pkts, 100);
    assert!(window.in_slow_start());

    let (mut control, mut window) = begun(Law::RENO, start);
    control.transmission_starts(&mut window, &PATH).unwrap();
    assert!(control.ack_arrived(&mut window, 3));
    assert_eq!(window.cwnd_pkts, 10, "never less than the initial window");
}

#[test]
fn a_rate_is_for_the_first_start_and_pace_for_every_one() {
    for (idle, again) in [
        (Idle::Restart, false),
        (Idle::Keep, false),
        (Idle::Pace, true),
    ] {
        let start = Start {
            initial_rate_bps: 250_000_000,
            idle,
            ..Start::default()
        };
        let (mut control, mut window) = begun(Law::RENO, start);
        assert!(control.transmission_starts(&mut window, &PATH).is_some());
        assert!(control.ack_arrived(&mut window, 100));
        let paced = control.transmission_starts(&mut window, &PATH).is_some();
        assert_eq!(paced, again, "{idle:?}");
    }
}

#[test]
fn without_settings_a_flow_starts_as_linux_does() {
    let (mut control, mut window) = begun(Law::RENO, Start::default());
    let before = window;
    assert_eq!(control.transmission_starts(&mut window, &PATH), None);
    assert_eq!(window.cwnd_pkts, before.cwnd_pkts);
    assert_eq!(window.ssthresh_pkts, Window::NO_SSTHRESH);
}

/// The window that a pause of `rtos` leaves of 800 segments in congestion avoidance.
fn after_pause(idle: Idle, rtos: u32) -> (Control, Window) {
    let start = Start {
        idle,
        ..Start::default()
    };
    let (mut control, mut window) = begun(Law::RENO, start);
    (window.cwnd_pkts, window.ssthresh_pkts) = (800, 400);
    control.transmission_starts(&mut window, &PATH);
    control.idle_restart(&mut window, u64::from(rtos) * 300_000 + 1, 300_000, 10);
    (control, window)
}

/// tcp_cwnd_restart() and tcp_current_ssthresh() of Linux.
#[test]
fn restart_halves_the_window_for_each_rto_and_remembers_three_quarters() {
    for (rtos, cwnd_pkts) in [(1, 400), (2, 200), (5, 25), (7, 10), (40, 10), (1000, 10)] {
        let (mut control, mut window) = after_pause(Idle::Restart, rtos);
        assert_eq!(window.cwnd_pkts, cwnd_pkts, "{rtos} RTOs");
        assert_eq!(window.ssthresh_pkts, 600);
        assert_eq!(control.transmission_starts(&mut window, &PATH), None);
    }
}

#[test]
fn keep_keeps_the_window() {
    let (_, window) = after_pause(Idle::Keep, 40);
    assert_eq!((window.cwnd_pkts, window.ssthresh_pkts), (800, 400));
}

#[test]
fn pace_goes_on_at_the_remembered_window() {
    let (mut control, mut window) = after_pause(Idle::Pace, 40);
    assert_eq!(window.cwnd_pkts, 10);
    let rate = control.transmission_starts(&mut window, &PATH).unwrap();
    assert_eq!(rate, 600 * 1448 * 10);
    assert_eq!(window.cwnd_pkts, 600);
    assert!(control.ack_arrived(&mut window, 590));
    assert_eq!(window.cwnd_pkts, 590);
}

/// A flow that has met no congestion has no ssthresh to go back to: it takes the window it had.
#[test]
fn pace_without_ssthresh_goes_on_at_the_window_before_the_pause() {
    let start = Start {
        idle: Idle::Pace,
        ..Start::default()
    };
    let (mut control, mut window) = begun(Law::RENO, start);
    assert_eq!(control.transmission_starts(&mut window, &PATH), None);
    round_trip(&mut control, &mut window, 1);
    control.idle_restart(&mut window, 10_000_000, 300_000, 10);
    assert!(control.transmission_starts(&mut window, &PATH).is_some());
    assert_eq!(window.cwnd_pkts, 20);
    assert_eq!(window.ssthresh_pkts, Window::NO_SSTHRESH);
}

/// The tail of a chunk is lost: recovery ends without an acknowledgement in full use of the window.
#[test]
fn after_a_lost_tail_the_next_chunk_is_paced() {
    let (mut control, mut window) = after_pause(Idle::Pace, 0);
    window.ssthresh_pkts = control.ssthresh(&mut window, 1);
    window.cwnd_pkts = 1;
    assert!(control.transmission_starts(&mut window, &PATH).is_some());
    assert_eq!(window.cwnd_pkts, window.ssthresh_pkts);
}

/// A timeout within a paced start: neither the threshold nor an undo is of the window that was not tried.
#[test]
fn a_loss_in_a_paced_start_is_of_what_was_sent() {
    let (mut control, mut window) = after_pause(Idle::Pace, 2);
    let before_pkts = window.cwnd_pkts;
    assert!(control.transmission_starts(&mut window, &PATH).is_some());
    let target_pkts = window.cwnd_pkts;
    let sent_pkts = before_pkts + 4;
    assert!(sent_pkts < target_pkts);
    assert_eq!(control.ssthresh(&mut window, sent_pkts), sent_pkts / 2);
    window.cwnd_pkts = 1;
    assert!(control.ack_arrived(&mut window, sent_pkts));
    assert_eq!(control.undo_cwnd(&mut window, target_pkts), sent_pkts);
    // A loss after it is of the whole window again.
    window.cwnd_pkts = target_pkts;
    assert_eq!(control.ssthresh(&mut window, sent_pkts), target_pkts / 2);
    window.cwnd_pkts = 1;
    assert_eq!(control.undo_cwnd(&mut window, target_pkts), target_pkts);
}

/// tcp_cwnd_restart(): `while ((delta -= rto) > 0)`.
#[test]
fn a_pause_of_whole_rtos_halves_one_time_less() {
    for (idle_us, cwnd_pkts) in [
        (300_000, 800),
        (300_001, 400),
        (600_000, 400),
        (600_001, 200),
    ] {
        let (mut control, mut window) = after_pause(Idle::Restart, 0);
        window.cwnd_pkts = 800;
        control.idle_restart(&mut window, idle_us, 300_000, 10);
        assert_eq!(window.cwnd_pkts, cwnd_pkts, "{idle_us}");
    }
}

#[test]
fn the_clamp_bounds_a_paced_start() {
    let start = Start {
        initial_rate_bps: 1_000_000_000_000,
        ..Start::default()
    };
    let (mut control, mut window) = begun(Law::RENO, start);
    window.clamp_pkts = 500;
    let rate = control.transmission_starts(&mut window, &PATH).unwrap();
    assert_eq!(window.cwnd_pkts, 500);
    assert_eq!(rate, 500 * 1448 * 10);
}

#[test]
fn a_terabit_over_a_second_fits() {
    let start = Start {
        initial_rate_bps: 1_000_000_000_000,
        ..Start::default()
    };
    let (mut control, mut window) = begun(Law::RENO, start);
    let path = PathNow {
        srtt_us: 1_000_000,
        mss_bytes: 1448,
    };
    let rate = control.transmission_starts(&mut window, &path).unwrap();
    assert_eq!(window.cwnd_pkts, (1_000_000_000_000u64 / 8 / 1448) as u32);
    assert!((rate as f64 / 125e9 - 1.0).abs() < 1e-6, "{rate}");
}

#[test]
fn absurd_rates_and_paths_are_bounded() {
    let start = Start {
        initial_rate_bps: u64::MAX,
        ..Start::default()
    };
    for (srtt_us, mss_bytes) in [(u32::MAX, 1), (u32::MAX, u32::MAX), (1_000_000, 1)] {
        let (mut control, mut window) = begun(Law::RENO, start);
        let path = PathNow { srtt_us, mss_bytes };
        control.transmission_starts(&mut window, &path).unwrap();
        let bytes = u128::from(u64::MAX / 8) * u128::from(srtt_us) / 1_000_000;
        let expected = (bytes / u128::from(mss_bytes)).min(0x7fff_fffe) as u32;
        assert!(
            window.cwnd_pkts.abs_diff(expected) <= 1 + expected / 1_000_000,
            "{path:?}"
        );
    }
}

#[test]
fn a_rate_that_does_not_fit_is_all_ones() {
    let start = Start {
        initial_ssthresh_pkts: 0x7000_0000,
        idle: Idle::Pace,
        ..Start::default()
    };
    let (mut control, mut window) = begun(Law::RENO, start);
    let path = PathNow {
        srtt_us: 1,
        mss_bytes: u32::MAX,
    };
    assert_eq!(
        control.transmission_starts(&mut window, &path),
        Some(u64::MAX)
    );
}

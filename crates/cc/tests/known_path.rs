// SPDX-License-Identifier: MIT OR Apache-2.0
//! Slow start on a path that was learned makes way for others.

mod support;

use fatpath_cc::{KnownPath, Law, PathNow, Start};
use support::rounds::Rounds;

/// On a path of 1000 segments and 80 ms, as it was learned.
fn on_known_path(initial_rate_bps: u64) -> Rounds {
    let start = Start {
        hystart: true,
        initial_rate_bps,
        initial_ssthresh_pkts: 1000,
        known: KnownPath {
            bdp_pkts: 1000,
            base_rtt_us: 80_000,
        },
        ..Start::default()
    };
    Rounds::starting(Law::RENO, start)
}

#[test]
fn slow_start_on_a_known_path_ends_at_a_quarter_where_others_make_a_queue() {
    // An eighth above the base RTT is a queue, as where HyStart++ meets a rise.
    for (rtt_us, ssthresh_pkts) in [(89_999, 1000), (90_000, 250), (150_000, 250)] {
        let mut rounds = on_known_path(0);
        (0..7).for_each(|_| rounds.round(rtt_us));
        assert_eq!(rounds.window.ssthresh_pkts, ssthresh_pkts, "{rtt_us}");
        assert!(!rounds.window.in_slow_start(), "{rtt_us}");
    }
}

#[test]
fn a_queue_that_ends_before_the_window_counts_does_not_end_slow_start() {
    let mut rounds = on_known_path(0);
    // While the window is 10, 20 and 40 segments, less than an eighth of 1000.
    for rtt_us in [120_000, 120_000, 120_000, 80_000, 80_000, 80_000, 80_000] {
        rounds.round(rtt_us);
    }
    assert_eq!(rounds.window.ssthresh_pkts, 1000);
}

/// Beyond three quarters of what the path holds.
#[test]
fn a_queue_that_the_flow_itself_may_have_made_does_not_end_slow_start_at_a_quarter() {
    for (cwnd_pkts, is_others) in [(700, true), (751, false)] {
        let mut rounds = on_known_path(0);
        (0..3).for_each(|_| rounds.round(80_000));
        rounds.window.cwnd_pkts = 60;
        rounds.round_of_less(90_000);
        rounds.window.cwnd_pkts = cwnd_pkts;
        rounds.round_of_less(90_000);
        rounds.round_of_less(90_000);
        assert_eq!(rounds.window.ssthresh_pkts == 250, is_others, "{cwnd_pkts}");
    }
}

/// Acknowledgements that were held up together make a round's first samples late, and not its last.
#[test]
fn a_round_of_which_only_a_part_was_late_does_not_end_slow_start_at_a_quarter() {
    let mut rounds = on_known_path(0);
    (0..4).for_each(|_| rounds.round(80_000));
    for _ in 0..3 {
        let sent = rounds.window.cwnd_pkts;
        for number in 0..sent {
            rounds.control.acked(&mut rounds.window, 1);
            rounds.sample(if number < sent / 2 { 92_000 } else { 80_000 });
        }
    }
    assert!(rounds.window.ssthresh_pkts > 250);
}

/// Behind a start at half of the rate.
fn behind_a_paced_start() -> Rounds {
    let mut rounds = on_known_path(60_000_000);
    let path = PathNow {
        srtt_us: 80_000,
        mss_bytes: 1500,
    };
    let window = &mut rounds.window;
    assert!(rounds.control.transmission_starts(window, &path).is_some());
    assert!(rounds.control.ack_arrived(window, 400));
    assert_eq!(window.cwnd_pkts, 400);
    rounds
}

/// The round need not be waited for: a queue for an eighth of the base RTT is others', and alone there is none.
#[test]
fn slow_start_behind_a_paced_start_ends_within_a_round() {
    for (time_us, rtt_us, ssthresh_pkts) in [
        (10_000, 90_000, 1000),
        (10_100, 89_999, 1000),
        (10_100, 90_000, 250),
    ] {
        let mut rounds = behind_a_paced_start();
        rounds.window.now_us = 1_000_000;
        rounds.samples_for(9_000, 90_000);
        rounds.samples_for(5_000, 80_000);
        rounds.samples_for(time_us, rtt_us);
        assert_eq!(rounds.window.ssthresh_pkts, ssthresh_pkts, "{time_us}");
        assert_eq!(rounds.window.cwnd_pkts, 400.min(ssthresh_pkts));
    }
}

/// What is sent then is a burst.
#[test]
fn behind_a_pause_the_round_is_waited_for() {
    let mut rounds = behind_a_paced_start();
    rounds.window.now_us = 1_000_000;
    rounds.samples_for(10_000, 80_000);
    let path = PathNow {
        srtt_us: 80_000,
        mss_bytes: 1500,
    };
    let window = &mut rounds.window;
    assert_eq!(rounds.control.transmission_starts(window, &path), None);
    rounds.samples_for(20_000, 95_000);
    assert_eq!(rounds.window.ssthresh_pkts, 1000);
}

// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use proptest::prelude::*;

/// A path, and one flow of it whose buffer is given by what is followed: a fluid model.
#[derive(Clone, Copy, Debug)]
struct Fluid {
    rate_bps: f64,
    base_us: f64,
    /// What the queue holds, in seconds at the rate.
    queue_s: f64,
    /// What the buffer holds, in times of what it was given.
    slack: f64,
    /// In times, in a turn.
    growth: f64,
    /// What the flow's law allows in flight, bits.
    window_bits: f64,
    at_us: i64,
}

impl Fluid {
    fn new(rate_bps: f64, base_us: f64) -> Fluid {
        Fluid {
            rate_bps,
            base_us,
            queue_s: base_us / 1e6,
            slack: 1.6,
            growth: 1.25,
            window_bits: 1e5,
            at_us: 1_000_000,
        }
    }

    /// 2 s with a buffer: what the flow shows of them.
    fn turn(&mut self, buffer_bits: f64) -> Window {
        let most_bits = self.rate_bps * (self.base_us / 1e6 + self.queue_s);
        let held_bits = self.slack * buffer_bits;
        // A law that doubles at first, and grows slowly later on.
        self.window_bits *= if self.window_bits < most_bits / 4.0 {
            16.0
        } else {
            self.growth
        };
        let mut is_held = self.window_bits > held_bits;
        let mut in_flight_bits = self.window_bits.min(held_bits);
        let lost = in_flight_bits > most_bits;
        if lost {
            self.window_bits = 0.7 * most_bits;
            in_flight_bits = self.window_bits;
            is_held = false;
        }
        self.window_bits = self.window_bits.min(2.0 * held_bits);
        let rtt_us = self.base_us.max(in_flight_bits / self.rate_bps * 1e6);
        self.at_us += 2_000_000;
        Window {
            flow: 1,
            at_us: self.at_us,
            length_us: 2_000_000,
            rtt_us,
            mean_rtt_us: rtt_us,
            bps: in_flight_bits / rtt_us * 1e6,
            limit: is_held.then_some(Limit::OwnBuffer),
            lost,
            receives: false,
        }
    }

    /// So many turns under what is followed. Answers the rate of the last.
    fn run(&mut self, following: &mut Following, turns: usize) -> f64 {
        let mut bps = 0.0;
        for _ in 0..turns {
            let window = self.turn(buffer_bits(following));
            bps = window.bps;
            following.take([window]);
        }
        bps
    }
}

/// What a rule with a buffer of 1 bdp gives; 256 KiB until something is known.
fn buffer_bits(following: &Following) -> f64 {
    match (following.rtt_us(), following.rate()) {
        (Some(rtt_us), Some(rate)) => rtt_us / 1e6 * rate.bps,
        _ => 8.0 * 262_144.0,
    }
}

fn window(at_s: i64, rtt_us: f64, bps: f64, limit: Option<Limit>) -> Window {
    Window {
        flow: 1,
        at_us: at_s * 1_000_000,
        length_us: 1_000_000,
        rtt_us,
        mean_rtt_us: rtt_us,
        bps,
        limit,
        lost: false,
        receives: false,
    }
}

#[test]
fn a_queue_is_not_taken_for_a_longer_path() {
    let mut following = Following::default();
    following.take([window(1, 20e3, 9e7, None)]);
    for at_s in 2..60 {
        following.take([window(at_s, 60e3, 9.5e7, None)]);
        following.take([window(at_s + 100, 60e3, 9.5e7, Some(Limit::OwnBuffer))]);
    }
    assert_eq!(following.rtt_us(), Some(20e3));
}

/// The flow fills the longer path before two moments with the same round trip are seen.
#[test]
fn a_moment_that_was_slower_shows_the_round_trip_of_a_longer_path() {
    let mut following = Following::default();
    following.take([window(1, 20e3, 9.6e7, None)]);
    following.take([window(3, 40e3, 3.6e7, None)]);
    following.take([window(5, 46e3, 7.7e7, None)]);
    following.take([window(7, 55e3, 9.6e7, None)]);
    assert_eq!(following.rtt_us(), Some(40e3));
    assert_eq!(following.rate().unwrap().bps, 9.6e7);
}

#[test]
fn a_queue_before_a_longer_path_does_not_shorten_it() {
    let mut following = Following::default();
    following.take([window(1, 50e3, 4.4e7, None)]);
    following.take([window(3, 70e3, 4.4e7, None)]);
    following.take([window(5, 82e3, 4.4e7, None)]);
    (3..5).for_each(|turn| {
        following.take([window(2 * turn + 1, 139e3, 2.6e7, Some(Limit::OwnBuffer))])
    });
    assert_eq!(following.rtt_us(), Some(139e3));
}

/// It becomes longer while the flow begins, which asks for more before it knows what the path carries.
#[test]
fn a_path_that_becomes_longer_under_a_flow_that_begins_is_no_queue() {
    let mut following = Following::default();
    let own = Some(Limit::OwnBuffer);
    following.take([window(1, 20e3, 2.5e7, own)]);
    for (turn, (rtt_us, bps)) in (1..).zip([(26e3, 3.5e7), (40e3, 5.6e7), (46e3, 9.4e7)]) {
        following.take([window(2 * turn + 1, rtt_us, bps, own)]);
    }
    assert_eq!(following.rtt_us(), Some(40e3));
}

/// A faster link empties the queue of the flows sooner.
#[test]
fn a_rate_that_rises_while_the_round_trip_falls_shows_no_longer_path() {
    let mut following = Following::default();
    following.take([window(1, 20e3, 9.6e7, None)]);
    following.take([window(3, 80e3, 9.6e7, None)]);
    (2..20).for_each(|turn| following.take([window(2 * turn + 1, 40e3, 1.9e8, None)]));
    assert_eq!(following.rtt_us(), Some(20e3));
}

#[test]
fn a_full_queue_that_loses_segments_is_that_of_a_slower_path() {
    let rate = |lost: bool| {
        let mut following = Following::default();
        following.take([window(1, 80e3, 9e7, None)]);
        for turn in 1..5 {
            let full = window(2 * turn, 150e3, 3e7, None);
            following.take([Window { lost, ..full }]);
        }
        (following.rtt_us(), following.rate().unwrap().bps)
    };
    assert_eq!(rate(true), (Some(80e3), 3e7));
    assert_eq!(rate(false), (Some(80e3), 9e7), "it may be a longer path");
}

#[test]
fn a_flow_of_a_slow_program_shows_a_longer_path() {
    let mut following = Following::default();
    following.take([window(1, 20e3, 1e6, Some(Limit::Application))]);
    following.take([window(3, 80e3, 1e6, Some(Limit::Application))]);
    assert_eq!(following.rtt_us(), Some(20e3), "one moment is chance");
    following.take([window(5, 81e3, 1e6, Some(Limit::Application))]);
    assert_eq!(following.rtt_us(), Some(80e3));
    assert_eq!(following.rate().map(|rate| rate.is_of_path), Some(false));
}

#[test]
fn a_flow_that_begins_does_not_lower_the_rate() {
    let mut following = Following::default();
    following.take([window(1, 20e3, 9e7, None)]);
    following.take([window(3, 20e3, 1e7, None)]);
    following.take([window(5, 20e3, 3e7, None)]);
    assert_eq!(following.rate().unwrap().bps, 9e7);
    (4..8).for_each(|turn| following.take([window(2 * turn, 20e3, 2e7, None)]));
    assert_eq!(following.rate().unwrap().bps, 9e7);
    (8..10).for_each(|turn| following.take([window(2 * turn, 20e3, 2e7, None)]));
    assert_eq!(following.rate().unwrap().bps, 3e7);
}

#[test]
fn a_flow_that_fills_a_queue_lowers_the_rate() {
    let mut following = Following::default();
    following.take([window(1, 20e3, 9e7, None)]);
    let queued = |at_s| Window {
        mean_rtt_us: 40e3,
        ..window(at_s, 22e3, 3e7, None)
    };
    (1..3).for_each(|turn| following.take([queued(2 * turn)]));
    assert_eq!(following.rate().unwrap().bps, 9e7);
    following.take([queued(6)]);
    assert_eq!(following.rate().unwrap().bps, 3e7);
}

#[test]
fn more_buffer_that_brings_nothing_is_asked_for_ever_less_often() {
    let mut following = Following::default();
    let mut asked = 0;
    following.take([window(0, 20e3, 1e8, None)]);
    for turn in 1..=900 {
        // The buffer holds exactly what the path does.
        let has_more = following.rate().is_some_and(|rate| !rate.is_of_path);
        let limit = (!has_more).then_some(Limit::OwnBuffer);
        following.take([window(2 * turn, 20e3, 1e8, limit)]);
        asked += usize::from(!has_more && following.rate().is_some_and(|rate| !rate.is_of_path));
    }
    // Half an hour: at once, then after 1, 2, 4, 8 and 10 minutes.
    assert!((4..=7).contains(&asked), "{asked}");
}

#[test]
fn an_unknown_path_is_found() {
    for (rate_bps, base_us) in [(1e8, 20e3), (1e9, 100e3), (1e10, 200e3)] {
        let (mut fluid, mut following) = (Fluid::new(rate_bps, base_us), Following::default());
        let bps = fluid.run(&mut following, 30);
        assert!(bps > 0.9 * rate_bps, "{bps} of {rate_bps}");
    }
}

proptest! {
    /// The path changes under a flow that lives: the flow has nearly all of its new rate after a while, and its buffer
    /// is not much more than that takes.
    #[test]
    fn a_path_that_changes_is_followed(
        rate_bps in 1e7..1e9_f64,
        base_us in 1e4..1e5_f64,
        of_rate in 0.1..10.0_f64,
        of_rtt in 1.0..8.0_f64,
        queue in 0.3..3.0_f64,
        slack in prop_oneof![Just(1.05), Just(1.6)],
        growth in 1.08..2.0_f64,
    ) {
        let (mut fluid, mut following) = (Fluid::new(rate_bps, base_us), Following::default());
        (fluid.slack, fluid.growth) = (slack, growth);
        fluid.run(&mut following, 40);
        fluid.rate_bps *= of_rate;
        fluid.base_us *= of_rtt;
        fluid.queue_s = queue * fluid.base_us / 1e6;
        fluid.run(&mut following, 60);
        let bdp_bits = fluid.rate_bps * fluid.base_us / 1e6;
        let (mut rates, mut given): (Vec<f64>, Vec<f64>) = (0..60)
            .map(|_| (fluid.run(&mut following, 1), buffer_bits(&following) / bdp_bits))
            .unzip();
        for numbers in [&mut rates, &mut given] {
            numbers.sort_by(f64::total_cmp);
        }
        let (bps, given) = (rates[30] / fluid.rate_bps, given[30]);
        prop_assert!(bps > 0.7, "{bps} {following:?}");
        prop_assert!((0.45..2.5).contains(&given), "{given} {following:?}");
    }

    /// Whatever flows show, what is followed is possible.
    #[test]
    fn nothing_impossible_is_followed(
        shown in proptest::collection::vec((any::<u64>(), any::<f64>(), any::<f64>(), 0..5_u8, any::<bool>()), 0..200),
    ) {
        let mut following = Following::default();
        for (at, (flow, rtt_us, bps, limit, receives)) in (1..).zip(shown) {
            let limits = [Limit::Application, Limit::OwnBuffer, Limit::PeerWindow, Limit::Loss];
            let limit = limits.get(usize::from(limit)).copied();
            following.take([Window { flow: flow % 5, receives, ..window(at, rtt_us, bps, limit) }]);
            let is_time = |us: f64| us > 0.0 && us <= 60e6;
            prop_assert!(following.rtt_us().is_none_or(is_time));
            // Of five flows, twice.
            prop_assert!(following.rate().is_none_or(|rate| rate.bps > 0.0 && rate.bps <= 1e14));
        }
    }
}

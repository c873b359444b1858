// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long a law takes to have its window again after one loss.

use crate::{Bound, Losses, Model, Quantity, highspeed};
use fatpath_cc::Law;

/// Of every law that reduces its window at a loss.
pub const MODEL: Model = Model {
    name: "recovery",
    formula: "(T + 1) R; T: Reno W/2, AIMD b W/a, Scalable ln(1-b)/-ln(1+a), HighSpeed ∫dw/a(w), CUBIC min((K - C^(-1/3))/R, (1-β)W/α)",
    source: "RFC 5681, 3.1; Kelly 2003; RFC 3649, 5; RFC 9438, 4.2 and 4.3; one round trip of fast recovery",
    losses: Losses::None,
    range: &[Bound {
        of: Quantity::WindowPkts,
        min: 32.0,
        max: 1e7,
        why: "windows of a few segments are counts, and Scalable and HighSpeed are Reno there",
    }],
    sim_error: Some(0.05),
};

/// Of the integral over a(w).
const STEPS: u32 = 1_000;

/// Round trips of growth until the window is `window_pkts` again, without that of fast recovery; `None`: the law does
/// not reduce its window at one loss, or no model is of it.
pub fn growth_round_trips(law: &Law, window_pkts: f64, rtt_s: f64) -> Option<f64> {
    let number = |key| law.number(key);
    Some(match law.spec().name {
        "reno" => window_pkts / 2.0,
        "aimd" => number("b") * window_pkts / number("a"),
        "scalable" if window_pkts <= number("legacy_window") => window_pkts / 2.0,
        "scalable" => (-number("b")).ln_1p() / -number("a").ln_1p(),
        "highspeed" => highspeed_round_trips(law, window_pkts),
        "cubic" => cubic_round_trips(number("c"), number("beta"), window_pkts, rtt_s),
        _ => return None,
    })
}

/// Seconds from the loss on, with the round trip of fast recovery in which the window falls.
pub fn recovery_s(law: &Law, window_pkts: f64, rtt_s: f64) -> Option<f64> {
    growth_round_trips(law, window_pkts, rtt_s).map(|round_trips| (round_trips + 1.0) * rtt_s)
}

/// The part of the window that one loss takes; `None` as in [`growth_round_trips`].
pub fn given_up(law: &Law, window_pkts: f64) -> Option<f64> {
    let number = |key| law.number(key);
    Some(match law.spec().name {
        "reno" => 0.5,
        "scalable" if window_pkts <= number("legacy_window") => 0.5,
        "aimd" | "scalable" => number("b"),
        "highspeed" => highspeed_b(law, window_pkts),
        "cubic" => 1.0 - number("beta"),
        _ => return None,
    })
}

/// Dunigan's rate of recovery (seed 004): the data that the growth of one segment a round trip adds in the first second,
/// bytes: MSS n (n + 1) / 2 with n = ceil(1 / R).
pub fn first_second_bytes(mss_bytes: u32, rtt_s: f64) -> f64 {
    let round_trips = (1.0 / rtt_s).ceil();
    f64::from(mss_bytes) * round_trips * (round_trips + 1.0) / 2.0
}

fn highspeed_b(law: &Law, window_pkts: f64) -> f64 {
    let response = highspeed::response(law);
    match window_pkts <= response.low_window_pkts {
        true => 0.5,
        false => response.b(window_pkts),
    }
}

/// The integral of dw / a(w) from (1 - b(W)) W to W, by the midpoint rule.
fn highspeed_round_trips(law: &Law, window_pkts: f64) -> f64 {
    let response = highspeed::response(law);
    let lost_pkts = highspeed_b(law, window_pkts) * window_pkts;
    let step_pkts = lost_pkts / f64::from(STEPS);
    let at = |step: u32| window_pkts - lost_pkts + (f64::from(step) + 0.5) * step_pkts;
    let a = |w: f64| match w <= response.low_window_pkts {
        true => 1.0,
        false => response.a(w),
    };
    (0..STEPS).map(|step| step_pkts / a(at(step))).sum()
}

/// K = cbrt(W (1 - β) / C) seconds of the curve, RFC 9438, equation (2), less the time that it takes for its last segment
/// (a window in whole segments is there already); or earlier by Reno's growth α, 4.3.
fn cubic_round_trips(c: f64, beta: f64, window_pkts: f64, rtt_s: f64) -> f64 {
    let lost_pkts = (1.0 - beta) * window_pkts;
    let alpha = 3.0 * (1.0 - beta) / (1.0 + beta);
    let curve_s = (lost_pkts / c).cbrt() - (1.0 / c).cbrt();
    (curve_s.max(0.0) / rtt_s).min(lost_pkts / alpha)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn law(name: &str) -> Law {
        Law::named(name).unwrap()
    }

    /// Kelly (seed 002), 200 ms and 1500 bytes: windows of 170, 1700, 17000, 170000: 17 s, 2 min 50 s, 28 min, 4 h 43.
    #[test]
    fn traditional_tcp_in_kelly_s_table() {
        for (window, seconds) in [
            (170.0, 17.0),
            (1_700.0, 170.0),
            (17_000.0, 1_700.0),
            (170_000.0, 16_980.0),
        ] {
            let growth_s = growth_round_trips(&law("reno"), window, 0.2).unwrap() * 0.2;
            assert!(
                (growth_s / seconds - 1.0).abs() < 0.002,
                "{window}: {growth_s}"
            );
        }
    }

    /// Kelly (seed 002): 17.7, 14.5, 13.4, 12.9 round trips.
    #[test]
    fn scalable_in_kelly_s_table() {
        let rows = [
            (0.04, 0.5, 17.7),
            (0.02, 0.25, 14.5),
            (0.01, 0.125, 13.4),
            (0.005, 0.0625, 12.9),
        ];
        for (a, b, round_trips) in rows {
            let law = law("scalable").with_all(&[("a", a), ("b", b)]).unwrap();
            for window in [1e3, 1e6] {
                let growth = growth_round_trips(&law, window, 0.2).unwrap();
                // b has three decimals, so 1/16 is 0.063.
                assert!((growth - round_trips).abs() < 0.15, "({a}, {b}): {growth}");
            }
        }
    }

    /// Seed 004: 1460 bytes at 60 ms are about 223 KB in the first second; docs/papers.md: 819 KB at 30 ms.
    #[test]
    fn dunigan_s_rate_of_recovery() {
        assert_eq!(first_second_bytes(1460, 0.06), 1460.0 * 17.0 * 9.0);
        assert_eq!(first_second_bytes(1460, 0.03), 1460.0 * 34.0 * 35.0 / 2.0);
    }

    #[test]
    fn bbr_does_not_fall_at_one_loss() {
        assert_eq!(recovery_s(&law("bbr"), 1e4, 0.1), None);
        assert_eq!(given_up(&law("bbr"), 1e4), None);
    }

    /// RFC 3649, 5: at 83,000 segments a = 70.8 or so and b = 0.1: 8,300 segments in about 120 round trips.
    #[test]
    fn highspeed_at_its_high_window() {
        let round_trips = growth_round_trips(&law("highspeed"), 83_000.0, 0.1).unwrap();
        assert!((110.0..130.0).contains(&round_trips), "{round_trips}");
    }

    proptest! {
        #[test]
        fn no_law_is_slower_than_reno(window in 40.0f64..1e6, rtt_s in 0.001f64..0.5) {
            let reno = growth_round_trips(&law("reno"), window, rtt_s).unwrap();
            // CUBIC, Reno-friendly: 0.3 W at α = 0.53 a round trip against W / 2 at 1.
            for (name, most) in [("scalable", 1.001), ("highspeed", 1.001), ("cubic", 1.134)] {
                let round_trips = growth_round_trips(&law(name), window, rtt_s).unwrap();
                prop_assert!(round_trips <= reno * most, "{name}: {round_trips} of {reno}");
            }
        }

        #[test]
        fn a_larger_window_never_recovers_sooner(window in 40.0f64..1e6, rtt_s in 0.001f64..0.5) {
            for name in ["reno", "aimd", "scalable", "highspeed", "cubic"] {
                let time = |window| recovery_s(&law(name), window, rtt_s).unwrap();
                prop_assert!(time(window * 1.01) >= time(window) * 0.9999, "{name}");
            }
        }
    }
}

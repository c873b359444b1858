// SPDX-License-Identifier: MIT OR Apache-2.0
//! Padhye, Firoiu, Towsley, Kurose, "Modeling TCP Reno performance: a simple model and its empirical validation"
//! (IEEE/ACM ToN 8(2), 2000; SIGCOMM 1998): Reno with timeouts and a largest window.

use crate::{Bound, Losses, Model, Path, Quantity};

/// The full model.
pub const MODEL: Model = Model {
    name: "pftk",
    formula: "B = ((1-p)/p + W + Q/(1-p)) / (R (b/2 W + 1) + Q T0 f(p)/(1-p)), with the window limit",
    source: "Padhye et al. 2000, equation (32), with (28), (29) and Q of (24)",
    losses: Losses::Bursts,
    range: &[
        Bound {
            of: Quantity::Loss,
            min: 0.0,
            max: 0.03,
            why: "windows of a few segments: limited transmit and tail loss probes repair what its Reno waits for",
        },
        Bound {
            of: Quantity::TimeoutRtt,
            min: 1.0,
            max: 4.0,
            why: "with SACK fewer losses end in a timeout, which counts the more the longer it is",
        },
    ],
    sim_error: Some(0.15),
};

/// Beside path and loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// Segments that an ACK makes the window grow for: 1, or 2 where ACKs are delayed and the sender counts ACKs.
    pub acked_per_ack: f64,
    /// The first retransmission timeout, T0.
    pub timeout_s: f64,
}

impl Parameters {
    /// As Linux has it: acknowledged segments are counted, and the RTO is the round-trip time and 200 ms.
    pub fn linux(rtt_s: f64) -> Parameters {
        Parameters {
            acked_per_ack: 1.0,
            timeout_s: rtt_s + RTO_MIN_S,
        }
    }
}

/// Linux's least deviation in the RTO (TCP_RTO_MIN).
const RTO_MIN_S: f64 = 0.2;

/// Segments a second, lost ones included. Loss above 0 and below 1; `path.max_window_pkts` is Wmax.
pub fn send_rate_pps(path: &Path, of: &Parameters) -> f64 {
    let (p, b, rtt_s) = (path.loss, of.acked_per_ack, path.rtt_s);
    let unlimited = mean_window_at_loss(p, b);
    let wait = |w: f64| timeout_share(p, w) * of.timeout_s * backoff(p) / (1.0 - p);
    let sent = |w: f64| (1.0 - p) / p + w + timeout_share(p, w) / (1.0 - p);
    match path.max_window_pkts {
        Some(most) if unlimited >= most => {
            let round_trips = b / 8.0 * most + (1.0 - p) / (p * most) + 2.0;
            sent(most) / (rtt_s * round_trips + wait(most))
        }
        _ => sent(unlimited) / (rtt_s * (b / 2.0 * unlimited + 1.0) + wait(unlimited)),
    }
}

/// The mean window, segments: the rate times the round-trip time.
pub fn window_pkts(path: &Path, of: &Parameters) -> f64 {
    send_rate_pps(path, of) * path.rtt_s
}

/// Equation (33), the approximation: segments a second.
pub fn approximate_rate_pps(path: &Path, of: &Parameters) -> f64 {
    let (p, b) = (path.loss, of.acked_per_ack);
    let avoidance_s = path.rtt_s * (2.0 * b * p / 3.0).sqrt();
    let often = (3.0 * (3.0 * b * p / 8.0).sqrt()).min(1.0);
    let rate_pps = 1.0 / (avoidance_s + of.timeout_s * often * p * (1.0 + 32.0 * p * p));
    let most = path.max_window_pkts.map(|most| most / path.rtt_s);
    most.map_or(rate_pps, |most| rate_pps.min(most))
}

/// E[W], equation (13).
pub(crate) fn mean_window_at_loss(p: f64, b: f64) -> f64 {
    let c = (2.0 + b) / (3.0 * b);
    c + (8.0 * (1.0 - p) / (3.0 * b * p) + c * c).sqrt()
}

/// Q(w), equation (24): the probability that a loss in a window of w ends in a timeout.
pub(crate) fn timeout_share(p: f64, w: f64) -> f64 {
    if w <= 3.0 {
        return 1.0;
    }
    let q = 1.0 - p;
    let share = (1.0 - q.powi(3)) * (1.0 + q.powi(3) * (1.0 - q.powf(w - 3.0)));
    (share / (1.0 - q.powf(w))).min(1.0)
}

/// f(p), equation (29): timeouts follow each other at 1, 2, 4, ... 64 times T0.
pub(crate) fn backoff(p: f64) -> f64 {
    let terms = [1.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0];
    let of = |(power, factor): (i32, f64)| factor * p.powi(power);
    (0..).zip(terms).map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mathis;
    use proptest::prelude::*;

    const OLD: Parameters = Parameters {
        acked_per_ack: 2.0,
        timeout_s: 1.0,
    };

    /// f(p) = 1 + p + 2p² + 4p³ + 8p⁴ + 16p⁵ + 32p⁶.
    #[test]
    fn backoff_doubles_up_to_64() {
        assert_eq!(backoff(0.0), 1.0);
        assert_eq!(backoff(0.5), 1.0 + 6.0 * 0.5);
    }

    #[test]
    fn small_windows_end_in_timeouts() {
        assert_eq!(timeout_share(0.01, 3.0), 1.0);
        // Q is about 3/w for small p (equation (26)).
        assert!((timeout_share(1e-7, 100.0) - 0.03).abs() < 1e-3);
    }

    /// At small p it is Mathis' with delayed ACKs; a little above it, since its losses come at the end of a cycle.
    #[test]
    fn without_timeouts_it_is_mathis() {
        let rare = Parameters {
            timeout_s: 0.0,
            ..OLD
        };
        let path = Path::new(0.1, 1e-8);
        let mathis = mathis::window_pkts(mathis::C_REGULAR_DELAYED_ACK, 1e-8);
        assert!((window_pkts(&path, &rare) / mathis - 1.0).abs() < 1e-3);
    }

    #[test]
    fn a_window_is_never_exceeded_and_reached_without_loss() {
        let mut path = Path::new(0.1, 1e-9);
        path.max_window_pkts = Some(50.0);
        let window = window_pkts(&path, &OLD);
        assert!((window / 50.0 - 1.0).abs() < 1e-3, "{window}");
        assert!((approximate_rate_pps(&path, &OLD) - 500.0).abs() < 1e-9);
    }

    proptest! {
        /// Figure 7's sense: the approximation is near the full model.
        #[test]
        fn the_approximation_is_near(loss in 1e-6f64..0.1, rtt_s in 0.005f64..0.5) {
            let path = Path::new(rtt_s, loss);
            let ratio = approximate_rate_pps(&path, &OLD) / send_rate_pps(&path, &OLD);
            prop_assert!((0.6..1.4).contains(&ratio), "{ratio}");
        }

        #[test]
        fn loss_and_distance_cost(loss in 1e-7f64..0.3, rtt_s in 0.001f64..1.0, most in 4.0f64..1e4) {
            let rate = |loss, rtt_s| {
                let path = Path { max_window_pkts: Some(most), ..Path::new(rtt_s, loss) };
                send_rate_pps(&path, &Parameters::linux(rtt_s))
            };
            prop_assert!(rate(loss, rtt_s) > rate(loss, rtt_s * 1.1));
            prop_assert!(rate(loss, rtt_s) >= rate(loss * 1.1, rtt_s) * 0.999);
            prop_assert!(rate(loss, rtt_s) * rtt_s <= most * 1.05);
        }
    }
}

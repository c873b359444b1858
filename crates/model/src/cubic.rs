// SPDX-License-Identifier: MIT OR Apache-2.0
//! CUBIC, RFC 9438: the mean window of its concave curve, or Reno's where that is larger.

use crate::{Bound, Losses, Model, Quantity, mathis};

/// Section 5, equation (5), and the Reno-friendly region of 4.3.
pub const MODEL: Model = Model {
    name: "cubic",
    formula: "W = max((C (3 + β) / (4 (1 - β)))^(1/4) (R / p)^(3/4), sqrt(3 / 2p))",
    source: "RFC 9438, section 5, equation (5), and 4.3; tables 1 to 3",
    losses: Losses::Regular,
    range: &[
        Bound {
            of: Quantity::WindowPkts,
            min: 12.0,
            max: f64::INFINITY,
            why: "small windows end in timeouts",
        },
        Bound {
            of: Quantity::Loss,
            min: 0.0,
            max: 0.01,
            why: "several losses in a round trip are one congestion event",
        },
    ],
    sim_error: Some(0.10),
};

/// The mean window, segments; `c` in segments/s³, `beta` the fraction kept at a loss, loss above 0.
pub fn window_pkts(c: f64, beta: f64, rtt_s: f64, loss: f64) -> f64 {
    curve_pkts(c, beta, rtt_s, loss).max(mathis::window_pkts(mathis::C_REGULAR, loss))
}

/// Equation (5).
pub fn curve_pkts(c: f64, beta: f64, rtt_s: f64, loss: f64) -> f64 {
    (c * (3.0 + beta) / (4.0 * (1.0 - beta))).powf(0.25) * (rtt_s / loss).powf(0.75)
}

/// Whether Reno's window is the larger one: the Reno-friendly region.
pub fn is_reno_friendly(c: f64, beta: f64, rtt_s: f64, loss: f64) -> bool {
    curve_pkts(c, beta, rtt_s, loss) <= mathis::window_pkts(mathis::C_REGULAR, loss)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 9438, tables 1 and 2: loss rate, windows with C = 0.04, 0.4, 4. Its Reno is 1.2 / sqrt(p).
    const AT_100_MS: [(f64, [f64; 3]); 7] = [
        (1e-2, [12.0, 12.0, 12.0]),
        (1e-3, [38.0, 38.0, 59.0]),
        (1e-4, [120.0, 187.0, 333.0]),
        (1e-5, [593.0, 1_054.0, 1_874.0]),
        (1e-6, [3_332.0, 5_926.0, 10_538.0]),
        (1e-7, [18_740.0, 33_325.0, 59_261.0]),
        (1e-8, [105_383.0, 187_400.0, 333_250.0]),
    ];
    const AT_10_MS: [(f64, [f64; 3]); 4] = [
        (1e-5, [379.0, 379.0, 379.0]),
        (1e-6, [1_200.0, 1_200.0, 1_874.0]),
        (1e-7, [3_795.0, 5_926.0, 10_538.0]),
        (1e-8, [18_740.0, 33_325.0, 59_261.0]),
    ];

    fn assert_row(rtt_s: f64, loss: f64, row: [f64; 3]) {
        for (c, expected) in [0.04, 0.4, 4.0].into_iter().zip(row) {
            let window = window_pkts(c, 0.7, rtt_s, loss);
            let error = (window / expected - 1.0).abs();
            assert!(error < 0.03, "{rtt_s} {loss} {c}: {window} for {expected}");
        }
    }

    #[test]
    fn the_rfc_s_tables() {
        let far = AT_100_MS.iter().map(|row| (0.1, row));
        let near = AT_10_MS.iter().map(|row| (0.01, row));
        far.chain(near)
            .for_each(|(rtt_s, (loss, row))| assert_row(rtt_s, *loss, *row));
    }

    proptest! {
        #[test]
        fn loss_costs_and_distance_helps_its_window(loss in 1e-9f64..0.01, rtt_s in 0.001f64..1.0) {
            let window = window_pkts(0.4, 0.7, rtt_s, loss);
            prop_assert!(window > window_pkts(0.4, 0.7, rtt_s, loss * 1.01));
            prop_assert!(window <= window_pkts(0.4, 0.7, rtt_s * 1.01, loss));
            // In bits a second, distance costs.
            prop_assert!(window / rtt_s > window_pkts(0.4, 0.7, rtt_s * 1.01, loss) / (rtt_s * 1.01));
        }
    }
}

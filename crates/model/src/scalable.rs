// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scalable TCP: a segments added for each acknowledged one, the fraction b of the window given up at a loss.
//! Source: Kelly, "Scalable TCP: improving performance in highspeed wide area networks" (CCR 33(2), 2003), and
//! "Implementation issues for high-speed TCPs" (2003).

use crate::{Bound, Losses, Model, Quantity};

/// The exact mean of the exponential sawtooth.
pub const MODEL: Model = Model {
    name: "scalable",
    formula: "W = a / (-p ln(1 - b))",
    source: "Kelly 2003; the mean of a W that grows by a with each segment (scalable.rs)",
    losses: Losses::Any,
    range: &[FROM_32],
    sim_error: Some(0.12),
};

/// The first term of its series in b.
pub const FIRST_TERM_MODEL: Model = Model {
    name: "scalable-first",
    formula: "W = a / (b p)",
    source: "Kelly 2003, section 3: the first term in b of the exact mean; it gives the peak",
    losses: Losses::Any,
    range: &[
        FROM_32,
        Bound {
            of: Quantity::GivenUp,
            min: 0.0,
            max: 0.125,
            why: "later terms of the series count (scalable has all)",
        },
    ],
    sim_error: Some(0.20),
};

const FROM_32: Bound = Bound {
    of: Quantity::WindowPkts,
    min: 32.0,
    max: f64::INFINITY,
    why: "near the legacy window (16) it is Reno",
};

/// The mean window, segments. W grows by a with each segment, and a loss takes b of it; a cycle lasts -ln(1 - b) / a
/// round trips whatever W is and carries 1/p segments on the mean, so it does not matter how losses are spread.
pub fn window_pkts(a: f64, b: f64, loss: f64) -> f64 {
    a / (-loss * (-b).ln_1p())
}

/// a / (b p): above the exact mean by b/2 and more.
pub fn first_term_pkts(a: f64, b: f64, loss: f64) -> f64 {
    a / (b * loss)
}

/// The standard deviation of the rate over its mean, regular losses.
pub fn coefficient_of_variation(b: f64) -> f64 {
    let log = -(-b).ln_1p();
    // <W²> / <W>² of an exponential between 1 - b and 1, less 1.
    ((1.0 - (1.0 - b).powi(2)) * log / (2.0 * b * b) - 1.0).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// docs/papers.md: exact means at one loss in 10,000 of (1/25, 1/2), (1/50, 1/4), (1/100, 1/8), (1/200, 1/16).
    #[test]
    fn the_means_of_kelly_s_table() {
        let rows = [
            (0.04, 0.5, 577.0),
            (0.02, 0.25, 695.0),
            (0.01, 0.125, 749.0),
            (0.005, 0.0625, 775.0),
        ];
        for (a, b, mean) in rows {
            let window = window_pkts(a, b, 1e-4);
            assert!((window - mean).abs() < 0.6, "({a}, {b}): {window}");
            assert!((first_term_pkts(a, b, 1e-4) - 800.0).abs() < 1e-6);
        }
    }

    #[test]
    fn the_first_term_is_the_limit_of_small_b() {
        let ratio = first_term_pkts(0.01, 1e-6, 1e-4) / window_pkts(0.01, 1e-6, 1e-4);
        assert!((ratio - 1.0).abs() < 1e-6);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! AIMD(a, b): a segments added in a round trip, the fraction b of the window given up at a loss. (1, 1/2) is Reno.

use crate::{Bound, Losses, Model, Quantity};

/// A loss after every 1/p segments.
pub const MODEL: Model = Model {
    name: "aimd",
    formula: "W = sqrt(a (2 - b) / (2 b p))",
    source: "Dunigan, Mathis, Tierney 2002, 4.3; the geometry of the sawtooth as in Mathis et al. 1997, section 2",
    losses: Losses::Regular,
    range: &RANGE,
    sim_error: Some(0.12),
};

/// Losses that do not know of each other.
pub const RANDOM_MODEL: Model = Model {
    name: "aimd-random",
    formula: "W = sqrt(a / 2p) / (b G), G = Γ(3/2) Π (1 - c^(k+1/2)) / (1 - c^k), c = (1 - b)²",
    source: "Ott, Kemperman, Mathis 1996, for (1, 1/2); for other (a, b) derived in aimd.rs",
    losses: Losses::Random,
    range: &RANGE,
    sim_error: Some(0.05),
};

/// Where W is large enough for the window to be a number and not a count.
pub(crate) const RANGE: [Bound; 2] = [
    Bound {
        of: Quantity::WindowPkts,
        min: 12.0,
        max: f64::INFINITY,
        why: "small windows end in timeouts, which the model does not have (pftk has them)",
    },
    Bound {
        of: Quantity::Loss,
        min: 0.0,
        max: 0.01,
        why: "several losses in a round trip are one congestion event, which the model does not know",
    },
];

/// The mean window under regular losses, segments: with a peak of W, a cycle lasts b W / a round trips at a mean of
/// (1 - b/2) W, and carries 1/p segments. a > 0, 0 < b < 1, loss above 0.
pub fn regular_pkts(a: f64, b: f64, loss: f64) -> f64 {
    (a * (2.0 - b) / (2.0 * b * loss)).sqrt()
}

/// The mean window under random losses, segments.
///
/// Z = W² grows by 2a with every segment and becomes (1 - b)² Z with probability p. In units of 2a/p the moments of its
/// stationary distribution follow from s M(s - 1) = (1 - c^s) M(s), c = (1 - b)², M(0) = 1, so the mean window that a
/// loss meets is sqrt(2a/p) M(1/2). A cycle of 1/p segments lasts b / a of it in round trips.
pub fn random_pkts(a: f64, b: f64, loss: f64) -> f64 {
    (a / (2.0 * loss)).sqrt() / (b * half_moment((1.0 - b).powi(2)))
}

/// M(1/2) = Γ(3/2) Π (1 - c^(k + 1/2)) / (1 - c^k) over k from 1.
fn half_moment(c: f64) -> f64 {
    let gamma_3_2 = std::f64::consts::PI.sqrt() / 2.0;
    let mut log_product = 0.0;
    let mut power = c;
    // The factor's logarithm is nearly c^k (1 - sqrt(c)); where it no longer counts the product is known.
    while power > 1e-12 {
        log_product += (-power * c.sqrt()).ln_1p() - (-power).ln_1p();
        power *= c;
    }
    gamma_3_2 * log_product.exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn random_losses_give_reno_1_31() {
        assert!((random_pkts(1.0, 0.5, 1.0) - 1.3099).abs() < 1e-3);
    }

    proptest! {
        /// A sawtooth that is hardly one has the same mean under any losses; a steep one gains from long cycles.
        #[test]
        fn randomness_adds_a_little(a in 0.1f64..50.0, b in 0.001f64..0.9, loss in 1e-9f64..0.01) {
            let ratio = random_pkts(a, b, loss) / regular_pkts(a, b, loss);
            prop_assert!((0.9999..1.6).contains(&ratio), "{ratio}");
            prop_assert!(b > 0.05 || ratio < 1.01, "{ratio}");
        }

        #[test]
        fn more_loss_is_a_smaller_window(a in 0.1f64..50.0, b in 0.01f64..0.9, loss in 1e-9f64..0.01) {
            prop_assert!(regular_pkts(a, b, loss) > regular_pkts(a, b, loss * 1.01));
            prop_assert!(random_pkts(a, b, loss) > random_pkts(a, b, loss * 1.01));
        }
    }
}

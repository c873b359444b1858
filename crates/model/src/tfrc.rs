// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rate that equation-based control allows (TFRC, RFC 5348), and the loss rate that a rate needs.

use crate::{Bound, Losses, Model, Path, Quantity};

/// The TCP throughput equation in its simplified form: b = 1, t_RTO = 4 R.
pub const MODEL: Model = Model {
    name: "tfrc",
    formula: "X = s / (R (sqrt(2p/3) + 12 sqrt(3p/8) p (1 + 32 p²)))",
    source: "RFC 5348, section 3.1; Padhye et al. 2000, equation (33) without the window limit",
    losses: Losses::Bursts,
    range: &[Bound {
        of: Quantity::Loss,
        min: 0.0,
        max: 0.01,
        why: "its timeouts of 4 R are rarer and shorter with SACK and tail loss probes",
    }],
    sim_error: Some(0.10),
};

/// The allowed rate, bits of data a second; loss event rate above 0.
pub fn rate_bps(path: &Path) -> f64 {
    path.rate_of_window_bps(window_pkts(path.loss))
}

/// The same in segments a round trip.
pub fn window_pkts(loss: f64) -> f64 {
    let avoidance = (2.0 * loss / 3.0).sqrt();
    let timeouts = 12.0 * (3.0 * loss / 8.0).sqrt() * loss * (1.0 + 32.0 * loss * loss);
    1.0 / (avoidance + timeouts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pftk;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_padhye_s_approximation(loss in 1e-8f64..0.1, rtt_s in 0.001f64..1.0) {
            let path = Path::new(rtt_s, loss);
            let of = pftk::Parameters { acked_per_ack: 1.0, timeout_s: 4.0 * rtt_s };
            let padhye = pftk::approximate_rate_pps(&path, &of) * rtt_s;
            prop_assert!((window_pkts(loss) / padhye - 1.0).abs() < 1e-9);
        }
    }
}

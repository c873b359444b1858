// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mathis, Semke, Mahdavi, Ott, "The macroscopic behavior of the TCP congestion avoidance algorithm" (CCR 27(3), 1997):
//! a rate of C MSS / (R sqrt(p)).
//!
//! TCP that counts acknowledged segments (RFC 3465, as Linux does) has the constant of an ACK for each segment, also
//! with delayed ACKs. Those of delayed ACKs hold for TCP that counts ACKs: it grows by half a segment a round trip.

use crate::aimd;
use crate::{Losses, Model};

/// Section 2, equation (3).
pub const MODEL: Model = Model {
    name: "mathis",
    formula: "W = sqrt(3/2) / sqrt(p)",
    source: "Mathis et al. 1997, section 2, equation (3); constants of table 1",
    losses: Losses::Regular,
    range: &aimd::RANGE,
    sim_error: Some(0.10),
};

/// The constant of randomly spread losses.
pub const RANDOM_MODEL: Model = Model {
    name: "mathis-random",
    formula: "W = 1.31 / sqrt(p)",
    source: "Ott, Kemperman, Mathis 1996, in Mathis et al. 1997, table 1",
    losses: Losses::Random,
    range: &aimd::RANGE,
    sim_error: Some(0.10),
};

/// An ACK for every second segment, and a sender that counts ACKs.
pub const DELAYED_ACK_MODEL: Model = Model {
    name: "mathis-delack",
    formula: "W = sqrt(3/4) / sqrt(p)",
    source: "Mathis et al. 1997, section 2, table 1; for TCP that counts ACKs, as Linux does not",
    losses: Losses::Regular,
    range: &aimd::RANGE,
    sim_error: Some(0.10),
};

/// sqrt(3/2), regular losses, an ACK for each segment: 1.22.
pub const C_REGULAR: f64 = 1.224_744_871_391_589;
/// sqrt(3/4), regular losses, delayed ACKs that are counted: 0.87.
pub const C_REGULAR_DELAYED_ACK: f64 = 0.866_025_403_784_438_6;
/// Random losses, an ACK for each segment; table 1 rounds it. [`aimd::random_pkts`] gives it with more digits.
pub const C_RANDOM: f64 = 1.31;
/// Random losses, delayed ACKs that are counted; table 1.
pub const C_RANDOM_DELAYED_ACK: f64 = 0.93;

/// The mean window, segments, at a loss rate above 0, with one of the constants.
pub fn window_pkts(c: f64, loss: f64) -> f64 {
    c / loss.sqrt()
}

/// Bits of data a second: C × MSS / (R sqrt(p)).
pub fn rate_bps(c: f64, mss_bytes: u32, rtt_s: f64, loss: f64) -> f64 {
    8.0 * f64::from(mss_bytes) / rtt_s * window_pkts(c, loss)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Dunigan (seed 004): C = 0.84, MSS 1500, 100 ms: loss rate and Mb/s.
    #[test]
    fn dunigan_s_table() {
        let table = [
            (1e-10, 10_080.0),
            (1e-8, 1_008.0),
            (1e-7, 318.757588),
            (1e-6, 100.8),
            (1e-5, 31.875759),
            (1e-3, 3.187576),
            (1e-2, 1.008),
            (1e-1, 0.318758),
        ];
        for (loss, mbps) in table {
            let rate_mbps = rate_bps(0.84, 1500, 0.1, loss) / 1e6;
            assert!((rate_mbps / mbps - 1.0).abs() < 2e-6, "{loss}: {rate_mbps}");
        }
    }

    /// Kelly (seed 002): 200 ms, 1500 bytes, 10 and 100 Mb/s: windows of 170 and 1700 (rounded up from 167 and 1667)
    /// and the loss rates 5.4e-5 and 5.4e-7.
    #[test]
    fn kelly_s_supporting_loss_rates() {
        for (window, loss) in [(166.67, 5.4e-5), (1666.7, 5.4e-7), (16_667.0, 5.4e-9)] {
            assert!((window_pkts(C_REGULAR, loss) / window - 1.0).abs() < 0.001);
        }
    }

    #[test]
    fn the_constants_are_those_of_aimd() {
        let regular = [(1.0, C_REGULAR), (0.5, C_REGULAR_DELAYED_ACK)];
        for (a, c) in regular {
            assert!((aimd::regular_pkts(a, 0.5, 1e-4) / window_pkts(c, 1e-4) - 1.0).abs() < 1e-12);
        }
        let random = [(1.0, C_RANDOM), (0.5, C_RANDOM_DELAYED_ACK)];
        for (a, c) in random {
            assert!((aimd::random_pkts(a, 0.5, 1e-4) / window_pkts(c, 1e-4) - 1.0).abs() < 0.005);
        }
    }
}

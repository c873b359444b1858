// SPDX-License-Identifier: MIT OR Apache-2.0
//! What BBR version 3 can reach at most on a path that it has alone (draft-ietf-ccwg-bbr-06): the rate of the
//! bottleneck less the pacing margin, the pauses of ProbeRTT and the lost segments.

use crate::{Bound, Losses, Model, Quantity};
use fatpath_cc::Law;

/// A bound, not a mean.
pub const MODEL: Model = Model {
    name: "bbr",
    formula: "rate (1 - margin) (1 - p) (1 - 0.5 (0.2 s + R) / 5.2 s)",
    source: "draft-ietf-ccwg-bbr-06, 2.5 (pacing margin), 2.16.2 (ProbeRTT), 2.7 (loss threshold)",
    losses: Losses::Random,
    range: &[Bound {
        of: Quantity::Loss,
        min: 0.0,
        max: 0.01,
        why: "at 2 % in a round trip (loss_thresh) losses count as congestion, and random ones reach that earlier",
    }],
    sim_error: Some(0.10),
};

/// 2.16.2: ProbeRTTInterval, the time from one ProbeRTT to the next.
const PROBE_RTT_EVERY_S: f64 = 5.0;
/// 2.16.2: ProbeRTTDuration.
const PROBE_RTT_S: f64 = 0.2;
/// 2.7: ProbeRTTCwndGain, of the bandwidth-delay product.
const PROBE_RTT_WINDOW_BDP: f64 = 0.5;

/// Bits of data a second, of a bottleneck that carries `data_bps`; `None` from the loss threshold on, where losses are
/// congestion and the rate depends on chance.
pub fn rate_bps(law: &Law, data_bps: f64, rtt_s: f64, loss: f64) -> Option<f64> {
    if loss >= law.number("loss_thresh") {
        return None;
    }
    let paced = 1.0 - law.number("pacing_margin");
    Some(data_bps * paced * (1.0 - loss) * (1.0 - probe_rtt_share(rtt_s)))
}

/// The share of its rate that ProbeRTT costs: for 0.2 s and the round trip until the window is down, half of it.
pub fn probe_rtt_share(rtt_s: f64) -> f64 {
    let pause_s = PROBE_RTT_S + rtt_s;
    (1.0 - PROBE_RTT_WINDOW_BDP) * pause_s / (PROBE_RTT_EVERY_S + PROBE_RTT_S)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probe_rtt_and_margin_cost_four_percent() {
        let law = Law::named("bbr").unwrap();
        let share = rate_bps(&law, 1.0, 0.1, 0.0).unwrap();
        assert!((share - 0.99 * (1.0 - 0.5 * 0.3 / 5.2)).abs() < 1e-9);
        assert!((0.95..0.97).contains(&share));
    }

    #[test]
    fn beyond_the_loss_threshold_nothing_is_promised() {
        let law = Law::named("bbr").unwrap();
        assert_eq!(rate_bps(&law, 1e9, 0.1, 0.02), None);
        assert!(rate_bps(&law, 1e9, 0.1, 0.0199).is_some());
        let tolerant = law.with("loss_thresh", 0.1).unwrap();
        assert!(rate_bps(&tolerant, 1e9, 0.1, 0.05).is_some());
    }
}

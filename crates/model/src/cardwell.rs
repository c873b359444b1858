// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cardwell, Savage, Anderson, "Modeling TCP latency" (INFOCOM 2000): the mean time of a transfer of any size:
//! handshake, slow start until the first loss, its repair, and what is left at the rate of [`pftk`].

use crate::{Bound, Losses, Model, Path, Quantity, pftk};

/// From the SYN to the acknowledgement of the last byte.
pub const MODEL: Model = Model {
    name: "cardwell",
    formula: "T = R + R log_g(d (g-1)/w1 + 1) + loss (Q Z + (1-Q) R) + (d - d_ss) / B + delayed ACK",
    source: "Cardwell et al. 2000, equations (4), (5), (11), (15) to (25)",
    losses: Losses::Bursts,
    range: &[
        Bound {
            of: Quantity::Loss,
            min: 0.0,
            max: 0.02,
            why: "most windows are too small for a fast retransmission",
        },
        Bound {
            of: Quantity::TransferPkts,
            min: 50.0,
            max: f64::INFINITY,
            why: "its round trips are no whole numbers (transfer has whole ones)",
        },
        Bound {
            of: Quantity::LossesOfTransfer,
            min: 0.0,
            max: 0.75,
            why: "after a loss in slow start the window is larger than in the long run (transfer has that)",
        },
    ],
    sim_error: Some(0.15),
};

/// Beside path and size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// The initial window, segments (10: RFC 6928).
    pub initial_window_pkts: f64,
    /// What the window is multiplied by in a round trip of slow start: 2, or 1.5 with delayed ACKs that are counted.
    pub growth: f64,
    /// Of the long run.
    pub long_run: pftk::Parameters,
    /// The first timeout of a SYN (1 s: RFC 6298; the paper has 3 s).
    pub syn_timeout_s: f64,
    /// Loss of ACKs and SYN-ACKs, on the way back.
    pub loss_back: f64,
    /// The mean wait for the acknowledgement of the last segment (the paper: 0.1 or 0.15 s with delayed ACKs).
    pub delayed_ack_s: f64,
}

impl Parameters {
    /// As Linux has them, with losses on the way of the data alone.
    pub fn linux(rtt_s: f64) -> Parameters {
        Parameters {
            initial_window_pkts: 10.0,
            growth: 2.0,
            long_run: pftk::Parameters::linux(rtt_s),
            syn_timeout_s: 1.0,
            loss_back: 0.0,
            delayed_ack_s: 0.0,
        }
    }
}

/// The parts of a transfer's mean time, seconds.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Transfer {
    /// SYN and SYN-ACK.
    pub handshake_s: f64,
    /// Until all is sent or the first segment is lost.
    pub slow_start_s: f64,
    /// Repair of the first loss.
    pub first_loss_s: f64,
    /// All that is sent afterwards.
    pub avoidance_s: f64,
    /// Wait for the last acknowledgement.
    pub delayed_ack_s: f64,
    /// Segments sent in slow start.
    pub slow_start_pkts: f64,
    /// Window when it ends, segments.
    pub slow_start_window_pkts: f64,
}

impl Transfer {
    /// All of it.
    pub fn total_s(&self) -> f64 {
        let of_data = self.slow_start_s + self.first_loss_s + self.avoidance_s;
        self.handshake_s + of_data + self.delayed_ack_s
    }
}

/// The mean time of `segments`, at least 1, over the path: its loss is below 1, and below a half for the handshake.
/// The window goes no further than [`Path::largest_useful_pkts`].
pub fn transfer(path: &Path, segments: f64, of: &Parameters) -> Transfer {
    let most = path.largest_useful_pkts();
    let path = Path {
        max_window_pkts: most,
        ..*path
    };
    let p = path.loss;
    let slow_start_pkts = expected_slow_start_pkts(p, segments);
    let window = window_after(slow_start_pkts, of);
    let reached = most.map_or(window, |most| window.min(most));
    let has_loss = 1.0 - (1.0 - p).powf(segments);
    let timeout_s = pftk::backoff(p) * of.long_run.timeout_s / (1.0 - p);
    let timeouts = pftk::timeout_share(p, reached);
    let left = segments - slow_start_pkts;
    Transfer {
        handshake_s: handshake_s(&path, of),
        slow_start_s: slow_start_s(path.rtt_s, slow_start_pkts, most, of),
        first_loss_s: has_loss * (timeouts * timeout_s + (1.0 - timeouts) * path.rtt_s),
        avoidance_s: match left > 0.0 && p > 0.0 {
            true => left / pftk::send_rate_pps(&path, &of.long_run),
            false => 0.0,
        },
        delayed_ack_s: of.delayed_ack_s,
        slow_start_pkts,
        slow_start_window_pkts: reached,
    }
}

/// Equation (4).
pub(crate) fn handshake_s(path: &Path, of: &Parameters) -> f64 {
    let repeats = |p: f64| (1.0 - p) / (1.0 - 2.0 * p) - 1.0;
    path.rtt_s + of.syn_timeout_s * (repeats(path.loss) + repeats(of.loss_back))
}

/// E[d_ss], equation (5): segments until the first loss, with the one that is lost; all of them without loss.
fn expected_slow_start_pkts(p: f64, segments: f64) -> f64 {
    if p <= 0.0 {
        return segments;
    }
    // 1 - (1 - p)^d, also where p is small.
    let has_loss = -(segments * (-p).ln_1p()).exp_m1();
    (has_loss * (1.0 - p) / p + 1.0).min(segments)
}

/// E[W_ss], equation (11).
pub(crate) fn window_after(sent_pkts: f64, of: &Parameters) -> f64 {
    let (g, w1) = (of.growth, of.initial_window_pkts);
    (sent_pkts * (g - 1.0) / g + w1 / g).max(w1)
}

/// E[T_ss], equation (15).
pub(crate) fn slow_start_s(rtt_s: f64, sent_pkts: f64, most: Option<f64>, of: &Parameters) -> f64 {
    let (g, w1) = (of.growth, of.initial_window_pkts);
    let round_trips = |pkts: f64| (pkts * (g - 1.0) / w1 + 1.0).ln() / g.ln();
    match most {
        // The window reaches its limit: what is left goes a window each round trip.
        Some(most) if window_after(sent_pkts, of) > most => {
            let opened = (g * most.max(w1) - w1) / (g - 1.0);
            let left = (sent_pkts - opened).max(0.0);
            rtt_s * (round_trips(sent_pkts.min(opened)) + left / most)
        }
        _ => rtt_s * round_trips(sent_pkts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn total_s(path: &Path, segments: f64) -> f64 {
        transfer(path, segments, &Parameters::linux(path.rtt_s)).total_s()
    }

    /// Three full round trips of 10, 20, 40 segments after the handshake.
    #[test]
    fn seventy_segments_take_a_handshake_and_three_round_trips() {
        assert!((total_s(&Path::new(0.1, 0.0), 70.0) - 0.4).abs() < 1e-9);
    }

    #[test]
    fn without_loss_a_long_transfer_takes_its_size_over_the_rate() {
        let path = Path {
            rate_bps: Some(1e8),
            ..Path::new(0.05, 0.0)
        };
        let segments = 1e6;
        let at_rate_s = segments * 1448.0 * 8.0 / path.data_rate_bps().unwrap();
        let ratio = total_s(&path, segments) / at_rate_s;
        assert!((1.0..1.01).contains(&ratio), "{ratio}");
    }

    #[test]
    fn with_loss_a_long_transfer_goes_at_padhye_s_rate() {
        let path = Path::new(0.05, 1e-3);
        let rate_pps = pftk::send_rate_pps(&path, &pftk::Parameters::linux(0.05));
        let ratio = total_s(&path, 1e7) * rate_pps / 1e7;
        assert!((0.99..1.01).contains(&ratio), "{ratio}");
    }

    /// Equation (4): a SYN lost with probability 1/4 costs half of the timeout.
    #[test]
    fn a_lost_syn_costs_its_timeout() {
        let parts = transfer(&Path::new(0.1, 0.25), 1.0, &Parameters::linux(0.1));
        assert!((parts.handshake_s - 0.6).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn more_data_loss_or_distance_never_hurries(
            segments in 1.0f64..1e6, loss in 1e-7f64..0.02, rtt_s in 0.001f64..0.5, rate_bps in 1e6f64..1e11,
        ) {
            let path = |loss, rtt_s| Path { rate_bps: Some(rate_bps), ..Path::new(rtt_s, loss) };
            let base = total_s(&path(loss, rtt_s), segments);
            prop_assert!(base.is_finite() && base > rtt_s);
            prop_assert!(total_s(&path(loss, rtt_s), segments * 1.1) >= base * 0.9999);
            prop_assert!(total_s(&path(loss, rtt_s * 1.1), segments) >= base * 0.9999);
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The mean time of a transfer of any size, as [`cardwell`] has it, but for what its authors left out: round trips of slow
//! start are whole, the mean is taken over where the first loss is, and after it the window falls from half of what slow
//! start reached to that of the long run, and is not there at once.

use crate::cardwell::{self, Parameters};
use crate::{Bound, Losses, Model, Path, Quantity, pftk};

/// From the SYN to the acknowledgement of the last byte.
pub const MODEL: Model = Model {
    name: "transfer",
    formula: "mean over the first loss, at segment n: R + R ceil(log2(n/w1 + 1)) + R ∫ dm/W(m) + R, W² -> W∞² by exp(-3/4 p m)",
    source: "Cardwell et al. 2000, equations (4), (11) and (15); the rest derived in transfer.rs",
    losses: Losses::Random,
    range: &[
        Bound {
            of: Quantity::Loss,
            min: 0.0,
            max: 0.02,
            why: "windows are so small that many losses end in a timeout",
        },
        Bound {
            of: Quantity::TransferPkts,
            min: 10.0,
            max: f64::INFINITY,
            why: "the time of less than a window is a round trip and a count of timeouts",
        },
    ],
    sim_error: Some(0.10),
};

/// Places of the first loss over which the mean is taken, and steps of the integral.
const PLACES: u32 = 64;
const STEPS: u32 = 64;
/// Of W², what a loss leaves (Reno).
const SQUARE_KEPT: f64 = 0.25;

/// The mean time of `segments`, at least 1; as [`cardwell::transfer`].
pub fn mean_s(path: &Path, segments: f64, of: &Parameters) -> f64 {
    let path = Path {
        max_window_pkts: path.largest_useful_pkts(),
        ..*path
    };
    let transfer = Transfer { path, segments, of };
    let handshake_s = cardwell::handshake_s(&path, of);
    handshake_s + transfer.data_s() + of.delayed_ack_s
}

struct Transfer<'p> {
    path: Path,
    segments: f64,
    of: &'p Parameters,
}

impl Transfer<'_> {
    fn data_s(&self) -> f64 {
        let without_loss_s = self.slow_start_s(self.segments);
        if self.path.loss <= 0.0 {
            return without_loss_s;
        }
        let log_kept = (-self.path.loss).ln_1p();
        let has_loss = -(self.segments * log_kept).exp_m1();
        let place = |of: u32| {
            let share = has_loss * (f64::from(of) + 0.5) / f64::from(PLACES);
            self.with_loss_s((-share).ln_1p() / log_kept)
        };
        let with_loss_s = (0..PLACES).map(place).sum::<f64>() / f64::from(PLACES);
        has_loss * with_loss_s + (1.0 - has_loss) * without_loss_s
    }

    /// The first lost segment is the `lost`-th. When its loss is known, all before it have been acknowledged, the window has
    /// grown by as many, and so much more has been sent; half of it is kept.
    fn with_loss_s(&self, lost: f64) -> f64 {
        let window = self.limited(self.of.growth * cardwell::window_after(lost, self.of));
        let left = (self.segments - lost - window).max(0.0);
        self.slow_start_s(lost) + self.path.rtt_s * (1.0 + self.settling(left, window / 2.0))
    }

    /// Round trips in which `left` segments are sent while the window goes from `window` to that of the long run: W² grows
    /// by 2 with each segment and loses 3/4 with probability p.
    fn settling(&self, left: f64, window: f64) -> f64 {
        let settled = pftk::window_pkts(&self.path, &self.of.long_run).powi(2);
        let speed = self.path.loss * (1.0 - SQUARE_KEPT);
        let step = left / f64::from(STEPS);
        let round_trips = |of: u32| {
            let sent = (f64::from(of) + 0.5) * step;
            let square = settled + (window * window - settled) * (-speed * sent).exp();
            step / self.limited(square.sqrt())
        };
        (0..STEPS).map(round_trips).sum()
    }

    /// Whole round trips while the window is unlimited: its segments leave together.
    fn slow_start_s(&self, segments: f64) -> f64 {
        let most = self.path.max_window_pkts;
        let exact_s = cardwell::slow_start_s(self.path.rtt_s, segments, most, self.of);
        match most {
            Some(most) if cardwell::window_after(segments, self.of) > most => exact_s,
            // Less what a float lacks of a whole number.
            _ => (exact_s / self.path.rtt_s - 1e-9).ceil() * self.path.rtt_s,
        }
    }

    fn limited(&self, window: f64) -> f64 {
        let most = self.path.max_window_pkts;
        most.map_or(window, |most| window.min(most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn time_s(path: &Path, segments: f64) -> f64 {
        mean_s(path, segments, &Parameters::linux(path.rtt_s))
    }

    #[test]
    fn seventy_segments_take_three_round_trips_and_seventy_one_four() {
        let path = Path::new(0.1, 0.0);
        assert!((time_s(&path, 70.0) - 0.4).abs() < 1e-9);
        assert!((time_s(&path, 71.0) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn very_long_ones_go_at_padhye_s_rate() {
        let path = Path::new(0.05, 1e-3);
        let rate_pps = pftk::send_rate_pps(&path, &pftk::Parameters::linux(0.05));
        let ratio = time_s(&path, 1e7) * rate_pps / 1e7;
        assert!((0.98..1.01).contains(&ratio), "{ratio}");
    }

    proptest! {
        #[test]
        fn more_data_and_distance_take_longer(
            segments in 1.0f64..1e6, loss in 0.0f64..0.02, rtt_s in 0.001f64..0.5, rate_bps in 1e6f64..1e11,
        ) {
            let path = |rtt_s| Path { rate_bps: Some(rate_bps), ..Path::new(rtt_s, loss) };
            let base = time_s(&path(rtt_s), segments);
            prop_assert!(base.is_finite() && base > rtt_s);
            prop_assert!(time_s(&path(rtt_s), segments * 1.5) >= base * 0.98);
            prop_assert!(time_s(&path(rtt_s * 1.1), segments) >= base * 0.98);
        }
    }
}

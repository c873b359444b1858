// SPDX-License-Identifier: MIT OR Apache-2.0
//! The loss rate that a throughput supports: any model of the window, the other way round.

/// No link loses less often, and no law says anything at more.
const LOSSES: (f64, f64) = (1e-18, 0.5);

/// The loss rate at which `window_of`, which falls with it, is `window_pkts`; `None` when it has that window at no loss
/// rate between 1e-18 and a half.
pub fn loss_of_window(window_pkts: f64, window_of: impl Fn(f64) -> f64) -> Option<f64> {
    let (mut low, mut high) = (LOSSES.0.ln(), LOSSES.1.ln());
    let is_between = window_of(LOSSES.0) >= window_pkts && window_of(LOSSES.1) <= window_pkts;
    if !is_between {
        return None;
    }
    // 2^-60 of the range of logarithms: more digits than a float has.
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        match window_of(middle.exp()) > window_pkts {
            true => low = middle,
            false => high = middle,
        }
    }
    Some(((low + high) / 2.0).exp())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{aimd, cubic, mathis, scalable, tfrc};
    use fatpath_cc::Law;
    use proptest::prelude::*;

    /// RFC 9438, table 3: 1500 bytes, 0.1 s: window, and loss rates of TCP (as 1.2 / sqrt(p)), HSTCP, CUBIC, with
    /// two digits, of which the last is cut off.
    #[test]
    fn the_losses_of_the_rfc_s_table() {
        let law = Law::named("highspeed").unwrap();
        let rows = [
            (83.3, 2.0e-4, 3.9e-4, 2.9e-4),
            (833.3, 2.0e-6, 2.5e-5, 1.4e-5),
            (8_333.3, 2.0e-8, 1.5e-6, 6.3e-7),
            (83_333.3, 2.0e-10, 1.0e-7, 2.9e-8),
        ];
        for (window, tcp, highspeed, cubic) in rows {
            let near = |loss: Option<f64>, expected: f64| {
                let loss = loss.unwrap();
                assert!(
                    (loss / expected - 1.0).abs() < 0.07,
                    "{window}: {loss} for {expected}"
                );
            };
            near(
                loss_of_window(window, |p| mathis::window_pkts(1.2, p)),
                tcp * 1.04,
            );
            near(
                loss_of_window(window, |p| crate::highspeed::window_pkts(&law, p)),
                highspeed,
            );
            near(
                loss_of_window(window, |p| cubic::window_pkts(0.4, 0.7, 0.1, p)),
                cubic,
            );
        }
    }

    #[test]
    fn a_window_that_no_loss_gives_has_none() {
        assert_eq!(loss_of_window(1e12, |p| mathis::window_pkts(1.0, p)), None);
        assert_eq!(loss_of_window(0.1, |p| mathis::window_pkts(1.0, p)), None);
    }

    proptest! {
        #[test]
        fn the_inverse_of_the_inverse(loss in 1e-12f64..0.2) {
            let windows: [&dyn Fn(f64) -> f64; 5] = [
                &|p| mathis::window_pkts(mathis::C_REGULAR, p),
                &|p| aimd::random_pkts(4.0, 0.125, p),
                &|p| scalable::window_pkts(0.01, 0.125, p),
                &|p| cubic::window_pkts(0.4, 0.7, 0.1, p),
                &tfrc::window_pkts,
            ];
            for window_of in windows {
                let found = loss_of_window(window_of(loss), window_of).unwrap();
                prop_assert!((found / loss - 1.0).abs() < 1e-6, "{found} for {loss}");
            }
        }
    }
}

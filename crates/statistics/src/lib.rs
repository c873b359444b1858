// SPDX-License-Identifier: MIT OR Apache-2.0
//! Median, quantiles, mean, standard deviation and confidence interval of a few values.
//!
//! Pure. It knows nothing of what the values are. Start with [`median`] and [`Statistic::of`].

mod quantile;

pub use quantile::{median, quantile, spread};

use serde::Serialize;

/// What repeated runs say of one figure, in the figure's unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Statistic {
    /// How many values there were, at least 1.
    pub n: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation of the sample (divided by n - 1); `None` for one value.
    pub sd: Option<f64>,
    /// Half the width of the 95 % confidence interval of the mean, by Student's t; `None` for one
    /// value. It presumes that runs are independent and about normally distributed.
    pub ci95: Option<f64>,
}

impl Statistic {
    /// Of all values; `None` without any.
    pub fn of(values: &[f64]) -> Option<Statistic> {
        let n = values.len();
        if n == 0 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / n as f64;
        let sd = (n > 1).then(|| {
            let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
            (squares / (n - 1) as f64).sqrt()
        });
        Some(Statistic {
            n,
            mean,
            sd,
            ci95: sd.map(|sd| student_t_975(n - 1) * sd / (n as f64).sqrt()),
        })
    }
}

/// How many times as large one figure is as another, by pairs of runs that differ in nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// How many pairs there were, at least 1.
    pub n: usize,
    /// Geometric mean of the pairs' ratios.
    pub mean: f64,
    /// The 95 % confidence interval of that, by Student's t of the logarithms; `None` for one pair.
    pub ci95: Option<[f64; 2]>,
}

impl Ratio {
    /// Of pairs of a figure and what it is compared with; those that are not both above 0 have no
    /// ratio. `None` without any that have.
    pub fn of(pairs: impl Iterator<Item = (f64, f64)>) -> Option<Ratio> {
        let pairs = pairs.filter(|(one, base)| *one > 0.0 && *base > 0.0);
        let logs: Vec<f64> = pairs.map(|(one, base)| (one / base).ln()).collect();
        let Statistic { n, mean, ci95, .. } = Statistic::of(&logs)?;
        Some(Ratio {
            n,
            mean: mean.exp(),
            ci95: ci95.map(|ci95| [mean - ci95, mean + ci95].map(f64::exp)),
        })
    }
}

/// The quantile of Student's t that leaves 2.5 % above it, for so many degrees of freedom (at
/// least 1). Source: NIST/SEMATECH e-Handbook, 1.3.6.7.2, up to 30; beyond, the expansion of
/// Abramowitz and Stegun, 26.7.5, which is right to five digits there.
fn student_t_975(degrees: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
        2.052, 2.048, 2.045, 2.042,
    ];
    /// The same quantile of the normal distribution.
    const Z: f64 = 1.959_963_985;
    if let Some(t) = TABLE.get(degrees.saturating_sub(1)) {
        return *t;
    }
    let v = degrees as f64;
    let first = (Z.powi(3) + Z) / 4.0;
    let second = (5.0 * Z.powi(5) + 16.0 * Z.powi(3) + 3.0 * Z) / 96.0;
    Z + first / v + second / v.powi(2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn five_values_have_the_interval_that_the_textbook_gives() {
        let of = Statistic::of(&[9.0, 10.0, 11.0, 12.0, 13.0]).unwrap();
        assert_eq!((of.n, of.mean), (5, 11.0));
        assert!((of.sd.unwrap() - 2.5f64.sqrt()).abs() < 1e-12);
        assert!((of.ci95.unwrap() - 2.776 * (2.5f64 / 5.0).sqrt()).abs() < 1e-9);
    }

    #[test]
    fn one_value_has_no_spread_and_none_has_nothing() {
        let of = Statistic::of(&[7.0]).unwrap();
        assert_eq!((of.mean, of.sd, of.ci95), (7.0, None, None));
        assert_eq!(Statistic::of(&[]), None);
    }

    #[test]
    fn a_ratio_is_that_of_the_pairs_however_the_runs_differ() {
        // Twice and eight times: four times in the middle, wherever the machine was.
        let ratio = Ratio::of([(2.0, 1.0), (800.0, 100.0), (5.0, 0.0)].into_iter()).unwrap();
        assert_eq!(ratio.n, 2);
        assert!((ratio.mean - 4.0).abs() < 1e-9, "{ratio:?}");
        let [low, high] = ratio.ci95.unwrap();
        let half = 12.706 * 2f64.ln();
        assert!((low.ln() - (4f64.ln() - half)).abs() < 1e-9);
        assert!((high.ln() - (4f64.ln() + half)).abs() < 1e-9);
        assert_eq!(Ratio::of([(3.0, 1.0)].into_iter()).unwrap().ci95, None);
        assert_eq!(Ratio::of([(0.0, 1.0)].into_iter()), None);
    }

    #[test]
    fn the_expansion_joins_the_table_and_ends_in_the_normal_distribution() {
        // Tables give 2.0395 for 31, 2.0003 for 60, 1.9840 for 100.
        for (degrees, t) in [(31, 2.0395), (60, 2.0003), (100, 1.9840)] {
            assert!((student_t_975(degrees) - t).abs() < 1e-4, "{degrees}");
        }
        assert!((student_t_975(1_000_000) - 1.959_966).abs() < 1e-5);
    }

    proptest! {
        #[test]
        fn a_shift_moves_the_mean_only(
            values in prop::collection::vec(-1e6..1e6f64, 2..50), shift in -1e6..1e6f64
        ) {
            let plain = Statistic::of(&values).unwrap();
            let shifted: Vec<f64> = values.iter().map(|value| value + shift).collect();
            let shifted = Statistic::of(&shifted).unwrap();
            prop_assert!((shifted.mean - plain.mean - shift).abs() < 1e-6);
            prop_assert!((shifted.ci95.unwrap() - plain.ci95.unwrap()).abs() < 1e-3);
        }
    }
}

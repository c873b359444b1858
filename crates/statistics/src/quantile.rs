// SPDX-License-Identifier: MIT OR Apache-2.0
//! Median, quantiles and spread of a few numbers.

/// The middle value, or the mean of the two; `None` without any.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values.iter().copied(), 0.5)
}

/// The quantile of `share`, 0 to 1, between the two numbers next to it; `None` of no numbers.
pub fn quantile(numbers: impl IntoIterator<Item = f64>, share: f64) -> Option<f64> {
    let mut numbers: Vec<f64> = numbers.into_iter().collect();
    numbers.sort_by(f64::total_cmp);
    let place = share * numbers.len().checked_sub(1)? as f64;
    let (below, above) = (place.floor() as usize, place.ceil() as usize);
    let part = place - place.floor();
    match below == above {
        true => Some(numbers[below]),
        false => Some(numbers[below] * (1.0 - part) + numbers[above] * part),
    }
}

/// Standard deviation of the logarithms; 0 of fewer than two numbers.
pub fn spread(numbers: impl IntoIterator<Item = f64>) -> f64 {
    let logarithms: Vec<f64> = numbers.into_iter().map(f64::ln).collect();
    let n = logarithms.len() as f64;
    if logarithms.len() < 2 {
        return 0.0;
    }
    let mean = logarithms.iter().sum::<f64>() / n;
    let squares = logarithms.iter().map(|ln| (ln - mean).powi(2));
    (squares.sum::<f64>() / (n - 1.0)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[f64::INFINITY]), Some(f64::INFINITY));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn a_quantile_lies_between_its_neighbours() {
        assert_eq!(quantile([3.0, 1.0, 2.0], 0.5), Some(2.0));
        assert_eq!(quantile([1.0, 2.0], 0.25), Some(1.25));
        assert_eq!(quantile([7.0], 0.9), Some(7.0));
        assert_eq!(quantile([], 0.5), None);
    }

    #[test]
    fn spread_is_of_ratios() {
        assert_eq!(spread([5.0]), 0.0);
        let spread = spread([1.0, std::f64::consts::E.powi(2)]);
        assert!((spread - 2_f64.sqrt()).abs() < 1e-9, "{spread}");
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! How the congestion window of a connection moved, from its samples, and to these exact.
//!
//! Pure. Start with [`of`].

use fatpath_sim::Sample;

use crate::measured::Window;

/// Over all samples; `None` without a window.
pub(super) fn of(samples: &[Sample]) -> Option<Window> {
    let windows = samples.iter().filter(|sample| sample.cwnd_pkts > 0);
    let windows: Vec<f64> = windows.map(|sample| sample.cwnd_pkts.into()).collect();
    let count = windows.len() as f64;
    let mean = windows.iter().sum::<f64>() / count;
    let squares = windows.iter().map(|window| (window - mean).powi(2));
    let variance = squares.sum::<f64>() / count;
    (!windows.is_empty()).then(|| Window {
        mean_pkts: mean,
        cov: variance.sqrt() / mean,
        recovery_s: recovery_s(samples),
    })
}

/// From the first loss until the window is again what it was.
fn recovery_s(samples: &[Sample]) -> Option<f64> {
    let is_loss = |pair: &[Sample]| {
        pair[1].retransmits > pair[0].retransmits && pair[1].cwnd_pkts < pair[0].cwnd_pkts
    };
    let loss = samples.windows(2).position(is_loss)?;
    let prior_cwnd_pkts = samples[loss].cwnd_pkts;
    let after = &samples[loss + 1..];
    let again = after
        .iter()
        .find(|sample| sample.cwnd_pkts >= prior_cwnd_pkts)?;
    Some((again.at_ns - after[0].at_ns) as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sample each second: the window, and retransmissions so far.
    fn samples(points: &[(u32, u64)]) -> Vec<Sample> {
        let sample = |(s, (cwnd_pkts, retransmits)): (usize, &(u32, u64))| Sample {
            at_ns: s as u64 * 1_000_000_000,
            cwnd_pkts: *cwnd_pkts,
            retransmits: *retransmits,
            ..Sample::default()
        };
        points.iter().enumerate().map(sample).collect()
    }

    #[test]
    fn recovery_lasts_from_the_first_loss_until_the_window_is_back() {
        let fall = [(8, 0), (20, 0), (10, 1), (15, 1), (21, 1), (10, 2), (40, 2)];
        assert_eq!(of(&samples(&fall)).unwrap().recovery_s, Some(2.0));
        assert_eq!(of(&samples(&fall[..4])).unwrap().recovery_s, None);
        let idle = [(8, 0), (20, 0), (10, 0), (20, 0)];
        assert_eq!(of(&samples(&idle)).unwrap().recovery_s, None);
    }

    #[test]
    fn variation_is_of_the_time_with_a_window() {
        let window = of(&samples(&[(0, 0), (10, 0), (30, 0)])).unwrap();
        assert_eq!((window.mean_pkts, window.cov), (20.0, 0.5));
        assert_eq!(of(&samples(&[(0, 0)])), None);
    }
}

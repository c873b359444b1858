// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the sender's kernel said of a flow beside what a capture shows of it, at the moments of the kernel's samples.

use crate::half::smoothed;
use crate::history::{Mark, Point, Way};
use serde::Serialize;

/// Of the same moments.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Medians {
    /// Moments at which both said something.
    pub samples: u64,
    /// Median of what the kernel said.
    pub kernel: f64,
    /// Of what the capture shows.
    pub capture: f64,
    /// Median of how far the two are apart at a moment, whatever the sign.
    pub apart: f64,
}

/// The kernel beside the capture; none where one of them has nothing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Beside {
    /// Congestion window and its estimate, bytes.
    pub cwnd_bytes: Option<Medians>,
    /// In flight, bytes.
    pub in_flight_bytes: Option<Medians>,
    /// Smoothed round-trip time; the capture's is smoothed as the kernel does it, µs.
    pub srtt_us: Option<Medians>,
    /// Segments sent again between the first sample and the last: by the kernel's count.
    pub retransmitted_kernel: u64,
    /// As the capture shows them.
    pub retransmitted_capture: u64,
}

impl Way {
    /// Compares; empty where the kernel said nothing.
    pub fn beside_kernel(&self) -> Beside {
        let kernel = &self.kernel;
        let us = |medians: Medians| Medians {
            kernel: medians.kernel / 1e3,
            capture: medians.capture / 1e3,
            apart: medians.apart / 1e3,
            ..medians
        };
        Beside {
            cwnd_bytes: medians(&kernel.cwnd, &self.cwnd),
            in_flight_bytes: medians(&kernel.in_flight, &self.in_flight),
            srtt_us: medians(&kernel.srtt, &smooth(&self.rtt)).map(us),
            retransmitted_kernel: kernel.retransmitted_packets,
            retransmitted_capture: self.resent_while_sampled(),
        }
    }

    fn resent_while_sampled(&self) -> u64 {
        let samples = &self.kernel.cwnd;
        let (Some(first), Some(last)) = (samples.first(), samples.last()) else {
            return 0;
        };
        let kinds = Mark::ALL
            .into_iter()
            .filter(|mark| matches!(mark, Mark::Again(_)));
        let spans = kinds.flat_map(|mark| self.of(mark));
        let sampled = spans.filter(|span| (first.time_ns..=last.time_ns).contains(&span.time_ns));
        let mss_bytes = u64::from(self.kernel.mss_bytes.max(1));
        // A super-packet is several segments.
        let segments = |bytes: i64| (bytes.max(1) as u64).div_ceil(mss_bytes);
        sampled.map(|span| segments(span.end - span.start)).sum()
    }
}

fn smooth(rtt: &[Point]) -> Vec<Point> {
    let mut srtt_ns = None;
    let points = rtt.iter().map(|point| {
        let value = smoothed(srtt_ns, point.value);
        srtt_ns = Some(value);
        Point { value, ..*point }
    });
    points.collect()
}

/// What the capture shows holds until it shows something else.
fn medians(kernel: &[Point], capture: &[Point]) -> Option<Medians> {
    let shown = |at_ns: i64| {
        let after = capture.partition_point(|point| point.time_ns <= at_ns);
        Some(capture.get(after.checked_sub(1)?)?.value)
    };
    let end_ns = capture.last()?.time_ns;
    let during = kernel.iter().filter(|point| point.time_ns <= end_ns);
    let pairs = during.filter_map(|point| Some((point.value, shown(point.time_ns)?)));
    let (said, seen): (Vec<i64>, Vec<i64>) = pairs.unzip();
    let apart = said.iter().zip(&seen);
    let apart: Vec<i64> = apart.map(|(a, b)| a.abs_diff(*b) as i64).collect();
    Some(Medians {
        samples: said.len() as u64,
        kernel: median(said)?,
        capture: median(seen)?,
        apart: median(apart)?,
    })
}

fn median(mut values: Vec<i64>) -> Option<f64> {
    values.sort_unstable();
    values.get(values.len() / 2).map(|value| *value as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{KernelSaid, Retransmission, Span};

    fn points(values: &[(i64, i64)]) -> Vec<Point> {
        let point = |(time_ns, value): &(i64, i64)| Point {
            time_ns: *time_ns,
            value: *value,
        };
        values.iter().map(point).collect()
    }

    #[test]
    fn both_are_compared_at_the_moments_of_the_samples() {
        let kernel = points(&[(5, 100), (15, 110), (25, 120), (99, 7)]);
        let capture = points(&[(10, 100), (20, 150), (30, 0)]);
        let found = medians(&kernel, &capture).unwrap();
        assert_eq!(found.samples, 2, "before the capture, and after it: none");
        assert_eq!(
            (found.kernel, found.capture, found.apart),
            (120.0, 150.0, 30.0)
        );
        assert_eq!(medians(&kernel, &[]), None);
        assert_eq!(medians(&[], &capture), None);
    }

    #[test]
    fn what_was_sent_again_is_counted_in_segments_while_samples_were_taken() {
        let mut way = Way::default();
        let fast = Mark::ALL
            .iter()
            .position(|mark| *mark == Mark::Again(Retransmission::Fast));
        let again = |time_ns, bytes| Span {
            time_ns,
            start: 0,
            end: bytes,
        };
        way.segments[fast.unwrap()] =
            vec![again(1, 10), again(10, 25), again(20, 10), again(31, 10)];
        way.segments[0] = vec![again(15, 10)];
        assert_eq!(way.beside_kernel().retransmitted_capture, 0);
        way.kernel = KernelSaid {
            cwnd: points(&[(5, 1), (30, 1)]),
            mss_bytes: 10,
            ..KernelSaid::default()
        };
        assert_eq!(way.beside_kernel().retransmitted_capture, 4);
    }

    #[test]
    fn round_trips_are_smoothed_as_the_kernel_does_it() {
        let mut way = Way::default();
        way.rtt = points(&[(1, 8_000), (2, 16_000)]);
        way.kernel.srtt = points(&[(2, 9_000)]);
        let found = way.beside_kernel().srtt_us.unwrap();
        assert_eq!((found.kernel, found.capture, found.apart), (9.0, 9.0, 0.0));
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The line through the responses of several trains, and what it says of the path.

use crate::Response;
use serde::{Deserialize, Serialize};

/// A train whose stretch is above this met an overloaded bottleneck; below, it may be noise.
pub(crate) const OVERLOADED: f64 = 1.08;

/// The doubt that is said at least: timestamps and pacing of real hosts are no better.
const LEAST_DOUBT: f64 = 0.02;

/// Doubt of what one or two trains say, or trains that found the queue full, or of a rate that no train had.
pub(crate) const BLIND_DOUBT: f64 = 0.5;

/// Most of the bottleneck that cross traffic is believed to take.
const MOST_CROSS: f64 = 0.95;

/// Loss above which a train is believed to have overflowed a queue.
const OVERFLOW_LOSS: f64 = 0.02;

/// What trains say of a path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Rate of the bottleneck.
    pub bottleneck: Value,
    /// What cross traffic leaves of it.
    pub available: Value,
    /// Size of the bottleneck's queue; none where no train met it.
    pub queue: Option<Queue>,
    /// Share of packets lost of trains that overloaded nothing; none where all did.
    pub loss: Option<f64>,
    /// Bytes of IP packets that were sent for it.
    pub sent_bytes: u64,
}

/// A rate with its doubt.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Value {
    /// Bits of IP packets a second.
    pub bps: f64,
    /// Two standard errors, as a share of the value.
    pub doubt: f64,
    /// Whether the value is only a lower bound: no train was faster than the path.
    pub at_least: bool,
}

/// The size of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Queue {
    /// Bytes of IP packets.
    pub bytes: f64,
    /// Whether it is only a lower bound: it never overflowed.
    pub at_least: bool,
}

/// The stretch as a function of the input rate: `stretch = input / bottleneck + cross`.
#[derive(Clone, Copy, Debug)]
struct Line {
    /// 1 / bottleneck.
    slope: f64,
    /// Share of the bottleneck that cross traffic takes.
    cross: f64,
}

impl Estimate {
    /// The estimate from all responses; `None` without any.
    pub fn of(responses: &[Response], sent_bytes: u64) -> Option<Estimate> {
        let overloading = || {
            let all = responses.iter();
            all.filter(|response| response.stretch() > OVERLOADED)
        };
        let overloaded: Vec<(f64, f64)> = overloading()
            .map(|response| (response.input_bps, response.stretch()))
            .collect();
        let in_overflow = overloading()
            .filter(|response| response.in_overflow)
            .count();
        let Some(line) = Line::through(&overloaded) else {
            return Estimate::at_least(responses, sent_bytes);
        };
        // A receiver that lies can put the line's end anywhere beyond the fastest train.
        let inputs = responses.iter().map(|response| response.input_bps);
        let is_beyond = line.bottleneck_bps() > inputs.fold(0.0, f64::max);
        let least = match is_beyond || 2 * in_overflow > overloaded.len() {
            true => BLIND_DOUBT,
            false => LEAST_DOUBT,
        };
        let value = |of: fn(Line) -> f64| Value {
            bps: of(line),
            doubt: doubt(&overloaded, of).max(least),
            at_least: false,
        };
        let available = value(Line::available_bps);
        Some(Estimate {
            bottleneck: value(Line::bottleneck_bps),
            available,
            queue: queue(responses, line.bottleneck_bps()),
            loss: loss(responses, available.bps),
            sent_bytes,
        })
    }

    /// Where no train was faster than the path.
    fn at_least(responses: &[Response], sent_bytes: u64) -> Option<Estimate> {
        // What waited together somewhere arrives faster than it was sent, which says nothing of the path.
        let bps = |response: &Response| response.output_bps.min(response.input_bps);
        let bps = responses.iter().map(bps);
        let value = Value {
            bps: bps.reduce(f64::max)?,
            doubt: LEAST_DOUBT,
            at_least: true,
        };
        Some(Estimate {
            bottleneck: value,
            available: value,
            queue: None,
            loss: loss(responses, f64::INFINITY),
            sent_bytes,
        })
    }
}

impl Line {
    fn bottleneck_bps(self) -> f64 {
        1.0 / self.slope
    }

    fn available_bps(self) -> f64 {
        (1.0 - self.cross) / self.slope
    }

    /// The line with the least sum of relative distances to the points: an outlier does not pull it. Such a line passes
    /// through two points, or through one at a bound of `cross`.
    fn through(points: &[(f64, f64)]) -> Option<Line> {
        let mut candidates: Vec<Line> = vec![];
        for (index, &one) in points.iter().enumerate() {
            candidates.extend([0.0, MOST_CROSS].map(|cross| Line::at(one, cross)));
            let others = points[index + 1..].iter();
            candidates.extend(others.filter_map(|&other| Line::between(one, other)));
        }
        let distance = |line: &Line| -> f64 {
            let distances = points.iter().map(|&(input, stretch)| {
                (line.slope * input + line.cross - stretch).abs() / stretch
            });
            distances.sum()
        };
        let valid = candidates.into_iter().filter(|line| line.slope > 0.0);
        valid.min_by(|one, other| distance(one).total_cmp(&distance(other)))
    }

    fn at((input, stretch): (f64, f64), cross: f64) -> Line {
        let slope = (stretch - cross) / input;
        Line { slope, cross }
    }

    fn between(one: (f64, f64), other: (f64, f64)) -> Option<Line> {
        let slope = (other.1 - one.1) / (other.0 - one.0);
        let cross = one.1 - slope * one.0;
        let valid = slope.is_finite() && (0.0..=MOST_CROSS).contains(&cross);
        valid.then_some(Line { slope, cross })
    }
}

/// Two standard errors by the jackknife: how much the value changes when one train is left out.
fn doubt(points: &[(f64, f64)], of: fn(Line) -> f64) -> f64 {
    if points.len() < 3 {
        return BLIND_DOUBT;
    }
    let without = |index: usize| {
        let mut rest = points.to_vec();
        rest.remove(index);
        Line::through(&rest).map(of)
    };
    let values: Vec<f64> = (0..points.len()).filter_map(without).collect();
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let error = (squares * (count - 1.0) / count).sqrt() / mean;
    (2.0 * error).clamp(LEAST_DOUBT, 1.0)
}

/// By the longest delay of a train that lost packets where it queued; else the longest delay is a lower bound.
fn queue(responses: &[Response], bottleneck_bps: f64) -> Option<Queue> {
    let overflowed = |response: &&Response| response.loss() > OVERFLOW_LOSS;
    let longest = |queued: &mut dyn Iterator<Item = u64>| queued.max();
    let queued_ns = |response: &Response| response.queued_ns;
    let full = longest(&mut responses.iter().filter(overflowed).map(queued_ns));
    let seen = longest(&mut responses.iter().map(queued_ns))?;
    Some(Queue {
        bytes: full.unwrap_or(seen) as f64 / 1e9 * bottleneck_bps / 8.0,
        at_least: full.is_none(),
    })
}

/// Of trains too slow to overload the bottleneck.
fn loss(responses: &[Response], available_bps: f64) -> Option<f64> {
    let light = |response: &&Response| {
        response.input_bps < 0.9 * available_bps && response.stretch() < OVERLOADED
    };
    let packets = |count: fn(&Response) -> u32| -> u64 {
        let light = responses.iter().filter(light);
        light.map(|response| u64::from(count(response))).sum()
    };
    let (sent, arrived) = (
        packets(|response| response.sent_packets),
        packets(|response| response.arrived_packets),
    );
    (sent > 0).then(|| 1.0 - arrived as f64 / sent as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(input_bps: f64, stretch: f64) -> Response {
        Response {
            input_bps,
            output_bps: input_bps / stretch,
            sent_packets: 100,
            arrived_packets: 100,
            queued_ns: 0,
            in_overflow: false,
        }
    }

    fn estimate(points: &[(f64, f64)]) -> Estimate {
        let responses: Vec<_> = points
            .iter()
            .map(|&(input, stretch)| response(input, stretch))
            .collect();
        Estimate::of(&responses, 1).unwrap()
    }

    #[test]
    fn the_line_gives_bottleneck_and_available_rate() {
        let on_line = |input: f64| (input, (input + 40e6) / 100e6);
        let found = estimate(&[on_line(100e6), on_line(150e6), on_line(300e6), (40e6, 1.0)]);
        assert!((found.bottleneck.bps / 100e6 - 1.0).abs() < 1e-9);
        assert!((found.available.bps / 60e6 - 1.0).abs() < 1e-9);
        assert_eq!(found.loss, Some(0.0));
    }

    #[test]
    fn one_wrong_train_of_many_moves_nothing() {
        let on_line = |input: f64| (input, input / 100e6);
        let mut points: Vec<_> = [120e6, 180e6, 300e6, 125e6, 310e6].map(on_line).to_vec();
        points.push((180e6, 4.0));
        let found = estimate(&points);
        assert!(
            (found.bottleneck.bps / 100e6 - 1.0).abs() < 0.01,
            "{found:?}"
        );
    }

    #[test]
    fn trains_that_overload_nothing_give_a_lower_bound() {
        let found = estimate(&[(8e6, 1.0), (32e6, 1.01)]);
        assert!(found.bottleneck.at_least && found.available.at_least);
        assert!((found.bottleneck.bps - 32e6 / 1.01).abs() < 1.0);
        let together = estimate(&[(32e6, 0.001)]);
        assert_eq!(together.bottleneck.bps, 32e6);
        assert_eq!(Estimate::of(&[], 0), None);
    }

    #[test]
    fn a_rate_beyond_the_fastest_train_is_said_to_be_doubtful() {
        let on_line = |input: f64| (input, 0.9 + input / 1e9);
        let found = estimate(&[200e6, 300e6, 400e6].map(on_line));
        assert!((found.bottleneck.bps / 1e9 - 1.0).abs() < 1e-6, "{found:?}");
        assert!(found.bottleneck.doubt >= BLIND_DOUBT, "{found:?}");
        let with_faster = estimate(&[200e6, 300e6, 1_200e6].map(on_line));
        assert!(
            with_faster.bottleneck.doubt < BLIND_DOUBT,
            "{with_faster:?}"
        );
    }

    #[test]
    fn one_train_alone_is_said_to_be_doubtful() {
        assert_eq!(estimate(&[(300e6, 3.0)]).bottleneck.doubt, BLIND_DOUBT);
    }
}

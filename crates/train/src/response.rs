// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a path made of one train: the rate at which it entered, the rate at which it left, losses, delay.

use crate::{Arrival, Departure, Train};

/// Share of a train at each of its ends whose mean stands for the end: a single late timestamp then moves the rate
/// little, and interrupts that deliver packets together hardly at all.
const END_SHARE: f64 = 0.2;

/// Greatest departure from an even rate that a sender may show, as a share of the train's time.
const MAX_UNEVENNESS: f64 = 0.15;

/// The same of what arrived, where there are moments enough to tell: more is a receiver or a path that stood still.
const MAX_OUTPUT_UNEVENNESS: f64 = 0.2;
const LEAST_MOMENTS: usize = 50;

/// Least packets that must arrive for a rate to mean anything.
const LEAST_ARRIVED: u64 = 8;

/// Packets lost of so many in a row mean that a queue overflows; random loss is far rarer.
const OVERFLOW: (usize, u32) = (3, 20);

/// Least packets before an overflow, and least moments of their arrival, for a rate of their own.
const LEAST_BEFORE: (u32, usize) = (30, 8);

/// What a path made of one train.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Response {
    /// Rate at which the train was sent, bits of IP packets a second.
    pub input_bps: f64,
    /// Rate at which what arrived of it arrived.
    pub output_bps: f64,
    /// Packets sent.
    pub sent_packets: u32,
    /// Packets that arrived, each counted once.
    pub arrived_packets: u32,
    /// By how much the delay of the most delayed packet exceeded that of the least delayed, nanoseconds: what the
    /// train itself, and others meanwhile, put into queues.
    pub queued_ns: u64,
    /// The queue was full for all of a train sent in bursts. It drops these rather than smoother cross traffic, which the
    /// rates then do not show.
    pub in_overflow: bool,
}

/// Why a train says nothing of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// Records that contradict the train: unknown sequence numbers, times that go back.
    #[error("the records contradict the train")]
    Contradictory,
    /// The sender, the path or the receiver was held up, so a rate was not even.
    #[error("the train was held up")]
    Uneven,
    /// The receiver's host dropped packets that had arrived: what is missing is no loss of the path.
    #[error(
        "the receiving host dropped packets: its net.core.rmem_max is too small, or it is busy"
    )]
    Overrun,
    /// Too few packets arrived, or all at one moment.
    #[error("too few packets arrived")]
    TooFew,
}

impl Response {
    /// The response to `train` by its records: `sent` in order of time, `arrived` in order of arrival.
    ///
    /// # Errors
    /// [`Unusable`]; whatever the records say, nothing panics and no figure is infinite.
    pub fn of(
        train: &Train,
        sent: &[Departure],
        arrived: &[Arrival],
    ) -> Result<Response, Unusable> {
        check(train, sent, arrived)?;
        let arrived_packets: u64 = arrived.iter().map(|run| u64::from(run.packets)).sum();
        if arrived_packets < LEAST_ARRIVED {
            return Err(Unusable::TooFew);
        }
        let before = Curve::before_overflow(train, sent, arrived);
        let in_overflow = before.is_none() && overflow(train, arrived) < train.packets;
        let all = || {
            (
                Curve::of_departures(train, sent),
                Curve::of_arrivals(train, arrived),
            )
        };
        let (input, output) = before.unwrap_or_else(all);
        if input.unevenness() > MAX_UNEVENNESS {
            return Err(Unusable::Uneven);
        }
        if output.0.len() >= LEAST_MOMENTS && output.unevenness() > MAX_OUTPUT_UNEVENNESS {
            return Err(Unusable::Uneven);
        }
        Ok(Response {
            input_bps: input.rate_bps().ok_or(Unusable::Uneven)?,
            output_bps: output.rate_bps().ok_or(Unusable::TooFew)?,
            sent_packets: train.packets,
            arrived_packets: arrived_packets as u32,
            queued_ns: queued_ns(sent, arrived),
            in_overflow: in_overflow && train.batch_packets() > 1,
        })
    }

    /// Input rate over output rate: above 1 where the bottleneck was overloaded.
    pub fn stretch(&self) -> f64 {
        self.input_bps / self.output_bps
    }

    /// Share of the packets that did not arrive.
    pub fn loss(&self) -> f64 {
        1.0 - f64::from(self.arrived_packets) / f64::from(self.sent_packets.max(1))
    }
}

/// Whether the records can be of this train: all packets sent once, none received that was not sent, or twice.
fn check(train: &Train, sent: &[Departure], arrived: &[Arrival]) -> Result<(), Unusable> {
    let mut next = 0;
    for batch in sent {
        if batch.first != next || batch.packets == 0 {
            return Err(Unusable::Contradictory);
        }
        next = next
            .checked_add(batch.packets)
            .ok_or(Unusable::Contradictory)?;
    }
    let in_order =
        sent.is_sorted_by_key(|batch| batch.at_ns) && arrived.is_sorted_by_key(|run| run.at_ns);
    if next != train.packets || !in_order || !are_distinct(train, arrived) {
        return Err(Unusable::Contradictory);
    }
    Ok(())
}

fn are_distinct(train: &Train, arrived: &[Arrival]) -> bool {
    let mut runs: Vec<_> = arrived.iter().map(|run| (run.first, run.packets)).collect();
    runs.sort_unstable();
    let mut end = 0;
    runs.into_iter().all(|(first, packets)| {
        let fits = first >= end && packets > 0;
        end = first.saturating_add(packets);
        fits && end <= train.packets
    })
}

/// The first packet lost by an overflow; the number of packets if there was none.
fn overflow(train: &Train, arrived: &[Arrival]) -> u32 {
    let mut runs: Vec<_> = arrived.iter().map(|run| (run.first, run.packets)).collect();
    runs.sort_unstable();
    runs.push((train.packets, 0));
    let mut lost = std::collections::VecDeque::new();
    let mut next = 0;
    for (first, packets) in runs {
        for sequence in (next..first).take(OVERFLOW.0) {
            lost.push_back(sequence);
            if lost.len() > OVERFLOW.0 {
                lost.pop_front();
            }
            if lost.len() == OVERFLOW.0 && sequence - lost[0] < OVERFLOW.1 {
                return lost[0];
            }
        }
        next = first + packets;
    }
    train.packets
}

/// Bytes over time: a point each batch.
struct Curve(Vec<(f64, f64)>);

impl Curve {
    /// Both curves, of the packets that were sent before the queue overflowed, where these are enough. A full queue
    /// drops bursts rather than single packets, and so the train rather than smoother cross traffic.
    fn before_overflow(
        train: &Train,
        sent: &[Departure],
        arrived: &[Arrival],
    ) -> Option<(Curve, Curve)> {
        let end = overflow(train, arrived);
        let before_sent = sent.partition_point(|batch| batch.first + batch.packets <= end);
        let before: Vec<Arrival> = arrived
            .iter()
            .copied()
            .filter(|run| run.first < end)
            .collect();
        let output = Curve::of_arrivals(train, &before);
        let enough = end >= LEAST_BEFORE.0 && output.0.len() >= LEAST_BEFORE.1 && before_sent >= 2;
        enough.then(|| (Curve::of_departures(train, &sent[..before_sent]), output))
    }

    /// What had been sent before each batch.
    fn of_departures(train: &Train, sent: &[Departure]) -> Curve {
        let begun_ns = sent.first().map_or(0, |batch| batch.at_ns);
        let bits = f64::from(train.packet_bytes) * 8.0;
        let point = |batch: &Departure| {
            let at_ns = batch.at_ns - begun_ns;
            (at_ns as f64 / 1e9, f64::from(batch.first) * bits)
        };
        Curve(sent.iter().map(point).collect())
    }

    /// What had arrived after each run. Runs of one moment are one: which came first is not known.
    fn of_arrivals(train: &Train, arrived: &[Arrival]) -> Curve {
        let begun_ns = arrived.first().map_or(0, |run| run.at_ns);
        let bits = f64::from(train.packet_bytes) * 8.0;
        let mut points: Vec<(f64, f64)> = vec![];
        let mut total = 0.0;
        for run in arrived {
            let at = (run.at_ns - begun_ns) as f64 / 1e9;
            total += f64::from(run.packets) * bits;
            match points.last_mut() {
                Some(last) if last.0 == at => last.1 = total,
                _ => points.push((at, total)),
            }
        }
        Curve(points)
    }

    /// The slope between the mean of the first points and the mean of the last.
    fn rate_bps(&self) -> Option<f64> {
        let count = ((self.0.len() as f64 * END_SHARE) as usize).max(1);
        let (first, last) = (self.0.get(..count)?, &self.0[self.0.len() - count..]);
        let (begin, end) = (mean(first), mean(last));
        let rate_bps = (end.1 - begin.1) / (end.0 - begin.0);
        (rate_bps.is_finite() && rate_bps > 0.0).then_some(rate_bps)
    }

    /// The greatest distance in time between the points and the line from the first to the last, as a share of it.
    fn unevenness(&self) -> f64 {
        let (Some(first), Some(last)) = (self.0.first(), self.0.last()) else {
            return 0.0;
        };
        let (seconds, bits) = (last.0 - first.0, last.1 - first.1);
        if seconds <= 0.0 || bits <= 0.0 {
            return 0.0;
        }
        let distance =
            |point: &(f64, f64)| ((point.0 - first.0) / seconds - (point.1 - first.1) / bits).abs();
        self.0.iter().map(distance).fold(0.0, f64::max)
    }
}

fn mean(points: &[(f64, f64)]) -> (f64, f64) {
    let count = points.len() as f64;
    let sum = points
        .iter()
        .fold((0.0, 0.0), |sum, point| (sum.0 + point.0, sum.1 + point.1));
    (sum.0 / count, sum.1 / count)
}

/// The range of delays. The two clocks' difference cancels out; what they drift apart within a second is below 0.1 ms.
fn queued_ns(sent: &[Departure], arrived: &[Arrival]) -> u64 {
    let delay_ns = |run: &Arrival| {
        let last = run.first + (run.packets - 1);
        let batch = sent.partition_point(|batch| batch.first <= last);
        i128::from(run.at_ns) - i128::from(sent[batch - 1].at_ns)
    };
    let delays = arrived.iter().map(delay_ns);
    let (least, most) = delays.fold((i128::MAX, i128::MIN), |range, delay| {
        (range.0.min(delay), range.1.max(delay))
    });
    u64::try_from(most.saturating_sub(least)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRAIN: Train = Train {
        rate_bps: 120_000_000,
        packets: 100,
        packet_bytes: 1500,
    };

    fn departures(every_ns: u64) -> Vec<Departure> {
        let departure = |first: u32| Departure {
            at_ns: 7 + u64::from(first) * every_ns,
            first,
            packets: 1,
        };
        (0..100).map(departure).collect()
    }

    fn arrivals(every_ns: u64) -> Vec<Arrival> {
        let arrival = |first: u32| Arrival {
            at_ns: 1_000 + u64::from(first) * every_ns,
            first,
            packets: 1,
        };
        (0..100).map(arrival).collect()
    }

    #[test]
    fn rates_are_those_of_the_gaps() {
        let response = Response::of(&TRAIN, &departures(100_000), &arrivals(200_000)).unwrap();
        assert!((response.input_bps - 120e6).abs() < 1.0, "{response:?}");
        assert!((response.output_bps - 60e6).abs() < 1.0, "{response:?}");
        assert_eq!(response.queued_ns, 99 * 100_000);
        assert_eq!(response.loss(), 0.0);
    }

    #[test]
    fn packets_delivered_together_change_the_rate_little() {
        let mut together = arrivals(200_000);
        for run in &mut together {
            run.at_ns = run.at_ns.div_ceil(900_000) * 900_000;
        }
        let response = Response::of(&TRAIN, &departures(100_000), &together).unwrap();
        assert!(
            (response.output_bps / 60e6 - 1.0).abs() < 0.03,
            "{response:?}"
        );
    }

    #[test]
    fn records_that_contradict_the_train_are_refused() {
        let contradictory = |sent: &[Departure], arrived: &[Arrival]| {
            assert_eq!(
                Response::of(&TRAIN, sent, arrived),
                Err(Unusable::Contradictory)
            );
        };
        let (sent, arrived) = (departures(100_000), arrivals(200_000));
        contradictory(&sent[..99], &arrived);
        let mut doubled = arrived.clone();
        doubled[5].first = 4;
        contradictory(&sent, &doubled);
        let mut beyond = arrived.clone();
        beyond[99].packets = u32::MAX;
        contradictory(&sent, &beyond);
        let mut back = arrived;
        back[50].at_ns = 0;
        contradictory(&sent, &back);
    }

    #[test]
    fn a_sender_that_was_held_up_is_noticed() {
        let mut sent = departures(100_000);
        sent[50..]
            .iter_mut()
            .for_each(|batch| batch.at_ns += 5_000_000);
        let held_up = Response::of(&TRAIN, &sent, &arrivals(200_000));
        assert_eq!(held_up, Err(Unusable::Uneven));
    }

    #[test]
    fn too_few_arrivals_give_no_rate() {
        let sent = departures(100_000);
        let one = [Arrival {
            at_ns: 5,
            first: 0,
            packets: 100,
        }];
        for arrived in [&one[..], &[], &arrivals(200_000)[..7]] {
            assert_eq!(Response::of(&TRAIN, &sent, arrived), Err(Unusable::TooFew));
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A test of rate between two hosts: what they say of each packet train, and what its estimate is archived as.
//!
//! The host that sends is the one that asks. It announces a train by a line, sends it once that is granted, and hears what of it
//! arrived. What it hears is held to what it knows itself: no record has packets that were not sent, and none spans more time
//! than has passed here.

use crate::ask::{BadLine, Reply, Run, in_range, read as read_line};
use crate::tool::{Values, values};
use fatpath_train::{Arrival, Estimate, LEAST_PACKETS, Queue, SingleEndedEstimate, Train, Value};
use std::ops::RangeInclusive;
use std::time::Duration;

/// A test has no more. A search sends about 25, and repeats those that were held up.
pub const MOST_TRAINS: u32 = 64;
/// A train has no more packets; what a responder keeps of each is 16 bytes at most.
pub const MOST_PACKETS: u32 = 16_384;
const PACKETS: RangeInclusive<u32> = LEAST_PACKETS..=MOST_PACKETS;
/// Length of a packet. The record of a shorter one would be no small part of it.
const PACKET_BYTES: RangeInclusive<u32> = 576..=9_000;

/// Runs in a line, each of 35 characters at most.
const RUNS: usize = 100;

/// How far the clock by which a peer measures a time may differ from this host's: the greatest correction of both, MAXFREQ of
/// linux/timex.h, and what a kernel's timestamp may be late.
const DRIFT: f64 = 0.001;
const LATE: Duration = Duration::from_millis(1);

/// Reads the line that announces a train.
///
/// # Errors
/// See [`BadLine`].
pub fn read(line: &str) -> Result<Train, BadLine> {
    let train: Train = read_line(line)?;
    in_range([
        ("rate_bps", train.rate_bps > 0),
        ("packets", PACKETS.contains(&train.packets)),
        ("packet_bytes", PACKET_BYTES.contains(&train.packet_bytes)),
    ])?;
    Ok(train)
}

/// What is said of the packets that arrived, of which the kernel dropped `overrun` more.
pub fn replies(arrived: &[Arrival], overrun: u32) -> Vec<Reply> {
    let mut before_ns = arrived.first().map_or(0, |run| run.at_ns);
    let run = |arrival: &Arrival| {
        let after_ns = arrival.at_ns.saturating_sub(before_ns);
        before_ns = arrival.at_ns;
        let after_ns = u32::try_from(after_ns).unwrap_or(u32::MAX);
        (after_ns, arrival.first, arrival.packets)
    };
    let runs: Vec<Run> = arrived.iter().map(run).collect();
    let chunks = runs.len().div_ceil(RUNS).max(1);
    let chunk = |number: usize| Reply::Arrived {
        runs: runs
            .iter()
            .skip(number * RUNS)
            .take(RUNS)
            .copied()
            .collect(),
        overrun,
        is_last: number + 1 == chunks,
    };
    (0..chunks).map(chunk).collect()
}

/// A responder's record cannot be true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Untrue {
    /// It has packets that were not sent.
    #[error("its record of a train has packets that were not sent")]
    Packets,
    /// It spans more time than there was.
    #[error("its record of a train lasts longer than the train took")]
    Time,
}

/// The record of one train, as it is heard.
#[derive(Debug)]
pub struct Heard {
    arrived: Vec<Arrival>,
    missing: u32,
    at_ns: u64,
}

impl Heard {
    /// Nothing yet.
    pub fn of(train: &Train) -> Heard {
        Heard {
            arrived: vec![],
            missing: train.packets,
            at_ns: 0,
        }
    }

    /// Takes the runs of a line.
    ///
    /// # Errors
    /// They are more than was sent.
    pub fn take(&mut self, runs: &[Run]) -> Result<(), Untrue> {
        for &(after_ns, first, packets) in runs {
            let missing = self.missing.checked_sub(packets).filter(|_| packets > 0);
            self.missing = missing.ok_or(Untrue::Packets)?;
            self.at_ns += u64::from(after_ns);
            self.arrived.push(Arrival {
                at_ns: self.at_ns,
                first,
                packets,
            });
        }
        Ok(())
    }

    /// All of them, where `elapsed` has passed here from before the train was sent until they were heard.
    ///
    /// # Errors
    /// They span more.
    pub fn end(self, elapsed: Duration) -> Result<Vec<Arrival>, Untrue> {
        match self.at_ns > (elapsed.mul_f64(1.0 + DRIFT) + LATE).as_nanos() as u64 {
            true => Err(Untrue::Time),
            false => Ok(self.arrived),
        }
    }
}

/// What a test found. A lower bound has a name of its own: it is not what a rate or a queue is.
pub fn rate_values(found: &Estimate) -> Values {
    let mut named = match found.bottleneck.at_least {
        true => values([("rate_at_least", found.bottleneck.bps, "b/s")]),
        false => rates(&found.bottleneck, &found.available),
    };
    if let Some(Queue { bytes, at_least }) = found.queue {
        let name = if at_least { "queue_at_least" } else { "queue" };
        named.extend(values([(name, bytes, "B")]));
    }
    if let Some(loss) = found.loss {
        named.extend(values([("loss", loss.max(0.0), "1")]));
    }
    named.extend(values([("sent", found.sent_bytes as f64, "B")]));
    named
}

/// What a test found. Answers as long as the packets pass the way back as slowly: by ICMP the rate is that of the slower way,
/// which has names of its own. Whose queue it is that trains fill is not known.
pub fn single_ended_values(found: &SingleEndedEstimate, is_by_icmp: bool) -> Values {
    let estimate = Estimate {
        queue: None,
        ..found.of.clone()
    };
    let named = |name: String| match is_by_icmp && name.contains("rate") {
        true => format!("slower_way_{name}"),
        false => name,
    };
    let rates = rate_values(&estimate).into_iter();
    let mut all: Values = rates.map(|(name, value)| (named(name), value)).collect();
    if let Some(share) = found.short_share {
        all.extend(values([("short_packet_share", share, "1")]));
    }
    all
}

fn rates(bottleneck: &Value, available: &Value) -> Values {
    values([
        ("rate", bottleneck.bps, "b/s"),
        ("rate_doubt", bottleneck.doubt, "1"),
        ("available_rate", available.bps, "b/s"),
        ("available_rate_doubt", available.doubt, "1"),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MOST_LINE_BYTES;
    use proptest::prelude::*;

    const TRAIN: Train = Train {
        rate_bps: 100_000_000,
        packets: 1_000,
        packet_bytes: 1_500,
    };

    #[test]
    fn a_train_is_announced_within_bounds() {
        let line = serde_json::to_string(&TRAIN).unwrap();
        assert_eq!(read(&line), Ok(TRAIN));
        for (from, to) in [
            ("1000,", "16385,"),
            ("1000,", "15,"),
            ("1500", "100"),
            ("1500", "9001"),
            ("100000000", "0"),
            ("100000000", "-1"),
        ] {
            assert!(read(&line.replacen(from, to, 1)).is_err(), "{to}");
        }
    }

    #[test]
    fn a_record_that_cannot_be_true_is_refused() {
        let heard = |runs: &[Run], ms: u64| {
            let mut heard = Heard::of(&TRAIN);
            heard.take(runs)?;
            heard.end(Duration::from_millis(ms))
        };
        assert_eq!(
            heard(&[(0, 0, 1), (9_000_000, 1, 999)], 10).unwrap().len(),
            2
        );
        assert_eq!(
            heard(&[(0, 0, 1), (19_000_000, 1, 9)], 10),
            Err(Untrue::Time)
        );
        assert_eq!(heard(&[(0, 0, 1_000), (0, 0, 1)], 10), Err(Untrue::Packets));
        assert_eq!(heard(&[(0, 0, u32::MAX)], 10), Err(Untrue::Packets));
        assert_eq!(heard(&[(0, 0, 0)], 10), Err(Untrue::Packets));
    }

    #[test]
    fn a_lower_bound_is_named_as_one() {
        let value = Value {
            bps: 1e8,
            doubt: 0.1,
            at_least: false,
        };
        let queue = Queue {
            bytes: 1e5,
            at_least: false,
        };
        let found = Estimate {
            bottleneck: value,
            available: Value { bps: 6e7, ..value },
            queue: Some(queue),
            loss: Some(0.0),
            sent_bytes: 9,
        };
        let values = rate_values(&found);
        assert_eq!(values["rate"], (1e8, "b/s".to_owned()));
        assert_eq!(values["available_rate"], (6e7, "b/s".to_owned()));
        assert_eq!(values["queue"], (1e5, "B".to_owned()));
        let least = |value| Value {
            at_least: true,
            ..value
        };
        let bound = rate_values(&Estimate {
            bottleneck: least(value),
            available: least(value),
            queue: Some(Queue {
                at_least: true,
                ..queue
            }),
            ..found
        });
        let names: Vec<&str> = bound.keys().map(String::as_str).collect();
        assert_eq!(names, ["loss", "queue_at_least", "rate_at_least", "sent"]);
    }

    #[test]
    fn what_is_of_the_slower_way_is_not_named_as_the_rate_there() {
        let value = Value {
            bps: 1e8,
            doubt: 0.1,
            at_least: false,
        };
        let found = SingleEndedEstimate {
            of: Estimate {
                bottleneck: value,
                available: value,
                queue: Some(Queue {
                    bytes: 1e5,
                    at_least: false,
                }),
                loss: Some(0.0),
                sent_bytes: 9,
            },
            short_share: Some(0.9),
        };
        let names = |is_by_icmp| {
            let values = single_ended_values(&found, is_by_icmp);
            values.into_keys().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            names(false),
            "available_rate available_rate_doubt loss rate rate_doubt sent short_packet_share"
        );
        assert_eq!(
            names(true),
            "loss sent short_packet_share slower_way_available_rate slower_way_available_rate_doubt slower_way_rate \
             slower_way_rate_doubt"
        );
    }

    proptest! {
        #[test]
        fn a_record_is_heard_as_it_was_said(
            gaps in prop::collection::vec((0_u32..100_000_000, 1_u32..44), 0..500), begun_ns in 0_u64..u64::MAX / 2,
        ) {
            let (mut at_ns, mut first, mut arrived) = (begun_ns, 0, vec![]);
            for (gap_ns, packets) in gaps {
                arrived.push(Arrival { at_ns, first, packets });
                at_ns += u64::from(gap_ns);
                first += packets;
            }
            let train = Train { packets: first, ..TRAIN };
            let mut heard = Heard::of(&train);
            for reply in replies(&arrived, 0) {
                let line = serde_json::to_string(&reply).unwrap();
                prop_assert!(line.len() < MOST_LINE_BYTES);
                let Reply::Arrived { runs, .. } = Reply::read(&line).unwrap() else { panic!("{line}") };
                heard.take(&runs).unwrap();
            }
            let heard = heard.end(Duration::from_nanos(at_ns - begun_ns)).unwrap();
            let from_first = arrived.iter().map(|run| Arrival { at_ns: run.at_ns - begun_ns, ..*run });
            prop_assert_eq!(heard, from_first.collect::<Vec<_>>());
        }

        #[test]
        fn the_longest_record_fits_its_lines(first: u32, packets: u32) {
            let run = |number: u64| Arrival { at_ns: number << 40, first, packets };
            for reply in replies(&(0..250).map(run).collect::<Vec<_>>(), u32::MAX) {
                prop_assert!(serde_json::to_string(&reply).unwrap().len() < MOST_LINE_BYTES);
            }
        }

        #[test]
        fn whatever_is_said_of_a_train_is_bounded(line in "\\PC{0,80}|[0-9a-z_{}\":,\\[\\]]{0,200}") {
            if let Ok(train) = read(&line) {
                prop_assert!(train.packets <= *PACKETS.end() && train.bytes() < 1 << 28);
            }
            if let Ok(Reply::Arrived { runs, .. }) = Reply::read(&line) {
                let mut heard = Heard::of(&TRAIN);
                let is_taken = heard.take(&runs).is_ok();
                prop_assert!(!is_taken || heard.arrived.len() <= TRAIN.packets as usize);
            }
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What waits for a bottleneck, and what is dropped or marked instead.

use std::collections::VecDeque;

use fatpath_link::{
    Cell, CellSpec, Chain, Count, Departure, Discipline, DropCause, Ecn, QueueSpec, RateSpec,
    Service,
};
use proptest::prelude::*;

use crate::support::*;

const MS_NS: u64 = 1_000_000;
/// Sends 1,500 bytes a millisecond.
const SLOW_BPS: u64 = 12_000_000;

fn bottleneck(rate_bps: u64, queue: QueueSpec, overhead_bytes: u32) -> Chain<Run> {
    let service = Service::Constant { rate_bps };
    chain(
        [CellSpec::Rate(RateSpec {
            service,
            queue,
            overhead_bytes,
        })],
        1,
    )
}

fn discipline(discipline: Discipline) -> QueueSpec {
    QueueSpec {
        discipline,
        ..QueueSpec::default()
    }
}

fn dropped(chain: &Chain<Run>, cause: DropCause) -> u64 {
    chain.counters().dropped(cause).packets
}

/// The numbers of the segments that left marked.
fn marked(departures: &[Departure<Run>]) -> Vec<u64> {
    let fates = fates(departures).into_iter();
    fates
        .filter(|fate| fate.1 == Ecn::Marked)
        .map(|fate| fate.0)
        .collect()
}

/// A queue of 1500-byte singles, written down as plainly as possible: `decide` says of each whether
/// it is taken (marked or not) or dropped, as it is taken to be sent. Gives the numbers that were
/// sent, with marks.
struct Plain<D> {
    gap_ns: u64,
    decide: D,
}

/// RFC 8289, section 5, as the pseudocode has it, for singles of one size.
#[derive(Default)]
struct CodelOfRfc {
    target: u64,
    interval: u64,
    ecn: bool,
    first_above_time: u64,
    drop_next: u64,
    count: u32,
    lastcount: u32,
    dropping: bool,
}

impl CodelOfRfc {
    fn control_law(&self, t: u64) -> u64 {
        t + (self.interval as f64 / f64::from(self.count).sqrt()) as u64
    }

    /// The packet (number and arrival), and whether it is ok to drop it.
    fn dodequeue(
        &mut self,
        now: u64,
        line: &mut VecDeque<(u64, u64)>,
    ) -> (Option<(u64, u64)>, bool) {
        let Some(packet) = line.pop_front() else {
            self.first_above_time = 0;
            return (None, false);
        };
        let mut ok_to_drop = false;
        if now - packet.1 < self.target || line.len() <= 1 {
            self.first_above_time = 0;
        } else if self.first_above_time == 0 {
            self.first_above_time = now + self.interval;
        } else if now >= self.first_above_time {
            ok_to_drop = true;
        }
        (Some(packet), ok_to_drop)
    }

    /// The packet to send, and whether it is marked.
    fn dequeue(&mut self, now: u64, line: &mut VecDeque<(u64, u64)>) -> Option<(u64, bool)> {
        let (mut packet, mut ok_to_drop) = self.dodequeue(now, line);
        let mut mark = false;
        if self.dropping {
            if !ok_to_drop {
                self.dropping = false;
            }
            while now >= self.drop_next && self.dropping {
                self.count += 1;
                if self.ecn {
                    mark = true;
                    self.drop_next = self.control_law(self.drop_next);
                    break;
                }
                (packet, ok_to_drop) = self.dodequeue(now, line);
                if ok_to_drop {
                    self.drop_next = self.control_law(self.drop_next);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok_to_drop {
            if self.ecn {
                mark = true;
            } else {
                packet = self.dodequeue(now, line).0;
            }
            self.dropping = true;
            let delta = self.count - self.lastcount;
            let recent = now.saturating_sub(self.drop_next) < 16 * self.interval;
            self.count = if delta > 1 && recent { delta } else { 1 };
            self.drop_next = self.control_law(now);
            self.lastcount = self.count;
        }
        packet.map(|(number, _)| (number, mark))
    }
}

impl Plain<CodelOfRfc> {
    /// Sends what comes at these moments, one in `gap_ns`.
    fn send(&mut self, came_ns: &[u64]) -> Vec<(u64, bool)> {
        let (mut line, mut sent) = (VecDeque::new(), vec![]);
        let mut free_ns = None;
        let mut arrivals = (0..).zip(came_ns.iter().copied()).peekable();
        loop {
            match (free_ns, arrivals.peek().copied()) {
                (Some(done_ns), next) if next.is_none_or(|(_, came_ns)| done_ns <= came_ns) => {
                    let packet = self.decide.dequeue(done_ns, &mut line);
                    sent.extend(packet);
                    free_ns = packet.map(|_| done_ns + self.gap_ns);
                }
                (_, Some((number, came_ns))) => {
                    arrivals.next();
                    line.push_back((number, came_ns));
                    if free_ns.is_none() {
                        let packet = self.decide.dequeue(came_ns, &mut line);
                        sent.extend(packet);
                        free_ns = packet.map(|_| came_ns + self.gap_ns);
                    }
                }
                (_, None) => return sent,
            }
        }
    }
}

proptest! {
    #[test]
    fn the_queue_never_passes_its_limit_by_a_byte(
        rate_bps in rate_bps(),
        queue in queue(),
        overhead in 0..100u32,
        traffic in traffic(),
    ) {
        let mut chain = bottleneck(rate_bps, queue.clone(), overhead);
        let mut now_ns = 0;
        for (gap_ns, run) in &traffic {
            now_ns += gap_ns;
            chain.push(now_ns, *run);
            let peak_bytes = chain.take_peak_bytes(now_ns);
            prop_assert!(peak_bytes <= queue.limit_bytes.unwrap_or(u64::MAX));
        }
    }

    #[test]
    fn a_burst_fills_the_queue_to_the_last_segment_that_fits(
        limit_bytes in 0u64..200_000,
        limit_packets in 0u64..200,
        segment_bytes in 40..1501u32,
        packets in 1..300u64,
    ) {
        let burst: Vec<_> = (0..packets).map(|first| (0, Run::single(first, segment_bytes))).collect();
        let fit = limit_packets.min(limit_bytes / u64::from(segment_bytes)).min(packets);
        let limit = QueueSpec {
            limit_bytes: Some(limit_bytes),
            limit_packets: Some(limit_packets),
            ..QueueSpec::default()
        };
        let mut chain = bottleneck(1_000_000, limit, 0);
        prop_assert_eq!(numbers(&pass(&mut chain, &burst)), (0..fit).collect::<Vec<_>>());
        let dropped = Count { packets: packets - fit, bytes: (packets - fit) * u64::from(segment_bytes) };
        prop_assert_eq!(chain.counters().dropped(DropCause::QueueFull), dropped);
        prop_assert_eq!(chain.take_peak_bytes(u64::MAX / 2), fit * u64::from(segment_bytes));
    }

    /// Of a burst, drop-head keeps the one that is being sent and the newest.
    #[test]
    fn drop_head_keeps_the_newest(limit in 1u64..100, packets in 1..300u32) {
        let queue = QueueSpec {
            limit_packets: Some(limit),
            ..discipline(Discipline::DropHead)
        };
        let burst = vec![(0, Run::full(0, packets))];
        let packets = u64::from(packets);
        let left = numbers(&pass(&mut bottleneck(SLOW_BPS, queue, 0), &burst));
        let mut expected: Vec<_> = (packets.saturating_sub(limit - 1).max(1)..packets).collect();
        expected.insert(0, 0);
        prop_assert_eq!(left, expected);
    }

    /// Against a count by hand: all come at once, and leave later.
    #[test]
    fn segments_that_meet_a_depth_above_the_step_are_marked(
        step_bytes in 0u64..100_000,
        traffic in traffic(),
    ) {
        let queue = QueueSpec { mark_above_bytes: Some(step_bytes), ..QueueSpec::default() };
        let burst = traffic.iter().map(|(_, run)| (0, *run)).collect();
        let left = pass(&mut bottleneck(1_000, queue, 0), &burst);
        let mut depth_bytes = 0;
        let mut expected = vec![];
        for (_, run) in singles(&burst) {
            let marked = run.ecn == Ecn::Marked || (run.ecn == Ecn::Capable && depth_bytes > step_bytes);
            expected.extend(marked.then_some(run.first));
            depth_bytes += run.wire.len_bytes(0);
        }
        prop_assert_eq!(marked(&left), expected);
    }

    #[test]
    fn codel_does_as_the_rfc_writes(
        target_us in 1..20_000u64,
        interval_us in 1..200_000u64,
        ecn: bool,
        gaps_us in proptest::collection::vec((0..1_500u64, 1..400usize), 1..8),
    ) {
        let (target, interval) = (target_us * 1_000, interval_us * 1_000);
        let gaps = gaps_us.into_iter().flat_map(|(gap_us, count)| vec![gap_us * 1_000; count]);
        let traffic: Vec<_> = (0..).zip(gaps)
            .map(|(number, gap_ns)| (gap_ns, Run::single(number, 1500)))
            .collect();
        let came_ns: Vec<_> = traffic.iter().scan(0, |now_ns, (gap_ns, _)| {
            *now_ns += gap_ns;
            Some(*now_ns)
        }).collect();
        let queue = discipline(Discipline::Codel { target_ns: target, interval_ns: interval, ecn });
        let left = fates(&pass(&mut bottleneck(SLOW_BPS, queue, 0), &traffic));
        let left: Vec<_> = left.into_iter().map(|fate| (fate.0, fate.1 == Ecn::Marked)).collect();
        let decide = CodelOfRfc { target, interval, ecn, ..CodelOfRfc::default() };
        let mut plain = Plain { gap_ns: MS_NS, decide };
        prop_assert_eq!(left, plain.send(&came_ns));
    }
}

proptest! {
    /// At a rate that keeps super-packets waiting for each other, some of them just so.
    #[test]
    fn codel_does_the_same_to_super_packets_and_singles(
        target_us in 1..10_000u64,
        interval_us in 1..20_000u64,
        ecn: bool,
        packets in proptest::collection::vec((0..12u64, 1..12u32), 1..100),
    ) {
        let queue = discipline(Discipline::Codel {
            target_ns: target_us * 1_000,
            interval_ns: interval_us * 1_000,
            ecn,
        });
        let runs = packets.into_iter().map(|(gap_ms, segments)| {
            (gap_ms * MS_NS + 1, Run::full(0, segments))
        });
        let mut traffic: Traffic = runs.collect();
        number(&mut traffic);
        let whole = pass(&mut bottleneck(SLOW_BPS, queue.clone(), 0), &traffic);
        let split = pass(&mut bottleneck(SLOW_BPS, queue, 0), &singles(&traffic));
        prop_assert_eq!(fates(&whole), fates(&split));
    }
}

proptest! {
    /// Where the step lies so near the limit that what makes room decides on marks.
    #[test]
    fn drop_head_marks_the_same_of_super_packets_and_singles(
        below_bytes in 0..4_000u64,
        traffic in traffic(),
    ) {
        let limit_bytes = 20_000;
        let queue = QueueSpec {
            limit_bytes: Some(limit_bytes),
            mark_above_bytes: Some(limit_bytes - below_bytes),
            ..discipline(Discipline::DropHead)
        };
        let whole = pass(&mut bottleneck(SLOW_BPS, queue.clone(), 0), &traffic);
        let split = pass(&mut bottleneck(SLOW_BPS, queue, 0), &singles(&traffic));
        prop_assert_eq!(fates(&whole), fates(&split));
    }
}

/// Twice the rate for a second: CoDel begins after an interval above the target, and drops ever faster.
#[test]
fn codel_drops_ever_faster() {
    let codel = |ecn| {
        discipline(Discipline::Codel {
            target_ns: 5 * MS_NS,
            interval_ns: 100 * MS_NS,
            ecn,
        })
    };
    let traffic: Vec<_> = (0..50)
        .map(|index| (20 * MS_NS, Run::full(index * 40, 40)))
        .collect();
    let mut dropping = bottleneck(SLOW_BPS, codel(false), 0);
    pass(&mut dropping, &traffic);
    assert!(dropped(&dropping, DropCause::Early) > 10);
    let mut marking = bottleneck(SLOW_BPS, codel(true), 0);
    let left = pass(&mut marking, &traffic);
    assert_eq!(marking.counters().dropped_total().packets, 0);
    let marked = marked(&left);
    assert_eq!(marking.counters().marked.packets, marked.len() as u64);
    // Segment n leaves n ms after the first: the gaps shrink as 100 ms / √n.
    for (count, pair) in (1..).zip(marked.windows(2)).take(20) {
        let gap_ms = 100.0 / f64::from(count).sqrt();
        let measured_ms = (pair[1] - pair[0]) as f64;
        assert!(
            (measured_ms - gap_ms).abs() <= 2.0,
            "{count}: {measured_ms}"
        );
    }
}

fn red(min_bytes: u64, max_bytes: u64, max_probability: f64, weight: f64, ecn: bool) -> QueueSpec {
    discipline(Discipline::Red {
        min_bytes,
        max_bytes,
        max_probability,
        weight,
        ecn,
    })
}

/// At a steady average, the gaps between two marks are even from 1 to 1 / pb (the paper, section 7,
/// method 2).
#[test]
fn red_spreads_its_marks_evenly() {
    // 150,000 bytes wait, and each segment that leaves makes room for the next: the average is as far
    // between the thresholds as the marks are, so pb = 0.02 and gaps are 1 to 50.
    let mut chain = bottleneck(SLOW_BPS, red(0, 750_000, 0.1, 1.0, true), 0);
    let mut burst: Traffic = vec![(
        0,
        Run {
            ecn: Ecn::Marked,
            ..Run::full(0, 101)
        },
    )];
    burst.extend((101..50_000).map(|first| (MS_NS, Run::single(first, 1500))));
    let marked: Vec<_> = marked(&pass(&mut chain, &burst))
        .into_iter()
        .filter(|number| *number > 200)
        .collect();
    let gaps: Vec<_> = marked.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(
        gaps.iter().all(|gap| (1..=50).contains(gap)),
        "{:?}",
        gaps.iter().max()
    );
    let mean = gaps.iter().sum::<u64>() as f64 / gaps.len() as f64;
    let deviation = ((50.0 * 50.0 - 1.0) / 12.0f64).sqrt() / (gaps.len() as f64).sqrt();
    assert!((mean - 25.5).abs() < 4.0 * deviation, "{mean}");
}

#[test]
fn red_drops_nothing_below_its_minimum_and_everything_above_its_maximum() {
    let burst = |ecn| {
        vec![(
            0,
            Run {
                ecn,
                ..Run::full(0, 100)
            },
        )]
    };
    let mut below = bottleneck(SLOW_BPS, red(150_000, 200_000, 1.0, 1.0, false), 0);
    assert_eq!(numbers(&pass(&mut below, &burst(Ecn::Capable))).len(), 100);
    // With weight 1 the average is the depth that the segment meets: 0 to 15,000 bytes pass.
    for ecn in [Ecn::Capable, Ecn::NotCapable] {
        let mut above = bottleneck(SLOW_BPS, red(15_000, 15_001, 0.0, 1.0, true), 0);
        assert_eq!(numbers(&pass(&mut above, &burst(ecn))).len(), 11);
        assert_eq!(dropped(&above, DropCause::Early), 89);
    }
}

#[test]
fn red_forgets_while_the_queue_is_empty() {
    // After the burst the average is above the maximum.
    let second_passes = |idle_ns: u64| {
        let mut chain = bottleneck(SLOW_BPS, red(10_000, 20_000, 1.0, 0.05, false), 0);
        let burst = pass(&mut chain, &vec![(0, Run::full(0, 60))]);
        let empty_ns = burst.last().unwrap().at_ns;
        chain.push(empty_ns + idle_ns, Run::single(60, 1500));
        chain.held().packets == 1
    };
    assert!(!second_passes(0));
    // 1,500 typical packets could have been sent.
    assert!(second_passes(1_000 * MS_NS));
}

#[test]
fn red_marks_only_those_who_can_be_marked() {
    let queue = || red(1_500, 1_000_000, 1.0, 1.0, true);
    let traffic = |ecn| {
        vec![(
            0,
            Run {
                ecn,
                ..Run::full(0, 200)
            },
        )]
    };
    let outcome = |ecn| {
        let mut chain = bottleneck(SLOW_BPS, queue(), 0);
        pass(&mut chain, &traffic(ecn));
        (
            dropped(&chain, DropCause::Early) > 0,
            chain.counters().marked.packets > 0,
        )
    };
    assert_eq!(outcome(Ecn::NotCapable), (true, false));
    assert_eq!(outcome(Ecn::Capable), (false, true));
    assert_eq!(outcome(Ecn::Marked), (false, false));
}

#[test]
fn a_super_packet_stays_whole_while_its_segments_fare_alike() {
    for discipline in [
        Discipline::DropTail,
        Discipline::DropHead,
        Discipline::Codel {
            target_ns: MS_NS,
            interval_ns: 1_000 * MS_NS,
            ecn: false,
        },
        Discipline::Red {
            min_bytes: 1_000_000,
            max_bytes: 2_000_000,
            max_probability: 0.1,
            weight: 0.5,
            ecn: false,
        },
    ] {
        let queue = QueueSpec {
            discipline,
            ..QueueSpec::default()
        };
        let traffic: Traffic = (0..4).map(|index| (1, Run::full(45 * index, 45))).collect();
        let left = pass(&mut bottleneck(SLOW_BPS, queue, 0), &traffic);
        // CoDel cannot know, of the last two segments in line, whether more come behind them.
        assert!(left.len() <= 7, "{discipline:?}: {}", left.len());
    }
}

/// The bottleneck of the MPI paper (seed 001): 500 Mb/s, 128 KiB. 87 segments of 1,500 bytes fit; in
/// 1,032 µs, 43 of them are sent, so that as many of a second burst fit.
#[test]
fn bursts_into_128_kib_at_500_mbit_lose_just_what_does_not_fit() {
    let mut chain = chain([CellSpec::rate(500_000_000, Some(131_072))], 1);
    let burst = |first: u64| (0..5).map(move |index| Run::full(first + 40 * index, 40));
    burst(0).for_each(|run| chain.push(0, run));
    assert_eq!(dropped(&chain, DropCause::QueueFull), 113);
    assert_eq!(chain.take_peak_bytes(0), 130_500);
    let again_ns = 43 * 24_000;
    burst(200).for_each(|run| chain.push(again_ns, run));
    assert_eq!(dropped(&chain, DropCause::QueueFull), 113 + 157);
    assert_eq!(chain.take_peak_bytes(again_ns), 130_500);
    let mut left = vec![];
    drain(&mut chain, &mut left);
    let expected: Vec<u64> = (0..87).chain(200..243).collect();
    assert_eq!(numbers(&left), expected);
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a simulation gave, in the words of the lab's results.
//!
//! Pure. Start with [`run`].

use std::collections::BTreeMap;
use std::time::Duration;

use fatpath_link::DropCause;
use fatpath_observation::{Depths, DirectionFigures};
use fatpath_scenario::limit::{Limit, bottleneck_mbps_between};
use fatpath_scenario::plan::Plan;
use fatpath_scenario::{Case, Experiment, Flow, Source};
use fatpath_sim::{DatagramOutcome, FlowOutcome, LinkOutcome, Outcome};
use thiserror::Error;

use super::mapped::Mapped;
use super::mapping::handshake_ns;
use super::window;
use crate::measured::{Interval, Measured, SeenBy, Transfers, Udp};
use crate::results::{Row, Run};

/// Intervals of throughput over time, about.
const INTERVALS: f64 = 100.0;

/// A flow that did not end.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{flow}: did not end within its time limit of {} s", limit.as_secs_f64())]
pub(super) struct Unfinished {
    flow: String,
    limit: Duration,
}

/// The run of a case, from what its simulation gave.
///
/// # Errors
/// If a flow that ends by itself did not.
pub(super) fn run(
    case: &Case,
    plan: &Plan,
    experiment: &Experiment,
    mapped: &Mapped,
    outcome: &Outcome,
    row: Row,
) -> Result<Run, Unfinished> {
    let mut measured = vec![];
    for (index, flow) in mapped.flows.iter().enumerate() {
        let streams = mapped.streams_of(index, &outcome.flows);
        let rtt_ns = mapped.rtt_ns[index];
        check_finished(flow, streams, handshake_ns(flow, rtt_ns))?;
        measured.push((
            flow.label.clone(),
            of_flow(flow, streams, rtt_ns, outcome.ended_ns),
        ));
    }
    let mut run = Run {
        row,
        measured: None,
        series: None,
    };
    run.give(&measured);
    let lasting = Duration::from_nanos(outcome.ended_ns);
    let row = &mut run.row;
    row.bottleneck_mbps = bottleneck_mbps(case, plan, mapped, lasting);
    if experiment.observe.is_some() {
        row.directions = directions(case, plan, outcome);
    }
    row.trusted = Some(true);
    Ok(run)
}

/// The least rate on the ways of all flows, if it is one.
pub(super) fn bottleneck_mbps(
    case: &Case,
    plan: &Plan,
    mapped: &Mapped,
    lasting: Duration,
) -> Option<f64> {
    let ends = mapped
        .flows
        .iter()
        .map(|flow| (&flow.from[..], &flow.to[..]));
    bottleneck_mbps_between(plan, &case.changes, ends, lasting)
}

impl Mapped {
    /// What the streams of a flow gave.
    pub(super) fn streams_of<'o>(
        &self,
        flow: usize,
        outcomes: &'o [FlowOutcome],
    ) -> &'o [FlowOutcome] {
        let first = self.first_streams[flow];
        let streams = self.flows[flow].streams as usize;
        outcomes.get(first..first + streams).unwrap_or_default()
    }
}

/// Other flows may have kept the simulation going beyond its limit.
fn check_finished(flow: &Flow, streams: &[FlowOutcome], before_ns: u64) -> Result<(), Unfinished> {
    let transfers = match flow.source {
        Source::Chunks { count, .. } => count.unwrap_or(0),
        _ => 1,
    };
    let in_time = u128::from(lasting_ns(streams, before_ns)) <= flow.time_limit.as_nanos();
    let is_through = |stream: &FlowOutcome| in_time && stream.completions.count >= transfers;
    match flow.lasts.is_some() || streams.iter().all(is_through) {
        true => Ok(()),
        false => Err(Unfinished {
            flow: flow.label.clone(),
            limit: flow.time_limit,
        }),
    }
}

fn of_flow(flow: &Flow, streams: &[FlowOutcome], rtt_ns: u64, ended_ns: u64) -> Measured {
    let start_ns = flow.start.as_nanos() as u64;
    let established_ns = streams.iter().filter_map(|stream| stream.established_ns);
    let before_ns = established_ns
        .min()
        .map_or(handshake_ns(flow, rtt_ns), |at_ns| at_ns - start_ns);
    let of_tcp =
        |count: fn(&FlowOutcome) -> u64| (!flow.is_udp()).then(|| streams.iter().map(count).sum());
    let lasting_s = lasting_ns(streams, before_ns) as f64 / 1e9;
    Measured {
        goodput_bps: goodput_bps(streams, before_ns),
        begin_s: flow.start.as_secs_f64() + before_ns as f64 / 1e9,
        lasting_s,
        retransmits: of_tcp(|stream| stream.retransmits),
        udp: udp(streams),
        reverse: flow.opened_by_receiver,
        seen_by: SeenBy::Receiver,
        intervals: intervals(streams, ended_ns),
        timeouts: of_tcp(|stream| stream.timeouts),
        congestion_events: of_tcp(|stream| stream.congestion_events),
        undone_events: of_tcp(|stream| stream.undone_events),
        transfers: transfers(flow, streams),
        window: match streams {
            [stream] => window::of(&stream.samples),
            _ => None,
        },
    }
}

/// Of all streams together, until the last one is through: rates of streams that ended earlier would
/// add up to more than the path carries.
fn goodput_bps(streams: &[FlowOutcome], before_ns: u64) -> f64 {
    let bytes: u64 = streams.iter().map(|stream| stream.delivered_bytes).sum();
    match lasting_ns(streams, before_ns) {
        0 => 0.0,
        sending_ns => bytes as f64 * 8e9 / sending_ns as f64,
    }
}

fn lasting_ns(streams: &[FlowOutcome], before_ns: u64) -> u64 {
    let longest_ns = streams.iter().map(|stream| stream.duration_ns).max();
    longest_ns.unwrap_or(0).saturating_sub(before_ns)
}

fn udp(streams: &[FlowOutcome]) -> Option<Udp> {
    let datagrams: Vec<&DatagramOutcome> = streams.iter().flat_map(|one| &one.datagrams).collect();
    let jitter_ns: u64 = datagrams.iter().map(|one| one.jitter_ns).sum();
    (!datagrams.is_empty()).then(|| Udp {
        packets: datagrams.iter().map(|one| one.sent).sum(),
        lost_packets: datagrams.iter().map(|one| one.lost).sum(),
        jitter_ms: jitter_ns as f64 / 1e6 / datagrams.len() as f64,
    })
}

/// Of one stream; those of several streams have no common distribution.
fn transfers(flow: &Flow, streams: &[FlowOutcome]) -> Option<Transfers> {
    let [stream] = streams else { return None };
    let is_one = matches!(flow.source, Source::Bulk { bytes: None, .. });
    let done = &stream.completions;
    let seconds = |share| Some(done.took_quantile_ns(share)? as f64 / 1e9);
    (!is_one && done.count > 0).then_some(())?;
    Some(Transfers {
        count: done.count,
        mean_s: done.took_mean_ns()? / 1e9,
        median_s: seconds(0.5)?,
        p99_s: seconds(0.99)?,
    })
}

/// Throughput over time since the programs started, of all streams together.
fn intervals(streams: &[FlowOutcome], ended_ns: u64) -> Vec<Interval> {
    let end_s = ended_ns as f64 / 1e9;
    let length_s = round_length_s(end_s / INTERVALS);
    let curves: Vec<_> = streams
        .iter()
        .map(|stream| delivered(stream, ended_ns))
        .collect();
    let at = |s: f64| curves.iter().map(|curve| value_at(curve, s)).sum::<f64>();
    let count = (end_s / length_s).ceil() as usize;
    let ends = (0..=count).map(|n| (n as f64 * length_s).min(end_s));
    let points: Vec<(f64, f64)> = ends.map(|s| (s, at(s))).collect();
    let pairs = points.windows(2).filter(|pair| pair[1].0 > pair[0].0);
    pairs
        .map(|pair| Interval {
            start_s: pair[0].0,
            end_s: pair[1].0,
            rate_bps: (pair[1].1 - pair[0].1) * 8.0 / (pair[1].0 - pair[0].0),
        })
        .collect()
}

/// The next length of 1, 2 or 5 times a power of ten.
fn round_length_s(least_s: f64) -> f64 {
    let power = 10f64.powf(least_s.max(1e-6).log10().floor());
    let rounds = [1.0, 2.0, 5.0].map(|times| times * power);
    let fits = rounds
        .into_iter()
        .find(|length_s| *length_s >= least_s * 0.999);
    fits.unwrap_or(10.0 * power)
}

/// Seconds and bytes that were delivered by then, from 0 to the end.
fn delivered(stream: &FlowOutcome, ended_ns: u64) -> Vec<(f64, f64)> {
    let samples = stream.samples.iter();
    let inner = samples.map(|sample| (sample.at_ns as f64 / 1e9, sample.delivered_bytes as f64));
    let last = (ended_ns as f64 / 1e9, stream.delivered_bytes as f64);
    [(0.0, 0.0)]
        .into_iter()
        .chain(inner)
        .chain([last])
        .collect()
}

/// Between two points in proportion.
fn value_at(curve: &[(f64, f64)], s: f64) -> f64 {
    let next = curve.partition_point(|(at_s, _)| *at_s < s);
    match (next.checked_sub(1).map(|last| curve[last]), curve.get(next)) {
        (Some((from_s, from)), Some((to_s, to))) => {
            from + (to - from) * (s - from_s) / (to_s - from_s)
        }
        (None, Some((_, first))) => *first,
        (Some((_, last)), None) => last,
        (None, None) => 0.0,
    }
}

fn directions(case: &Case, plan: &Plan, outcome: &Outcome) -> Vec<DirectionFigures> {
    let lasting = Duration::from_nanos(outcome.ended_ns);
    let links = plan.links.iter().zip(&outcome.links);
    let directions = links.flat_map(|(link, both)| {
        both.iter().enumerate().map(move |(direction, did)| {
            let limit = Limit::during(link, direction, &case.changes, lasting);
            let names = [0, 1].map(|end| link.between[(direction + end) % 2].clone());
            direction_figures(&link.name, names, did, limit, lasting)
        })
    });
    directions.collect()
}

fn direction_figures(
    link: &str,
    [from, to]: [String; 2],
    did: &LinkOutcome,
    limit: Limit,
    lasting: Duration,
) -> DirectionFigures {
    let left = did.counters.left;
    let duration_s = lasting.as_secs_f64().max(1e-9);
    let queues = did
        .samples
        .iter()
        .map(|sample| sample.peak_queue_bytes as f64);
    let mut depths = Depths::default();
    did.samples
        .iter()
        .for_each(|sample| depths.note(sample.peak_queue_bytes));
    let causes = DropCause::ALL.map(|cause| (cause, did.counters.dropped(cause).packets));
    let dropped: BTreeMap<String, u64> = causes
        .into_iter()
        .map(|(cause, packets)| (cause.name().to_owned(), packets))
        .collect();
    DirectionFigures {
        link: link.to_owned(),
        from,
        to,
        left_mbps: left.bytes as f64 * 8.0 / 1e6 / duration_s,
        utilisation: limit.utilisation(left, duration_s),
        mean_queue_bytes: queues.sum::<f64>() / did.samples.len().max(1) as f64,
        p95_queue_bytes: depths.quantile(0.95, did.samples.len() as u64),
        peak_queue_bytes: did.peak_queue_bytes,
        dropped,
        marked: did.counters.marked.packets,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fatpath_sim::Sample;

    fn stream(points: &[(u64, u64)], delivered_bytes: u64) -> FlowOutcome {
        let sample = |(ms, delivered_bytes): &(u64, u64)| Sample {
            at_ns: ms * 1_000_000,
            delivered_bytes: *delivered_bytes,
            ..Sample::default()
        };
        FlowOutcome {
            samples: points.iter().map(sample).collect(),
            delivered_bytes,
            ..FlowOutcome::default()
        }
    }

    #[test]
    fn intervals_add_up_to_what_was_delivered() {
        let one = stream(&[(300, 100), (700, 100), (1000, 4000)], 5000);
        let other = stream(&[(500, 0)], 700);
        let intervals = intervals(&[one, other], 2_000_000_000);
        assert_eq!(intervals.len(), 100);
        let bytes: f64 = intervals
            .iter()
            .map(|one| one.rate_bps / 8.0 * (one.end_s - one.start_s))
            .sum();
        assert!((bytes - 5700.0).abs() < 1e-6, "{bytes}");
        assert_eq!(intervals[17].rate_bps, 0.0);
    }

    #[test]
    fn streams_of_unequal_length_never_exceed_their_path() {
        let stream = |delivered_bytes, duration_ns| FlowOutcome {
            delivered_bytes,
            duration_ns,
            ..FlowOutcome::default()
        };
        let second = 1_000_000_000;
        let both = [stream(1_000, second), stream(1_000, 2 * second)];
        assert_eq!(goodput_bps(&both, 0), 8_000.0);
        assert_eq!(goodput_bps(&both[..1], second / 2), 16_000.0);
        assert_eq!(goodput_bps(&both[..1], second), 0.0);
    }

    #[test]
    fn lengths_of_intervals_are_round() {
        for (least_s, length_s) in [(0.1, 0.1), (0.11, 0.2), (0.3, 0.5), (7.0, 10.0)] {
            assert!(
                (round_length_s(least_s) - length_s).abs() < 1e-9,
                "{least_s}"
            );
        }
    }
}

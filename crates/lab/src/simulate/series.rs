// SPDX-License-Identifier: MIT OR Apache-2.0
//! Series of the flows of a run as CSV: a line a sample, stream by stream.
//!
//! Pure. Start with [`csv`]; plots read it back by [`windows`].

use fatpath_sim::{FlowOutcome, Outcome, Sample};
use serde::{Deserialize, Serialize};

use super::spec::Mapped;

/// The most streams that are written down.
const MOST_STREAMS: usize = 1_000;

/// Seconds and segments.
pub(crate) type Curve = Vec<(f64, f64)>;

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    flow: String,
    stream: usize,
    t_s: f64,
    cwnd_pkts: u32,
    /// Empty: none was found yet.
    ssthresh_pkts: Option<u32>,
    /// Empty: the flow is polite.
    fair_pkts: Option<u32>,
    in_flight_pkts: u64,
    srtt_ms: f64,
    /// Since the sample before.
    goodput_mbps: f64,
    delivered_bytes: u64,
    retransmits: u64,
}

/// The file of a run.
pub(super) fn csv(mapped: &Mapped, outcome: &Outcome) -> Vec<u8> {
    let mut writer = csv::Writer::from_writer(vec![]);
    let flows = mapped.flows.iter().enumerate();
    let streams = flows.flat_map(|(index, flow)| {
        let streams = mapped.streams_of(index, &outcome.flows).iter().enumerate();
        streams.map(|(stream, outcome)| (&flow.label, stream + 1, outcome))
    });
    for (label, stream, outcome) in streams.take(MOST_STREAMS) {
        for line in lines(label, stream, outcome) {
            writer.serialize(line).expect("memory takes every line");
        }
    }
    writer.into_inner().expect("memory takes every line")
}

fn lines(label: &str, stream: usize, outcome: &FlowOutcome) -> impl Iterator<Item = Line> {
    let mut before = Sample::default();
    outcome.samples.iter().map(move |sample| {
        let line = line(label, stream, &before, sample);
        before = *sample;
        line
    })
}

fn line(flow: &str, stream: usize, before: &Sample, sample: &Sample) -> Line {
    let bits = (sample.delivered_bytes - before.delivered_bytes) as f64 * 8.0;
    let us = (sample.at_ns - before.at_ns) as f64 / 1e3;
    Line {
        flow: flow.to_owned(),
        stream,
        t_s: sample.at_ns as f64 / 1e9,
        cwnd_pkts: sample.cwnd_pkts,
        ssthresh_pkts: (sample.ssthresh_pkts < i32::MAX as u32).then_some(sample.ssthresh_pkts),
        fair_pkts: sample.fair_pkts,
        in_flight_pkts: sample.in_flight_pkts,
        srtt_ms: f64::from(sample.srtt_us) / 1e3,
        goodput_mbps: (bits / us.max(1e-3) * 1e3).round() / 1e3,
        delivered_bytes: sample.delivered_bytes,
        retransmits: sample.retransmits,
    }
}

/// Seconds and segments of the congestion windows in a file, at most so many streams; after that of a
/// flow that is rude or going polite, its fair window.
pub(crate) fn windows(file: &[u8], most: usize) -> Vec<Curve> {
    let mut streams: Vec<((String, usize), [Curve; 2])> = vec![];
    let lines = csv::Reader::from_reader(file).into_deserialize::<Line>();
    for line in lines.map_while(Result::ok) {
        let window_pkts = window_pkts(&line);
        let key = (line.flow, line.stream);
        if streams.last().is_none_or(|(last, _)| *last != key) {
            if streams.len() == most {
                break;
            }
            streams.push((key, [vec![], vec![]]));
        }
        if let Some((_, [windows, fair])) = streams.last_mut() {
            windows.push((line.t_s, window_pkts as f64));
            fair.extend(line.fair_pkts.map(|fair_pkts| (line.t_s, fair_pkts.into())));
        }
    }
    let has_window = |points: &Curve| points.iter().any(|(_, cwnd)| *cwnd > 0.0);
    let points = streams.into_iter().flat_map(|(_, curves)| curves);
    points.filter(has_window).collect()
}

/// A rude flow's window is the peer's; what it has in flight tells more.
fn window_pkts(line: &Line) -> u64 {
    match line.fair_pkts {
        Some(_) => line.in_flight_pkts.min(line.cwnd_pkts.into()),
        None => line.cwnd_pkts.into(),
    }
}

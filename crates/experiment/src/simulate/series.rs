// SPDX-License-Identifier: MIT OR Apache-2.0
//! The samples of a simulation's flows as series.
//!
//! Pure. Start with [`csv`].

use fatpath_sim::{FlowOutcome, Outcome, Sample};

use super::mapped::Mapped;
use crate::results::series::{self, Line};

/// The most streams that are written down.
const MOST_STREAMS: usize = 1_000;

/// The file of a run.
pub(super) fn csv(mapped: &Mapped, outcome: &Outcome) -> Vec<u8> {
    let flows = mapped.flows.iter().enumerate();
    let streams = flows.flat_map(|(index, flow)| {
        let streams = mapped.streams_of(index, &outcome.flows).iter().enumerate();
        streams.map(|(stream, outcome)| (&flow.label, stream + 1, outcome))
    });
    let streams = streams.take(MOST_STREAMS);
    series::csv(streams.flat_map(|(label, stream, outcome)| lines(label, stream, outcome)))
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

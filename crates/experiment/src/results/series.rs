// SPDX-License-Identifier: MIT OR Apache-2.0
//! Series of the flows of a run as CSV: a line a sample, stream by stream.
//!
//! Pure. Start with [`Line`]; plots read the file back by [`windows`].

use fatpath_plot::Curve;
use serde::{Deserialize, Serialize};

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Line {
    pub(crate) flow: String,
    pub(crate) stream: usize,
    pub(crate) t_s: f64,
    pub(crate) cwnd_pkts: u32,
    /// Empty: none was found yet.
    pub(crate) ssthresh_pkts: Option<u32>,
    /// Empty: the flow is polite.
    pub(crate) fair_pkts: Option<u32>,
    pub(crate) in_flight_pkts: u64,
    pub(crate) srtt_ms: f64,
    /// Since the sample before.
    pub(crate) goodput_mbps: f64,
    pub(crate) delivered_bytes: u64,
    pub(crate) retransmits: u64,
}

/// The file of these lines.
pub(crate) fn csv(lines: impl Iterator<Item = Line>) -> Vec<u8> {
    let mut writer = csv::Writer::from_writer(vec![]);
    for line in lines {
        writer.serialize(line).expect("memory takes every line");
    }
    writer.into_inner().expect("memory takes every line")
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

// SPDX-License-Identifier: MIT OR Apache-2.0
//! One direction of a captured connection over time: outstanding data beside the receiver's window, round-trip times,
//! goodput at the moment and in all.

use std::ops::Range;

use fatpath_capture::{Point, Way, goodput};
use plotters::coord::Shift;
use plotters::prelude::*;

use super::line_panel::LinePanel;
use super::thin::thinned;
use super::time_sequence::seconds;
use super::{Curve, Drawn, Figure};

const PANEL_HEIGHT_PX: u32 = 300;
/// Of the time that goodput is averaged over, in the whole.
const MOVING_SHARE: i64 = 100;
/// Shorter times have a few segments only.
const LEAST_MOVING_NS: i64 = 10_000_000;

/// Data of one end over time.
pub struct CapturedOverTime {
    title: String,
    x: Range<f64>,
    panels: [LinePanel; 3],
}

impl CapturedOverTime {
    /// `origin_ns` is the first segment's time. None without data.
    pub fn of(title: String, way: &Way, origin_ns: i64) -> Option<CapturedOverTime> {
        let panels = panels(way, origin_ns);
        let lines = panels.iter().flat_map(|panel| &panel.lines);
        let times = lines.flat_map(|(_, line)| line).map(|(at, _)| *at);
        let (first, last) = times.fold((f64::MAX, f64::MIN), |(a, b), s| (a.min(s), b.max(s)));
        (way.has_data() && first <= last).then(|| CapturedOverTime {
            title,
            x: first..last.max(first + 1e-6),
            panels,
        })
    }
}

/// Over which goodput at the moment is averaged: a hundredth of the whole, or 10 ms where that is more.
pub(super) fn moving_ns(way: &Way) -> i64 {
    let whole = way.acked.first().zip(way.acked.last());
    let whole = whole.map(|(first, last)| last.time_ns.saturating_sub(first.time_ns));
    (whole.unwrap_or_default() / MOVING_SHARE).max(LEAST_MOVING_NS)
}

fn panels(way: &Way, origin_ns: i64) -> [LinePanel; 3] {
    let line = |points: &[Point], unit: f64| -> Curve {
        let at = |point: &Point| (seconds(point.time_ns, origin_ns), point.value as f64 / unit);
        points.iter().map(at).collect()
    };
    let [moving, total] = goodput(&way.acked, moving_ns(way));
    let end_s = [&way.outstanding, &way.window, &way.rtt];
    let end_s = end_s.iter().filter_map(|points| points.last());
    let end_s = end_s.map(|point| seconds(point.time_ns, origin_ns));
    let end_s = end_s.fold(f64::MIN, f64::max);
    let panel = |caption, y_desc, lines: Vec<(&'static str, Curve)>| LinePanel {
        caption,
        y_desc,
        lines,
    };
    [
        panel(
            "outstanding data (sent and not acknowledged) and the receiver's window",
            "kB",
            drawn(vec![
                ("window", stepped(line(&way.window, 1e3), end_s)),
                ("outstanding", stepped(line(&way.outstanding, 1e3), end_s)),
                (
                    "congestion window, estimated",
                    stepped(line(&way.cwnd, 1e3), end_s),
                ),
                (
                    "congestion window, the kernel's",
                    stepped(line(&way.kernel.cwnd, 1e3), end_s),
                ),
                (
                    "in flight, the kernel's",
                    thinned(line(&way.kernel.in_flight, 1e3)),
                ),
            ]),
        ),
        panel(
            "round-trip time, from the capture to the receiver and back; none of retransmitted data",
            "ms",
            drawn(vec![
                ("measured", thinned(line(&way.rtt, 1e6))),
                (
                    "smoothed, the kernel's",
                    stepped(line(&way.kernel.srtt, 1e6), end_s),
                ),
            ]),
        ),
        panel(
            "goodput: data acknowledged by time",
            "Mb/s",
            vec![
                (
                    "moving, over a hundredth of the time",
                    thinned(line(&moving, 1e6)),
                ),
                ("since the first ACK", thinned(line(&total, 1e6))),
            ],
        ),
    ]
}

/// What has no point stands in no legend.
fn drawn(mut lines: Vec<(&'static str, Curve)>) -> Vec<(&'static str, Curve)> {
    lines.retain(|(_, line)| !line.is_empty());
    lines
}

/// A value holds until the next, the last to the end.
fn stepped(line: Curve, end_s: f64) -> Curve {
    let mut steps = Curve::with_capacity(2 * line.len());
    for (at, value) in line {
        steps.extend(steps.last().map(|(_, before)| (at, *before)));
        steps.push((at, value));
    }
    steps.extend(steps.last().map(|(_, value)| (end_s, *value)));
    thinned(steps)
}

impl Figure for CapturedOverTime {
    fn title(&self) -> &str {
        &self.title
    }

    fn height_px(&self) -> u32 {
        PANEL_HEIGHT_PX * self.panels.len() as u32
    }

    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Drawn
    where
        B::ErrorType: 'static,
    {
        let areas = area.split_evenly((self.panels.len(), 1));
        let mut pairs = areas.iter().zip(&self.panels);
        pairs.try_for_each(|(area, panel)| {
            panel.draw(
                area,
                "time since the first segment (s)",
                self.x.clone(),
                &[],
            )
        })
    }
}

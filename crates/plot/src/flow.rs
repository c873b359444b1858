// SPDX-License-Identifier: MIT OR Apache-2.0
//! One traced flow over time, as the figures of the WAD paper: windows, round-trip time, rate at the moment
//! and on average, retransmissions. Marks on the windows are reductions.

use std::ops::Range;

use fatpath_api::Point;
use plotters::coord::Shift;
use plotters::prelude::*;

use super::line_panel::LinePanel;
use super::thin::thinned;
use super::{Curve, Drawn, Figure};

const PANEL_HEIGHT_PX: u32 = 260;
/// A flow over time.
#[derive(Clone, Debug, Default)]
pub struct FlowOverTime {
    /// What stands above it.
    pub title: String,
    /// In the order of time.
    pub points: Vec<Point>,
    /// When the window was reduced, in seconds as those of the points.
    pub congestion_s: Vec<f64>,
}

impl FlowOverTime {
    fn panels(&self) -> [LinePanel; 4] {
        [
            LinePanel {
                caption: "windows",
                y_desc: "segments",
                lines: vec![
                    ("in flight", self.line(|p| Some(p.in_flight_pkts.into()))),
                    ("cwnd", self.line(|p| Some(p.cwnd_pkts.into()))),
                    ("ssthresh", self.ssthresh()),
                ],
            },
            LinePanel {
                caption: "round-trip time",
                y_desc: "ms",
                lines: vec![
                    ("measured", self.line(|p| Some(f64::from(p.rtt_us?) / 1e3))),
                    ("smoothed", self.line(|p| Some(f64::from(p.srtt_us) / 1e3))),
                ],
            },
            LinePanel {
                caption: "rate",
                y_desc: "Mb/s",
                lines: vec![
                    ("instantaneous", self.line(|p| Some(p.rate_bps / 1e6))),
                    ("average", self.line(|p| Some(p.average_bps / 1e6))),
                ],
            },
            LinePanel {
                caption: "retransmissions",
                y_desc: "segments, in all",
                lines: vec![("retransmitted", self.retransmitted())],
            },
        ]
    }

    fn line(&self, value: impl Fn(&Point) -> Option<f64>) -> Curve {
        let points = self.points.iter();
        let points = points.filter_map(|point| Some((point.t_s, value(point)?)));
        thinned(points.collect())
    }

    /// Some laws set it to no limit at all: what is far above every window is not drawn.
    fn ssthresh(&self) -> Curve {
        let top = self.points.iter().map(|point| point.cwnd_pkts).max();
        let top = f64::from(top.unwrap_or_default()) * 2.0;
        self.line(|p| p.ssthresh_pkts.map(f64::from).filter(|pkts| *pkts <= top))
    }

    fn retransmitted(&self) -> Curve {
        let mut sum = 0.0;
        let sums = self.points.iter().map(|point| {
            sum += point.retransmitted_pkts as f64;
            (point.t_s, sum)
        });
        thinned(sums.collect())
    }

    fn x_range(&self) -> Range<f64> {
        let ends = (self.points.first(), self.points.last());
        let (Some(first), Some(last)) = ends else {
            return 0.0..1.0;
        };
        // One point alone has a width, too.
        first.t_s..last.t_s.max(first.t_s + 1e-3)
    }
}

impl Figure for FlowOverTime {
    fn title(&self) -> &str {
        &self.title
    }

    fn height_px(&self) -> u32 {
        PANEL_HEIGHT_PX * self.panels().len() as u32
    }

    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Drawn
    where
        B::ErrorType: 'static,
    {
        let panels = self.panels();
        let areas = area.split_evenly((panels.len(), 1));
        let mut pairs = areas.iter().zip(&panels);
        pairs.try_for_each(|(area, panel)| {
            let has_marks = panel.caption == "windows";
            let marks = if has_marks {
                &self.congestion_s[..]
            } else {
                &[]
            };
            panel.draw(
                area,
                "time since the flow was first seen (s)",
                self.x_range(),
                marks,
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::seen::Pixels;
    use super::super::{LINES, TITLE_HEIGHT_PX};
    use super::*;

    fn point(t_s: f64) -> Point {
        Point {
            t_s,
            cwnd_pkts: 100,
            ssthresh_pkts: Some(i32::MAX as u32),
            srtt_us: 100_000,
            rtt_us: None,
            in_flight_pkts: 50,
            rate_bps: 1e8,
            average_bps: 5e7,
            retransmitted_pkts: 0,
        }
    }

    fn panel(n: u32) -> Range<u32> {
        let top = TITLE_HEIGHT_PX + n * PANEL_HEIGHT_PX;
        // Without the legend's corner at the bottom.
        top..top + PANEL_HEIGHT_PX / 2
    }

    #[test]
    fn each_panel_has_its_lines_and_reductions_are_marked() {
        let flow = FlowOverTime {
            points: (0..100).map(|n| point(f64::from(n) / 10.0)).collect(),
            ..FlowOverTime::default()
        };
        let seen = Pixels::of(&flow);
        for n in 0..3 {
            assert!(seen.count(panel(n), LINES[1]) > 500, "panel {n}");
        }
        // No RTT was measured, and no ssthresh in sight.
        assert_eq!(seen.count(panel(1), LINES[5]), 0);
        assert_eq!(seen.count(panel(0), LINES[4]), 0);
        assert_eq!(seen.count(panel(0), LINES[0]), 0);
        let reduced = FlowOverTime {
            congestion_s: vec![3.0],
            ..flow
        };
        assert!(Pixels::of(&reduced).count(panel(0), LINES[0]) > 10);
    }

    #[test]
    fn a_flow_without_points_or_with_one_is_drawn() {
        for points in [vec![], vec![point(3.0)]] {
            let flow = FlowOverTime {
                points,
                ..FlowOverTime::default()
            };
            assert_eq!(Pixels::of(&flow).width_px, 1280);
        }
    }
}

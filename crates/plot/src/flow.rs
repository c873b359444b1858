// SPDX-License-Identifier: MIT OR Apache-2.0
//! One traced flow over time, as the figures of the WAD paper: windows, round-trip time, rate at the moment
//! and on average, retransmissions. Marks on the windows are reductions.

use std::ops::Range;

use fatpath_api::Point;
use plotters::coord::Shift;
use plotters::prelude::*;

use super::{Axes, Drawn, Figure, LINES, draw_legend, round_ticks};

const PANEL_HEIGHT_PX: u32 = 260;
/// Of a line; more are thinned to the least and the greatest of each slice: a picture is 1280 pixels wide.
const MOST_POINTS: usize = 2400;

type Line = Vec<(f64, f64)>;

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

/// One of the panels.
struct Panel {
    caption: &'static str,
    y_desc: &'static str,
    lines: Vec<(&'static str, Line)>,
}

impl FlowOverTime {
    fn panels(&self) -> [Panel; 4] {
        [
            Panel {
                caption: "windows",
                y_desc: "segments",
                lines: vec![
                    ("in flight", self.line(|p| Some(p.in_flight_pkts.into()))),
                    ("cwnd", self.line(|p| Some(p.cwnd_pkts.into()))),
                    ("ssthresh", self.ssthresh()),
                ],
            },
            Panel {
                caption: "round-trip time",
                y_desc: "ms",
                lines: vec![
                    ("measured", self.line(|p| Some(f64::from(p.rtt_us?) / 1e3))),
                    ("smoothed", self.line(|p| Some(f64::from(p.srtt_us) / 1e3))),
                ],
            },
            Panel {
                caption: "rate",
                y_desc: "Mb/s",
                lines: vec![
                    ("instantaneous", self.line(|p| Some(p.rate_bps / 1e6))),
                    ("average", self.line(|p| Some(p.average_bps / 1e6))),
                ],
            },
            Panel {
                caption: "retransmissions",
                y_desc: "segments, in all",
                lines: vec![("retransmitted", self.retransmitted())],
            },
        ]
    }

    fn line(&self, value: impl Fn(&Point) -> Option<f64>) -> Line {
        let points = self.points.iter();
        let points = points.filter_map(|point| Some((point.t_s, value(point)?)));
        thinned(points.collect())
    }

    /// Some laws set it to no limit at all: what is far above every window is not drawn.
    fn ssthresh(&self) -> Line {
        let top = self.points.iter().map(|point| point.cwnd_pkts).max();
        let top = f64::from(top.unwrap_or_default()) * 2.0;
        self.line(|p| p.ssthresh_pkts.map(f64::from).filter(|pkts| *pkts <= top))
    }

    fn retransmitted(&self) -> Line {
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

    fn draw_panel<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>, panel: &Panel) -> Drawn
    where
        B::ErrorType: 'static,
    {
        let values = panel.lines.iter().flat_map(|(_, line)| line);
        let top = values.map(|(_, value)| *value).fold(1e-3, f64::max) * 1.1;
        let axes = Axes {
            caption: panel.caption,
            x_desc: "time since the flow was first seen (s)",
            y_desc: panel.y_desc,
            x: self.x_range(),
            x_ticks: round_ticks(&self.x_range()),
            y_top: top,
        };
        let mut chart = axes.draw(area)?;
        for ((name, line), colour) in panel.lines.iter().zip([LINES[5], LINES[1], LINES[4]]) {
            let series = LineSeries::new(line.iter().copied(), colour.stroke_width(2));
            chart
                .draw_series(series)?
                .label(*name)
                .legend(move |(x, y)| {
                    PathElement::new([(x, y), (x + 24, y)], colour.stroke_width(3))
                });
        }
        if panel.caption == "windows" && !self.congestion_s.is_empty() {
            let marks = self.congestion_s.iter();
            let marks =
                marks.map(|t_s| Cross::new((*t_s, top * 0.97), 4, LINES[0].stroke_width(2)));
            chart
                .draw_series(marks)?
                .label("reduction")
                .legend(|(x, y)| Cross::new((x + 12, y), 4, LINES[0].stroke_width(2)));
        }
        draw_legend(&mut chart, SeriesLabelPosition::LowerRight)
    }
}

/// The same line with fewer points: of each slice its least and its greatest, in their order.
fn thinned(line: Line) -> Line {
    if line.len() <= MOST_POINTS {
        return line;
    }
    let slice = line.len().div_ceil(MOST_POINTS / 2);
    let by_value = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
    let ends = line.chunks(slice).flat_map(|slice| {
        let (least, most) = (slice.iter().min_by(by_value), slice.iter().max_by(by_value));
        let mut both: Vec<(f64, f64)> = [least, most].into_iter().flatten().copied().collect();
        both.sort_by(|a, b| a.0.total_cmp(&b.0));
        both
    });
    ends.collect()
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
        pairs.try_for_each(|(area, panel)| self.draw_panel(area, panel))
    }
}

#[cfg(test)]
mod tests {
    use super::super::TITLE_HEIGHT_PX;
    use super::super::seen::Pixels;
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

    #[test]
    fn thinning_keeps_what_stands_out() {
        let mut line: Line = (0..100_000).map(|n| (f64::from(n), 1.0)).collect();
        line[50_000].1 = 9.0;
        line[70_000].1 = 0.5;
        let thin = thinned(line);
        assert!(thin.len() <= MOST_POINTS, "{}", thin.len());
        assert!(thin.contains(&(50_000.0, 9.0)) && thin.contains(&(70_000.0, 0.5)));
        assert!(thin.is_sorted_by(|a, b| a.0 <= b.0));
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What passed the links over time: for each direction its bandwidth and its queue's depth, drops
//! as marks at the depth. The figures 2 to 5 of Matsuda et al. are such plots.

use fatpath_observation::Bin;
use plotters::coord::Shift;
use plotters::prelude::*;

use super::{Axes, Drawn, Figure, INK, LINES, round_ticks};

const PANEL_HEIGHT_PX: u32 = 260;
/// Room for the largest picture that viewers still open.
const MOST_DIRECTIONS: usize = 16;

/// Bandwidth and queue of some directions.
#[derive(Debug, Default)]
pub struct Observed {
    /// What stands above it.
    pub title: String,
    /// Length of a bin, seconds.
    pub bin_s: f64,
    /// The directions; the first 16 are drawn.
    pub directions: Vec<ObservedDirection>,
}

/// One direction over time.
#[derive(Debug, Default)]
pub struct ObservedDirection {
    /// In words.
    pub name: String,
    /// Without gaps.
    pub bins: Vec<Bin>,
}

impl Observed {
    fn drawn(&self) -> &[ObservedDirection] {
        &self.directions[..self.directions.len().min(MOST_DIRECTIONS)]
    }

    fn begin_s(&self, bin: &Bin) -> f64 {
        bin.index as f64 * self.bin_s
    }

    fn mbps(&self, bin: &Bin) -> f64 {
        bin.left.bytes as f64 * 8.0 / self.bin_s / 1e6
    }

    fn x_range(&self) -> std::ops::Range<f64> {
        let bins = || self.directions.iter().flat_map(|one| &one.bins);
        let first = bins().map(|bin| self.begin_s(bin)).fold(f64::MAX, f64::min);
        let last = bins().map(|bin| self.begin_s(bin)).fold(0.0, f64::max);
        first.min(last)..last + self.bin_s
    }

    fn draw_bandwidth<B: DrawingBackend>(
        &self,
        area: &DrawingArea<B, Shift>,
        direction: &ObservedDirection,
    ) -> Drawn
    where
        B::ErrorType: 'static,
    {
        let caption = format!("{}: bandwidth", direction.name);
        let top = direction.bins.iter().map(|bin| self.mbps(bin));
        let axes = self.axes(&caption, "left (Mb/s)", top.fold(0.1, f64::max));
        let mut chart = axes.draw(area)?;
        let points = direction
            .bins
            .iter()
            .flat_map(|bin| self.step(bin, self.mbps(bin)));
        chart.draw_series(LineSeries::new(points, LINES[1].stroke_width(1)))?;
        Ok(())
    }

    fn draw_queue<B: DrawingBackend>(
        &self,
        area: &DrawingArea<B, Shift>,
        direction: &ObservedDirection,
    ) -> Drawn
    where
        B::ErrorType: 'static,
    {
        let depth_kb = |bin: &Bin| bin.peak_queue_bytes as f64 / 1e3;
        let dropped: u64 = direction.bins.iter().map(Bin::dropped_packets).sum();
        let caption = format!("{}: queue; {dropped} dropped (marks)", direction.name);
        let top = direction.bins.iter().map(depth_kb).fold(1.0, f64::max);
        let axes = self.axes(&caption, "deepest (kB)", top);
        let mut chart = axes.draw(area)?;
        let points = direction
            .bins
            .iter()
            .flat_map(|bin| self.step(bin, depth_kb(bin)));
        chart.draw_series(LineSeries::new(points, INK.stroke_width(1)))?;
        let drops = direction
            .bins
            .iter()
            .filter(|bin| bin.dropped_packets() > 0);
        let marks = drops.map(|bin| {
            let at = (self.begin_s(bin) + self.bin_s / 2.0, depth_kb(bin));
            Cross::new(at, 4, LINES[0].stroke_width(2))
        });
        chart.draw_series(marks)?;
        Ok(())
    }

    fn axes<'t>(&self, caption: &'t str, y_desc: &'t str, top: f64) -> Axes<'t> {
        Axes {
            caption,
            x_desc: "time since the lab came up (s)",
            y_desc,
            x: self.x_range(),
            x_ticks: round_ticks(&self.x_range()),
            y: 0.0..top * 1.1,
        }
    }

    /// A value holds for the whole of its bin.
    fn step(&self, bin: &Bin, value: f64) -> [(f64, f64); 2] {
        let begin_s = self.begin_s(bin);
        [(begin_s, value), (begin_s + self.bin_s, value)]
    }
}

impl Figure for Observed {
    fn title(&self) -> &str {
        &self.title
    }

    fn height_px(&self) -> u32 {
        2 * PANEL_HEIGHT_PX * self.drawn().len().max(1) as u32
    }

    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Drawn
    where
        B::ErrorType: 'static,
    {
        let areas = area.split_evenly((2 * self.drawn().len().max(1), 1));
        for (pair, direction) in areas.chunks(2).zip(self.drawn()) {
            self.draw_bandwidth(&pair[0], direction)?;
            self.draw_queue(&pair[1], direction)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::seen::Pixels;
    use super::*;
    use fatpath_link::Count;

    #[test]
    fn bandwidth_depth_and_drops_are_drawn() {
        let bin = |index: u64| {
            let packets = if index.is_multiple_of(5) { 3 } else { 0 };
            let mut bin = Bin {
                index,
                left: Count {
                    packets: 10,
                    bytes: 15_000 * (index % 7),
                },
                peak_queue_bytes: 1000 * index,
                ..Bin::default()
            };
            bin.dropped[0].packets = packets;
            bin
        };
        let mut observed = Observed {
            title: "run".into(),
            bin_s: 0.001,
            directions: vec![ObservedDirection {
                name: "wan, a to b".into(),
                bins: (0..100).map(bin).collect(),
            }],
        };
        let pixels = Pixels::of(&observed);
        let middle = pixels.height_px / 2;
        assert!(pixels.count(0..middle, LINES[1]) > 500);
        assert_eq!(pixels.count(0..middle, LINES[0]), 0);
        assert!(pixels.count(middle..pixels.height_px, INK) > 500);
        assert!(pixels.count(middle..pixels.height_px, LINES[0]) > 50);
        // Nothing in it is no reason to fail.
        observed.directions.clear();
        Pixels::of(&observed);
    }
}

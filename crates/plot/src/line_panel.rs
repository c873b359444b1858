// SPDX-License-Identifier: MIT OR Apache-2.0
//! A panel of lines over time, with a legend, and crosses at its top for moments.

use std::ops::Range;

use plotters::coord::Shift;
use plotters::prelude::*;

use super::{Axes, Curve, Drawn, LINES, draw_legend, round_ticks};

/// The first of [`LINES`] is that of marks.
const COLOURS: [RGBColor; 5] = [LINES[5], LINES[1], LINES[4], LINES[2], LINES[3]];

/// Lines over time.
pub(super) struct LinePanel {
    pub(super) caption: &'static str,
    pub(super) y_desc: &'static str,
    /// As many as there are colours at most: names and points.
    pub(super) lines: Vec<(&'static str, Curve)>,
}

impl LinePanel {
    /// `marks_s` are reductions of a window.
    pub(super) fn draw<B: DrawingBackend>(
        &self,
        area: &DrawingArea<B, Shift>,
        x_desc: &str,
        x_range: Range<f64>,
        marks_s: &[f64],
    ) -> Drawn
    where
        B::ErrorType: 'static,
    {
        let values = self.lines.iter().flat_map(|(_, line)| line);
        let top = values.map(|(_, value)| *value).fold(1e-3, f64::max) * 1.1;
        let axes = Axes {
            caption: self.caption,
            x_desc,
            y_desc: self.y_desc,
            x_ticks: round_ticks(&x_range),
            x: x_range,
            y: 0.0..top,
        };
        let mut chart = axes.draw(area)?;
        for ((name, line), colour) in self.lines.iter().zip(COLOURS) {
            let series = LineSeries::new(line.iter().copied(), colour.stroke_width(2));
            chart
                .draw_series(series)?
                .label(*name)
                .legend(move |(x, y)| {
                    PathElement::new([(x, y), (x + 24, y)], colour.stroke_width(3))
                });
        }
        if !marks_s.is_empty() {
            let marks = marks_s.iter();
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

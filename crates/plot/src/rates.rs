// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rates over loss rates, both in logarithms: a line for each law.

use std::ops::Range;

use plotters::coord::Shift;
use plotters::prelude::*;

use super::{Curve, Drawn, FAINT, FONT, Figure, INK, LINES};

const HEIGHT_PX: u32 = 720;

/// What laws are expected to reach at each loss rate.
#[derive(Clone, Debug, Default)]
pub struct RatesOverLoss {
    /// What stands above it.
    pub title: String,
    /// Name and points: share of the segments that are lost and bits a second, both above 0.
    pub lines: Vec<(String, Curve)>,
}

impl RatesOverLoss {
    fn range(&self, of: impl Fn(&(f64, f64)) -> f64) -> Range<f64> {
        let values = self.lines.iter().flat_map(|(_, line)| line).map(of);
        let (low, high) = values.fold((f64::INFINITY, 0.0f64), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        match low < high {
            true => low..high,
            // Without a line, or a single point: anything but an empty axis.
            false => 1.0..10.0,
        }
    }
}

impl Figure for RatesOverLoss {
    fn title(&self) -> &str {
        &self.title
    }

    fn height_px(&self) -> u32 {
        HEIGHT_PX
    }

    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Drawn
    where
        B::ErrorType: 'static,
    {
        let (x, y) = (self.range(|point| point.0), self.range(|point| point.1));
        let mut chart = ChartBuilder::on(area)
            .margin_top(6)
            .margin_left(16)
            .margin_right(32)
            .margin_bottom(8)
            .x_label_area_size(46)
            .y_label_area_size(92)
            .build_cartesian_2d(x.log_scale(), y.log_scale())?;
        chart
            .configure_mesh()
            .x_desc("loss rate, %")
            .y_desc("rate")
            .x_label_formatter(&|loss| format!("{}", (loss * 100.0 * 1e9).round() / 1e9))
            .y_label_formatter(&|bps| fatpath_units::show_rate(*bps as u64))
            .light_line_style(TRANSPARENT)
            .bold_line_style(FAINT)
            .axis_style(INK)
            .label_style((FONT, 15).into_font().color(&INK))
            .axis_desc_style((FONT, 16).into_font().color(&INK))
            .draw()?;
        for ((name, line), colour) in self.lines.iter().zip(LINES.into_iter().cycle()) {
            let style = colour.stroke_width(2);
            chart
                .draw_series(LineSeries::new(line.iter().copied(), style))?
                .label(name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 24, y)], style));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::LowerLeft)
            .background_style(WHITE.mix(0.85))
            .border_style(FAINT)
            .label_font((FONT, 15).into_font().color(&INK))
            .legend_area_size(34)
            .margin(10)
            .draw()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Format, picture};

    fn figure(lines: Vec<(String, Curve)>) -> RatesOverLoss {
        RatesOverLoss {
            title: "rates".to_owned(),
            lines,
        }
    }

    #[test]
    fn lines_are_named_and_axes_have_units() {
        let line = (0..7).map(|power| 10f64.powi(power - 8));
        let line = line.map(|loss| (loss, 1e5 / loss.sqrt())).collect();
        let svg = picture(&figure(vec![("fp_reno".to_owned(), line)]), Format::Svg).unwrap();
        let svg = String::from_utf8(svg).unwrap();
        for text in ["fp_reno", "loss rate, %", "Mb/s", "0.001"] {
            assert!(svg.contains(text), "{text}");
        }
    }

    #[test]
    fn nothing_is_drawn_of_nothing() {
        assert!(picture(&figure(vec![]), Format::Png).is_ok());
    }
}

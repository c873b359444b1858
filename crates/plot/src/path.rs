// SPDX-License-Identifier: MIT OR Apache-2.0
//! A path over time: what tests measured of it, and what the rules that follow it had in force.

use plotters::coord::Shift;
use plotters::prelude::*;

use super::line_panel::LinePanel;
use super::panels::PANEL_HEIGHT_PX;
use super::{Curve, Drawn, Figure};

/// One number of the path: seconds and values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Followed {
    /// As tests measured it.
    pub tested: Curve,
    /// As rules had it.
    pub in_force: Curve,
}

/// A path over time.
#[derive(Clone, Debug, Default)]
pub struct PathOverTime {
    /// What stands above it.
    pub title: String,
    /// Mb/s.
    pub rate: Followed,
    /// ms.
    pub rtt: Followed,
}

impl PathOverTime {
    fn end_s(&self) -> f64 {
        let curves = [&self.rate, &self.rtt].map(|it| it.tested.iter().chain(&it.in_force));
        let times = curves.into_iter().flatten().map(|(s, _)| *s);
        times.fold(1.0, f64::max)
    }
}

impl Followed {
    fn panel(&self, caption: &'static str, y_desc: &'static str) -> LinePanel {
        let lines = [("tests", &self.tested), ("in force", &self.in_force)];
        LinePanel {
            caption,
            y_desc,
            lines: lines.map(|(name, curve)| (name, curve.clone())).to_vec(),
        }
    }
}

impl Figure for PathOverTime {
    fn title(&self) -> &str {
        &self.title
    }

    fn height_px(&self) -> u32 {
        2 * PANEL_HEIGHT_PX
    }

    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Drawn
    where
        B::ErrorType: 'static,
    {
        let panels = [
            self.rate.panel("rate", "Mb/s"),
            self.rtt.panel("round-trip time", "ms"),
        ];
        let areas = area.split_evenly((panels.len(), 1));
        let mut pairs = areas.iter().zip(panels);
        pairs.try_for_each(|(area, panel)| panel.draw(area, "time (s)", 0.0..self.end_s(), &[]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seen::Pixels;
    use crate::{Format, LINES, picture};

    #[test]
    fn each_number_has_a_panel_with_both_lines() {
        let line = |value| vec![(0.0, value), (50.0, value)];
        let followed = Followed {
            tested: line(40.0),
            in_force: line(20.0),
        };
        let figure = PathOverTime {
            title: "a path".to_owned(),
            rate: followed.clone(),
            rtt: followed,
        };
        let pixels = Pixels::of(&figure);
        let half = pixels.height_px / 2;
        for rows in [0..half, half..pixels.height_px] {
            for colour in [LINES[5], LINES[1]] {
                assert!(pixels.count(rows.clone(), colour) > 500, "{rows:?}");
            }
        }
        let nothing = PathOverTime::default();
        assert!(picture(&nothing, Format::Svg).is_ok());
    }
}

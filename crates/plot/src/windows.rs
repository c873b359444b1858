// SPDX-License-Identifier: MIT OR Apache-2.0
//! Congestion windows over time: a panel for every path (with what varies), a line for every connection of
//! a run, a colour for every variant.
//!
//! Start with [`Windows::of`].

use plotters::coord::Shift;
use plotters::prelude::*;

use super::panels::{OfCase, Panel, Panels};
use super::{Axes, Curve, Drawn, Figure, draw_legend, round_ticks};

/// The congestion windows of a run.
#[derive(Clone, Debug, Default)]
pub struct WindowsOfRun {
    /// The case of the network, with what varies.
    pub panel: String,
    /// The case of the tuning.
    pub variant: String,
    /// Of each connection: seconds and segments.
    pub curves: Vec<Curve>,
}

impl OfCase for WindowsOfRun {
    fn panel(&self) -> &str {
        &self.panel
    }

    fn variant(&self) -> &str {
        &self.variant
    }
}

/// The windows of some runs.
#[derive(Debug)]
pub struct Windows<'r> {
    title: String,
    panels: Panels<'r, WindowsOfRun>,
    end_s: f64,
}

impl<'r> Windows<'r> {
    /// `None` if no run has a window. Only the first 24 cases of the network are drawn.
    pub fn of(scenario: &str, runs: &'r [WindowsOfRun]) -> Option<Windows<'r>> {
        let panels = Panels::of(&runs.iter().collect::<Vec<_>>());
        let drawn = panels.panels.iter().flat_map(|panel| &panel.runs);
        let points = drawn.flat_map(|run| &run.curves).flatten();
        let end_s = points.map(|(s, _)| *s).fold(0.0, f64::max);
        (end_s > 0.0).then(|| Windows {
            title: format!("{scenario}: congestion window over time"),
            panels,
            end_s,
        })
    }

    fn draw_panel<B: DrawingBackend>(
        &self,
        area: &DrawingArea<B, Shift>,
        panel: &Panel<WindowsOfRun>,
    ) -> Drawn
    where
        B::ErrorType: 'static,
    {
        let points = panel.runs.iter().flat_map(|run| &run.curves).flatten();
        let tops = points.map(|(_, cwnd)| *cwnd);
        let axes = Axes {
            caption: panel.caption,
            x_desc: "time (s)",
            y_desc: "cwnd (segments)",
            x: 0.0..self.end_s,
            x_ticks: round_ticks(&(0.0..self.end_s)),
            y: 0.0..tops.fold(1.0, f64::max) * 1.1,
        };
        let mut chart = axes.draw(area)?;
        for run in &panel.runs {
            let colour = self.panels.colour(&run.variant);
            for (place, line) in run.curves.iter().enumerate() {
                let style = colour.stroke_width(2);
                let series = chart.draw_series(LineSeries::new(line.iter().copied(), style))?;
                if place == 0 {
                    series.label(&run.variant).legend(move |(x, y)| {
                        PathElement::new([(x, y), (x + 24, y)], colour.stroke_width(3))
                    });
                }
            }
        }
        draw_legend(&mut chart, SeriesLabelPosition::UpperRight)
    }
}

impl Figure for Windows<'_> {
    fn title(&self) -> &str {
        &self.title
    }

    fn height_px(&self) -> u32 {
        self.panels.height_px()
    }

    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Drawn
    where
        B::ErrorType: 'static,
    {
        let panels = &self.panels.panels;
        let areas = area.split_evenly((panels.len(), 1));
        let mut pairs = areas.iter().zip(panels);
        pairs.try_for_each(|(area, panel)| self.draw_panel(area, panel))
    }
}

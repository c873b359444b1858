// SPDX-License-Identifier: MIT OR Apache-2.0
//! Congestion windows over time: a panel for every path (with what varies), a line for every connection of
//! the first repeat, a colour for every variant.
//!
//! It reads the simulator's series. Start with [`Windows::of`].

use std::fs;
use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;

use super::panels::{Panel, Panels};
use super::{Axes, Drawn, Figure, draw_legend, round_ticks};
use crate::results::Run;
use crate::simulate::series::{self, Curve};

/// Connections of a run that are drawn.
const MOST_LINES: usize = 8;

/// The windows of the runs that have series.
#[derive(Debug)]
pub struct Windows<'r> {
    title: String,
    panels: Panels<'r>,
    /// Of each run of each panel, of each connection: seconds and segments.
    lines: Vec<Vec<Vec<Curve>>>,
    end_s: f64,
}

impl<'r> Windows<'r> {
    /// `None` if no run has a series with a window.
    pub fn of(scenario: &str, runs: &'r [Run], folder: &Path) -> Option<Windows<'r>> {
        let is_drawn = |run: &&Run| run.row.repeat == 1 && run.series.is_some();
        let runs: Vec<&Run> = runs.iter().filter(is_drawn).collect();
        let panels = Panels::of(&runs);
        let lines: Vec<Vec<_>> = panels
            .panels
            .iter()
            .map(|panel| panel.runs.iter().map(|run| windows(run, folder)).collect())
            .collect();
        let ends = lines.iter().flatten().flatten().flatten().map(|(s, _)| *s);
        let end_s = ends.fold(0.0, f64::max);
        (end_s > 0.0).then(|| Windows {
            title: format!("{scenario}: congestion window over time"),
            panels,
            lines,
            end_s,
        })
    }

    fn draw_panel<B: DrawingBackend>(
        &self,
        area: &DrawingArea<B, Shift>,
        panel: &Panel,
        lines: &[Vec<Curve>],
    ) -> Drawn
    where
        B::ErrorType: 'static,
    {
        let tops = lines.iter().flatten().flatten().map(|(_, cwnd)| *cwnd);
        let axes = Axes {
            caption: &panel.caption,
            x_desc: "time (s)",
            y_desc: "cwnd (segments)",
            x: 0.0..self.end_s,
            x_ticks: round_ticks(&(0.0..self.end_s)),
            y_top: tops.fold(1.0, f64::max) * 1.1,
        };
        let mut chart = axes.draw(area)?;
        for (run, lines) in panel.runs.iter().zip(lines) {
            let colour = self.panels.colour(&run.row.variant);
            for (place, line) in lines.iter().enumerate() {
                let style = colour.stroke_width(2);
                let series = chart.draw_series(LineSeries::new(line.iter().copied(), style))?;
                if place == 0 {
                    series.label(&run.row.variant).legend(move |(x, y)| {
                        PathElement::new([(x, y), (x + 24, y)], colour.stroke_width(3))
                    });
                }
            }
        }
        draw_legend(&mut chart, SeriesLabelPosition::UpperRight)
    }
}

fn windows(run: &Run, folder: &Path) -> Vec<Curve> {
    let file = run.series.as_ref().map(|name| folder.join(name));
    // Who has removed a series wants no line of it.
    let bytes = file.and_then(|file| fs::read(file).ok());
    bytes.map_or(vec![], |bytes| series::windows(&bytes, MOST_LINES))
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
        for ((area, panel), lines) in areas.iter().zip(panels).zip(&self.lines) {
            self.draw_panel(area, panel, lines)?;
        }
        Ok(())
    }
}

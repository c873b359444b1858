// SPDX-License-Identifier: MIT OR Apache-2.0
//! Throughput over time: a panel for every path (with what varies), a line for every run.
//!
//! Start with [`Throughput::of`].

use std::collections::BTreeMap;

use plotters::coord::Shift;
use plotters::prelude::*;

use super::panels::{OfCase, Panel, Panels};
use super::{Axes, Drawn, Figure, LIMIT, axis_number, draw_legend, round_ticks};

/// The throughput of a run over time.
#[derive(Clone, Debug, Default)]
pub struct ThroughputOfRun {
    /// The case of the network, with what varies.
    pub panel: String,
    /// The case of the tuning.
    pub variant: String,
    /// Of the whole run.
    pub goodput_mbps: Option<f64>,
    /// The rate of the bottleneck, if it is one.
    pub bottleneck_mbps: Option<f64>,
    /// It is not to be trusted.
    pub is_doubtful: bool,
    /// Its intervals are what the receivers got, not what the senders gave to their kernels.
    pub is_received: bool,
    /// In the order of time.
    pub intervals: Vec<Interval>,
}

/// The throughput of a stretch of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Begin, seconds since the programs of the run began.
    pub start_s: f64,
    /// End, likewise.
    pub end_s: f64,
    /// Mean rate of application bytes.
    pub mbps: f64,
}

impl OfCase for ThroughputOfRun {
    fn panel(&self) -> &str {
        &self.panel
    }

    fn variant(&self) -> &str {
        &self.variant
    }
}

/// All runs that gave throughput over time.
#[derive(Debug)]
pub struct Throughput<'r> {
    title: String,
    panels: Panels<'r, ThroughputOfRun>,
    end_s: f64,
}

impl<'r> Throughput<'r> {
    /// `None` if no run gave intervals. Only the first 24 cases of the network are drawn.
    pub fn of(scenario: &str, runs: &'r [ThroughputOfRun]) -> Option<Throughput<'r>> {
        let drawn: Vec<&ThroughputOfRun> = runs
            .iter()
            .filter(|run| !intervals(run).is_empty())
            .collect();
        let panels = Panels::of(&drawn);
        let ends = drawn
            .iter()
            .flat_map(|run| intervals(run))
            .map(|one| one.end_s);
        (!panels.panels.is_empty()).then(|| Throughput {
            title: format!("{scenario}: throughput over time"),
            end_s: ends.fold(1.0, f64::max),
            panels,
        })
    }

    fn draw_panel<B: DrawingBackend>(
        &self,
        area: &DrawingArea<B, Shift>,
        panel: &Panel<ThroughputOfRun>,
    ) -> Drawn
    where
        B::ErrorType: 'static,
    {
        let limit_mbps = panel.runs.iter().find_map(|run| run.bottleneck_mbps);
        let axes = Axes {
            caption: panel.caption,
            x_desc: "time since the start of the test (s)",
            y_desc: y_label(&panel.runs),
            x: 0.0..self.end_s,
            x_ticks: round_ticks(&(0.0..self.end_s)),
            y: 0.0..top_mbps(&panel.runs, limit_mbps),
        };
        let mut chart = axes.draw(area)?;
        if let Some(mbps) = limit_mbps {
            let ends = [(0.0, mbps), (self.end_s, mbps)];
            chart
                .draw_series(DashedLineSeries::new(ends, 8, 5, LIMIT.stroke_width(2)))?
                .label(format!("bottleneck, {} Mb/s", axis_number(mbps)))
                .legend(|(x, y)| PathElement::new([(x, y), (x + 24, y)], LIMIT.stroke_width(2)));
        }
        let sums = sums(&panel.runs);
        let mut labelled = vec![];
        for run in &panel.runs {
            let variant = run.variant.as_str();
            let colour = self.panels.colour(variant);
            let style = colour.stroke_width(if run.is_doubtful { 1 } else { 3 });
            let series = chart.draw_series(LineSeries::new(points(run), style))?;
            if !labelled.contains(&variant) {
                labelled.push(variant);
                series
                    .label(format!("{variant}, {}", sums[variant]))
                    .legend(move |(x, y)| {
                        PathElement::new([(x, y), (x + 24, y)], colour.stroke_width(3))
                    });
            }
        }
        draw_legend(&mut chart, legend_place(&panel.runs, limit_mbps))
    }
}

impl Figure for Throughput<'_> {
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

/// The mean goodput of each variant's runs in words, and how many of them are not to be trusted.
fn sums<'r>(runs: &[&'r ThroughputOfRun]) -> BTreeMap<&'r str, String> {
    let mut of_variants: BTreeMap<&str, Vec<&ThroughputOfRun>> = BTreeMap::new();
    for run in runs {
        of_variants.entry(&run.variant).or_default().push(run);
    }
    let summary = |runs: Vec<&ThroughputOfRun>| {
        let sum: f64 = runs.iter().filter_map(|run| run.goodput_mbps).sum();
        let doubtful = runs.iter().filter(|run| run.is_doubtful).count();
        let mean = format!("mean {:.1} Mb/s", sum / runs.len() as f64);
        match doubtful {
            0 => mean,
            some => format!("{mean}; {some} of {} untrusted (thin)", runs.len()),
        }
    };
    let all = of_variants.into_iter();
    all.map(|(name, runs)| (name, summary(runs))).collect()
}

/// A point in the middle of each interval, whose mean it is; of one interval alone both its ends, for a
/// point is no line.
fn points(run: &ThroughputOfRun) -> impl Iterator<Item = (f64, f64)> + '_ {
    let intervals = intervals(run);
    let is_alone = intervals.len() == 1;
    intervals.iter().flat_map(move |one| {
        let middle_s = (one.start_s + one.end_s) / 2.0;
        let at_s = if is_alone {
            vec![one.start_s, one.end_s]
        } else {
            vec![middle_s]
        };
        at_s.into_iter().map(|at_s| (at_s, one.mbps))
    })
}

/// The intervals, without a last one that was cut short: its mean says little.
fn intervals(run: &ThroughputOfRun) -> &[Interval] {
    let all = &run.intervals[..];
    let length_s = |one: &Interval| one.end_s - one.start_s;
    match all {
        [first, .., last] if length_s(last) < length_s(first) / 2.0 => &all[..all.len() - 1],
        _ => all,
    }
}

/// Room above the bottleneck's line, or above the highest point where there is none.
fn top_mbps(runs: &[&ThroughputOfRun], limit_mbps: Option<f64>) -> f64 {
    let highest = runs
        .iter()
        .flat_map(|run| points(run))
        .map(|(_, mbps)| mbps)
        .fold(1.0, f64::max);
    highest.max(limit_mbps.unwrap_or(0.0)) * 1.1
}

/// The right side, below or above the lines: wherever they leave room at the end of the test.
fn legend_place(runs: &[&ThroughputOfRun], limit_mbps: Option<f64>) -> SeriesLabelPosition {
    let middle = top_mbps(runs, limit_mbps) / 2.0;
    let last = |run: &&ThroughputOfRun| {
        points(run)
            .last()
            .is_some_and(|(_, mbps)| mbps < middle * 0.8)
    };
    if runs.iter().any(last) {
        SeriesLabelPosition::MiddleRight
    } else {
        SeriesLabelPosition::LowerRight
    }
}

fn y_label(runs: &[&ThroughputOfRun]) -> &'static str {
    if runs.iter().all(|run| run.is_received) {
        "received (Mb/s)"
    } else {
        "sent (Mb/s)"
    }
}

#[cfg(test)]
mod tests {
    use super::super::panels::PANEL_HEIGHT_PX;
    use super::super::seen::Pixels;
    use super::super::{Format, LINES, TITLE_HEIGHT_PX, WIDTH_PX, picture};
    use super::*;

    fn run(panel: &str, variant: &str, mbps: f64) -> ThroughputOfRun {
        let interval = |n: u32| Interval {
            start_s: n.into(),
            end_s: f64::from(n) + 1.0,
            mbps,
        };
        ThroughputOfRun {
            panel: panel.into(),
            variant: variant.into(),
            goodput_mbps: Some(mbps),
            bottleneck_mbps: Some(1000.0),
            is_doubtful: false,
            is_received: true,
            intervals: (0..10).map(interval).collect(),
        }
    }

    #[test]
    fn every_path_has_a_panel_and_every_variant_its_colour() {
        let runs = [
            run("clean", "default", 300.0),
            run("clean", "tuned", 900.0),
            run("lossy", "tuned", 700.0),
        ];
        let pixels = Pixels::of(&Throughput::of("demo", &runs).unwrap());
        let height_px = TITLE_HEIGHT_PX + 2 * PANEL_HEIGHT_PX;
        assert_eq!((pixels.width_px, pixels.height_px), (WIDTH_PX, height_px));
        let middle = TITLE_HEIGHT_PX + PANEL_HEIGHT_PX;
        for (rows, colour, is_there) in [
            (0..middle, LINES[0], true),
            (0..middle, LINES[1], true),
            (middle..height_px, LINES[0], false),
            (middle..height_px, LINES[1], true),
        ] {
            let count = pixels.count(rows.clone(), colour);
            assert_eq!(count > 1000, is_there, "{count} of {colour:?} in {rows:?}");
        }
    }

    #[test]
    fn a_single_interval_is_a_line_and_a_run_that_is_not_to_be_trusted_a_thin_one() {
        let pixels = |trusted: bool, intervals| {
            let mut run = run("clean", "default", 300.0);
            run.is_doubtful = !trusted;
            run.intervals.truncate(intervals);
            let runs = [run];
            let pixels = Pixels::of(&Throughput::of("demo", &runs).unwrap());
            pixels.count(0..pixels.height_px, LINES[0])
        };
        assert!(pixels(true, 1) > 1000);
        assert!(pixels(false, 10) < pixels(true, 10) / 2);
    }

    #[test]
    fn the_svg_has_the_same_words_and_lines() {
        let runs = [run("clean", "default", 300.0), run("clean", "tuned", 900.0)];
        let figure = Throughput::of("demo", &runs).unwrap();
        let svg = String::from_utf8(picture(&figure, Format::Svg).unwrap()).unwrap();
        for part in [
            "<svg",
            "clean",
            "tuned, mean 900.0 Mb/s",
            "#D55E00",
            "#0072B2",
        ] {
            assert!(svg.contains(part), "{part}");
        }
    }

    #[test]
    fn a_last_interval_that_was_cut_short_is_left_out() {
        let mut run = run("clean", "default", 300.0);
        run.intervals.push(Interval {
            start_s: 10.0,
            end_s: 10.04,
            mbps: 9e3,
        });
        assert_eq!(intervals(&run).len(), 10);
    }

    #[test]
    fn without_throughput_over_time_there_is_no_plot() {
        let mut run = run("clean", "default", 300.0);
        run.intervals.clear();
        assert!(Throughput::of("demo", &[run]).is_none());
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Throughput over time: a panel for every path (with what varies), a line for every run.
//!
//! Start with [`Throughput::of`].

use std::collections::BTreeMap;

use plotters::coord::Shift;
use plotters::prelude::*;

use super::panels::{Panel, Panels};
use super::{Axes, Drawn, Figure, LIMIT, axis_number, draw_legend, round_ticks};
use crate::iperf3::{Interval, SeenBy};
use crate::results::Run;

/// All runs that gave throughput over time.
#[derive(Debug)]
pub struct Throughput<'r> {
    title: String,
    panels: Panels<'r>,
    end_s: f64,
}

impl<'r> Throughput<'r> {
    /// `None` if no run gave intervals. Only the first 24 cases of the network are drawn.
    pub fn of(scenario: &str, runs: &'r [Run]) -> Option<Throughput<'r>> {
        let drawn: Vec<&Run> = runs
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

    fn draw_panel<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>, panel: &Panel) -> Drawn
    where
        B::ErrorType: 'static,
    {
        let limit_mbps = panel.runs.iter().find_map(|run| run.row.bottleneck_mbps);
        let axes = Axes {
            caption: &panel.caption,
            x_desc: "time since the start of the test (s)",
            y_desc: y_label(&panel.runs),
            x: 0.0..self.end_s,
            x_ticks: round_ticks(&(0.0..self.end_s)),
            y_top: top_mbps(&panel.runs, limit_mbps),
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
            let variant = run.row.variant.as_str();
            let colour = self.panels.colour(variant);
            let style = colour.stroke_width(if is_doubtful(run) { 1 } else { 3 });
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
fn sums<'r>(runs: &[&'r Run]) -> BTreeMap<&'r str, String> {
    let mut of_variants: BTreeMap<&str, Vec<&Run>> = BTreeMap::new();
    for run in runs {
        of_variants.entry(&run.row.variant).or_default().push(run);
    }
    let told = |runs: Vec<&Run>| {
        let sum: f64 = runs.iter().filter_map(|run| run.row.goodput_mbps).sum();
        let doubtful = runs.iter().filter(|run| is_doubtful(run)).count();
        let mean = format!("mean {:.1} Mb/s", sum / runs.len() as f64);
        match doubtful {
            0 => mean,
            some => format!("{mean}; {some} of {} not to be trusted (thin)", runs.len()),
        }
    };
    let all = of_variants.into_iter();
    all.map(|(name, runs)| (name, told(runs))).collect()
}

fn is_doubtful(run: &Run) -> bool {
    run.row.trusted == Some(false)
}

/// A point in the middle of each interval, whose mean it is; of one interval alone both its ends, for a
/// point is no line.
fn points(run: &Run) -> impl Iterator<Item = (f64, f64)> + '_ {
    let intervals = intervals(run);
    let is_alone = intervals.len() == 1;
    intervals.iter().flat_map(move |one| {
        let middle_s = (one.start_s + one.end_s) / 2.0;
        let at_s = if is_alone {
            vec![one.start_s, one.end_s]
        } else {
            vec![middle_s]
        };
        at_s.into_iter().map(|at_s| (at_s, one.rate_bps / 1e6))
    })
}

/// The intervals, without a last one that was cut short: its mean says little.
fn intervals(run: &Run) -> &[Interval] {
    let all = run
        .measured
        .as_ref()
        .map_or(&[][..], |measured| &measured.intervals);
    let length_s = |one: &Interval| one.end_s - one.start_s;
    match all {
        [first, .., last] if length_s(last) < length_s(first) / 2.0 => &all[..all.len() - 1],
        _ => all,
    }
}

/// Room above the bottleneck's line, or above the highest point where there is none.
fn top_mbps(runs: &[&Run], limit_mbps: Option<f64>) -> f64 {
    let highest = runs
        .iter()
        .flat_map(|run| points(run))
        .map(|(_, mbps)| mbps)
        .fold(1.0, f64::max);
    highest.max(limit_mbps.unwrap_or(0.0)) * 1.1
}

/// The right side, below or above the lines: wherever they leave room at the end of the test.
fn legend_place(runs: &[&Run], limit_mbps: Option<f64>) -> SeriesLabelPosition {
    let middle = top_mbps(runs, limit_mbps) / 2.0;
    let last = |run: &&Run| {
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

fn y_label(runs: &[&Run]) -> &'static str {
    let received = |run: &&Run| {
        run.measured
            .as_ref()
            .is_some_and(|m| m.seen_by == SeenBy::Receiver)
    };
    if runs.iter().all(received) {
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
    use crate::results::examples::{failed, run};

    #[test]
    fn every_path_has_a_panel_and_every_variant_its_colour() {
        let runs = [
            run("clean", "default", 300e6),
            run("clean", "tuned", 900e6),
            run("lossy", "tuned", 700e6),
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
        let pixels = |trusted, intervals| {
            let mut run = run("clean", "default", 300e6);
            run.row.trusted = Some(trusted);
            run.measured.as_mut().unwrap().intervals.truncate(intervals);
            let runs = [run];
            let pixels = Pixels::of(&Throughput::of("demo", &runs).unwrap());
            pixels.count(0..pixels.height_px, LINES[0])
        };
        assert!(pixels(true, 1) > 1000);
        assert!(pixels(false, 10) < pixels(true, 10) / 2);
    }

    #[test]
    fn the_svg_has_the_same_words_and_lines() {
        let runs = [run("clean", "default", 300e6), run("clean", "tuned", 900e6)];
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
        let mut run = run("clean", "default", 300e6);
        let measured = run.measured.as_mut().unwrap();
        measured.intervals.push(Interval {
            start_s: 10.0,
            end_s: 10.04,
            rate_bps: 9e9,
        });
        assert_eq!(intervals(&run).len(), 10);
    }

    #[test]
    fn without_throughput_over_time_there_is_no_plot() {
        assert!(Throughput::of("demo", &[failed("clean", "default", "why")]).is_none());
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A sweep: goodput against one varied quantity, a line for every other combination, with
//! confidence intervals.
//!
//! The axis is logarithmic where the values are positive and span more than a factor of 20. Start
//! with [`sweeps`].

use std::collections::BTreeMap;

use fatpath_units as units;
use plotters::coord::Shift;
use plotters::prelude::*;

use super::{Axes, Drawn, Figure, LINES, Tick, draw_legend};

const HEIGHT_PX: u32 = 520;
/// Values that span more are drawn on a logarithmic axis.
const LINEAR_SPAN: f64 = 20.0;

/// The goodput of a case of an experiment, over its runs.
#[derive(Clone, Debug)]
pub struct CaseGoodput {
    /// The case of the network.
    pub path: String,
    /// The case of the tuning.
    pub variant: String,
    /// What varies.
    pub vary: BTreeMap<String, String>,
    /// `None` if all runs failed.
    pub goodput: Option<Mean>,
    /// None of its runs is not to be trusted.
    pub is_trusted: bool,
}

/// A mean, Mb/s.
#[derive(Clone, Copy, Debug)]
pub struct Mean {
    /// The mean.
    pub mbps: f64,
    /// Half the width of its 95 % confidence interval; `None` of one run.
    pub ci95_mbps: Option<f64>,
}

/// Goodput against one name of `vary`.
#[derive(Debug)]
pub struct Sweep {
    /// The name.
    pub name: String,
    title: String,
    ticks: Vec<Tick>,
    lines: Vec<Line>,
}

#[derive(Debug)]
struct Line {
    label: String,
    points: Vec<Point>,
}

#[derive(Debug)]
struct Point {
    x: f64,
    goodput: Mean,
    /// None of its runs is not to be trusted.
    is_trusted: bool,
}

/// A sweep for each name of `vary` that has at least two values, all of them numbers.
pub fn sweeps(scenario: &str, cases: &[CaseGoodput]) -> Vec<Sweep> {
    let mut names: Vec<&String> = cases.iter().flat_map(|case| case.vary.keys()).collect();
    names.sort();
    names.dedup();
    let sweep = |name: &String| Sweep::of(scenario, name, cases);
    names.into_iter().filter_map(sweep).collect()
}

impl Sweep {
    fn of(scenario: &str, name: &str, cases: &[CaseGoodput]) -> Option<Sweep> {
        let mut values: Vec<(f64, &String)> = vec![];
        for case in cases {
            let text = case.vary.get(name)?;
            values.push((number(text)?, text));
        }
        values.sort_by(|a, b| a.0.total_cmp(&b.0));
        values.dedup_by(|a, b| a.0 == b.0);
        let (least, most) = (values.first()?.0, values.last()?.0);
        let place = |value: f64| match least > 0.0 && most / least > LINEAR_SPAN {
            true => value.log10(),
            false => value,
        };
        let ticks = values.iter().map(|(value, text)| Tick {
            at: place(*value),
            label: (*text).clone(),
        });
        let lines = lines(name, cases, place);
        (values.len() > 1 && !lines.is_empty()).then(|| Sweep {
            name: name.to_owned(),
            title: format!("{scenario}: goodput against {name}"),
            ticks: ticks.collect(),
            lines,
        })
    }

    fn x_range(&self) -> std::ops::Range<f64> {
        let (first, last) = (&self.ticks[0], &self.ticks[self.ticks.len() - 1]);
        let margin = (last.at - first.at) / 25.0;
        first.at - margin..last.at + margin
    }

    fn caption(&self) -> String {
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let mean = match points().any(|point| point.goodput.ci95_mbps.is_some()) {
            true => "mean of the runs, with its 95 % confidence interval",
            false => "one run each",
        };
        let doubt = match points().all(|point| point.is_trusted) {
            true => "",
            false => "; hollow: with untrusted runs",
        };
        format!("{mean}{doubt}")
    }

    fn y_top(&self) -> f64 {
        let points = self.lines.iter().flat_map(|line| &line.points);
        let tops = points.map(|point| point.goodput.mbps + point.goodput.ci95_mbps.unwrap_or(0.0));
        tops.fold(1e-3, f64::max) * 1.1
    }
}

/// The numeric value of a number, or of one with a unit, in the unit's base.
fn number(text: &str) -> Option<f64> {
    let plain = || text.parse::<f64>().ok().filter(|number| number.is_finite());
    let exact = [units::time_ns, units::bytes, units::rate_bps];
    let exact = exact.iter().find_map(|read| read(text));
    plain()
        .or_else(|| units::share(text))
        .or_else(|| exact.map(|number| number as f64))
}

/// A line for each combination of all but `name`, points in rising order.
fn lines(name: &str, cases: &[CaseGoodput], place: impl Fn(f64) -> f64) -> Vec<Line> {
    let mut lines: Vec<Line> = vec![];
    for case in cases {
        let x = case.vary.get(name).and_then(|text| number(text));
        let (Some(x), Some(goodput)) = (x, case.goodput) else {
            continue;
        };
        let label = label(name, case);
        let point = Point {
            x: place(x),
            goodput,
            is_trusted: case.is_trusted,
        };
        match lines.iter_mut().find(|line| line.label == label) {
            Some(line) => line.points.push(point),
            None => lines.push(Line {
                label,
                points: vec![point],
            }),
        }
    }
    for line in &mut lines {
        line.points.sort_by(|a, b| a.x.total_cmp(&b.x));
    }
    lines
}

fn label(name: &str, case: &CaseGoodput) -> String {
    let others: BTreeMap<_, _> = case.vary.iter().filter(|(key, _)| *key != name).collect();
    let others = others
        .iter()
        .map(|(key, value)| format!(", {key} = {value}"));
    format!(
        "{}, {}{}",
        case.path,
        case.variant,
        others.collect::<String>()
    )
}

impl Figure for Sweep {
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
        let axes = Axes {
            caption: &self.caption(),
            x_desc: &self.name,
            y_desc: "goodput (Mb/s)",
            x: self.x_range(),
            x_ticks: self.ticks.clone(),
            y: 0.0..self.y_top(),
        };
        let mut chart = axes.draw(area)?;
        for (line, colour) in self.lines.iter().zip(LINES.iter().cycle()) {
            let style = colour.stroke_width(2);
            let middle = line
                .points
                .iter()
                .map(|point| (point.x, point.goodput.mbps));
            chart
                .draw_series(LineSeries::new(middle, style))?
                .label(&line.label)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 24, y)], style));
            let bars = line.points.iter().filter_map(|Point { x, goodput, .. }| {
                let (mean, ci95) = (goodput.mbps, goodput.ci95_mbps?);
                let (low, high) = ((mean - ci95).max(0.0), mean + ci95);
                Some(ErrorBar::new_vertical(*x, low, mean, high, style, 10))
            });
            chart.draw_series(bars)?;
            for point in &line.points {
                let at = (point.x, point.goodput.mbps);
                // Above line and bar, so that a hollow one is seen as such.
                let inside = if point.is_trusted { *colour } else { WHITE };
                chart.draw_series([
                    Circle::new(at, 5, colour.filled()),
                    Circle::new(at, 3, inside.filled()),
                ])?;
            }
        }
        draw_legend(&mut chart, SeriesLabelPosition::UpperRight)
    }
}

#[cfg(test)]
mod tests {
    use super::super::seen::Pixels;
    use super::super::{Format, picture};
    use super::*;

    fn cases(name: &str, values: &[&str]) -> Vec<CaseGoodput> {
        let mut cases = vec![];
        for (place, value) in values.iter().enumerate() {
            for variant in ["default", "tuned"] {
                cases.push(CaseGoodput {
                    path: "clean".into(),
                    variant: variant.into(),
                    vary: BTreeMap::from([(name.into(), (*value).into())]),
                    goodput: Some(Mean {
                        mbps: (place + 1) as f64,
                        ci95_mbps: None,
                    }),
                    is_trusted: true,
                });
            }
        }
        cases
    }

    #[test]
    fn every_value_is_a_tick_and_every_variant_a_line() {
        let all = sweeps("demo", &cases("loss", &["1%", "0%", "0.1%"]));
        assert_eq!(all.len(), 1);
        let labels: Vec<_> = all[0]
            .ticks
            .iter()
            .map(|tick| tick.label.as_str())
            .collect();
        assert_eq!(labels, ["0%", "0.1%", "1%"]);
        assert_eq!(all[0].lines.len(), 2);
        let pixels = Pixels::of(&all[0]);
        assert!(pixels.count(0..pixels.height_px, LINES[0]) > 10);
        assert!(pixels.count(0..pixels.height_px, LINES[1]) > 500);
        let svg = String::from_utf8(picture(&all[0], Format::Svg).unwrap()).unwrap();
        assert!(svg.contains("clean, tuned") && svg.contains("0.1%"));
    }

    #[test]
    fn intervals_are_promised_and_doubts_shown_where_there_are_any() {
        let mut cases = cases("loss", &["1%", "0%"]);
        let words = |cases: &[CaseGoodput]| {
            let sweep = &sweeps("demo", cases)[0];
            String::from_utf8(picture(sweep, Format::Svg).unwrap()).unwrap()
        };
        let plain = words(&cases);
        assert!(plain.contains("one run each") && !plain.contains("hollow"));
        cases[0].is_trusted = false;
        cases[1].goodput.as_mut().unwrap().ci95_mbps = Some(0.1);
        let legend = words(&cases);
        assert!(legend.contains("confidence interval; hollow"), "{legend}");
        let white = |svg: &str| {
            let circles = svg.lines().filter(|line| line.starts_with("<circle"));
            circles.filter(|line| line.contains("#FFFFFF")).count()
        };
        assert_eq!((white(&plain), white(&legend)), (0, 1));
    }

    #[test]
    fn wide_ranges_are_logarithmic() {
        let all = sweeps("demo", &cases("size", &["1MB", "10MB", "100MB"]));
        let at: Vec<_> = all[0].ticks.iter().map(|tick| tick.at.round()).collect();
        assert_eq!(at, [6.0, 7.0, 8.0]);
    }

    #[test]
    fn names_and_single_values_are_no_sweep() {
        assert!(sweeps("demo", &cases("law", &["reno", "cubic"])).is_empty());
        assert!(sweeps("demo", &cases("loss", &["1%"])).is_empty());
    }

    #[test]
    fn numbers_have_units_and_names_are_none() {
        for (text, value) in [
            ("1.5ms", 1.5e6),
            ("500mbit", 5e8),
            ("128KiB", 131072.0),
            ("1%", 0.01),
            ("3", 3.0),
        ] {
            assert_eq!(number(text), Some(value), "{text}");
        }
        assert_eq!(number("reno"), None);
        assert_eq!(number("nan"), None);
    }
}

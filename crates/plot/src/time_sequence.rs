// SPDX-License-Identifier: MIT OR Apache-2.0
//! The time-sequence graph of one direction of a captured connection, as tcptrace and xplot drew it, with a legend for
//! who never saw one: each segment is a bar over the sequence numbers that it carries.

use std::ops::Range;

use fatpath_capture::{Mark, Point, Retransmission, Span, Way};
use plotters::coord::Shift;
use plotters::prelude::*;

use super::thin::{Bar, by_pixel, thinned};
use super::{Axes, Chart, Curve, Drawn, Figure, INK, LINES, draw_legend, round_ticks};

const HEIGHT_PX: u32 = 760;
/// With fewer bars each has a foot and a head, as in xplot.
const MOST_WITH_ENDS: usize = 400;
const READING: &str = "each bar is a segment, over the bytes that it carries; what lies between the ACK line and the \
                       newest segment is outstanding";

/// Data of one end, and the ACKs of it.
#[derive(Clone, Debug)]
pub struct TimeSequence<'w> {
    title: String,
    way: &'w Way,
    origin_ns: i64,
    x: Range<f64>,
    /// Bytes.
    y: Range<f64>,
}

impl<'w> TimeSequence<'w> {
    /// `origin_ns` is the first segment's time. None without data.
    pub fn of(title: String, way: &'w Way, origin_ns: i64) -> Option<TimeSequence<'w>> {
        let all = || way.segments.iter().flatten();
        let times = all().map(|s| s.time_ns);
        let times = times.chain(way.acked.iter().map(|p| p.time_ns));
        let seconds = times.map(|ns| seconds(ns, origin_ns));
        let (first, last) = seconds.fold((f64::MAX, f64::MIN), |(a, b), s| (a.min(s), b.max(s)));
        let lowest = all()
            .map(|s| s.start)
            .chain(way.acked.iter().map(|p| p.value));
        let (low, high) = (lowest.min()? as f64, all().map(|s| s.end).max()? as f64);
        let margin = ((high - low) * 0.08).max(1.0);
        way.has_data().then(|| TimeSequence {
            title,
            way,
            origin_ns,
            x: first..last.max(first + 1e-6),
            y: (low - margin).max(0.0)..high + margin,
        })
    }

    /// Bytes in a unit of the vertical axis, and its name.
    fn unit(&self) -> (f64, &'static str) {
        let units = [(1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
        let fits = units.into_iter().find(|(size, _)| self.y.end >= 2.0 * size);
        fits.unwrap_or((1.0, "bytes"))
    }

    fn y_in(&self, unit: f64) -> Range<f64> {
        self.y.start / unit..self.y.end / unit
    }

    fn bars(&self, spans: &[Span]) -> Vec<Bar> {
        let (unit, _) = self.unit();
        let bars = spans.iter().map(|span| Bar {
            at: seconds(span.time_ns, self.origin_ns),
            low: span.start as f64 / unit,
            high: span.end as f64 / unit,
        });
        by_pixel(bars, &self.x, &self.y_in(unit))
    }

    /// As steps; what lies above the picture is not drawn.
    fn steps(&self, points: &[Point]) -> Curve {
        let (unit, _) = self.unit();
        let mut steps = Curve::new();
        for point in points {
            let at = seconds(point.time_ns, self.origin_ns);
            let value = point.value as f64 / unit;
            steps.extend(steps.last().map(|(_, before)| (at, *before)));
            steps.push((at, value));
        }
        steps.extend(steps.last().map(|(_, value)| (self.x.end, *value)));
        let y = self.y_in(unit);
        let steps = thinned(steps).into_iter();
        let within = |(at, value): (f64, f64)| (at.max(self.x.start), value.clamp(y.start, y.end));
        steps.map(within).collect()
    }

    fn draw_line<B: DrawingBackend>(
        &self,
        chart: &mut Chart<'_, B>,
        name: &str,
        points: &[Point],
        colour: RGBColor,
    ) -> Drawn
    where
        B::ErrorType: 'static,
    {
        if points.is_empty() {
            return Ok(());
        }
        let line = LineSeries::new(self.steps(points), colour.stroke_width(2));
        chart
            .draw_series(line)?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 24, y)], colour.stroke_width(2)));
        Ok(())
    }

    fn draw_spans<B: DrawingBackend>(
        &self,
        chart: &mut Chart<'_, B>,
        name: &str,
        spans: &[Span],
        colour: RGBColor,
        is_marked: bool,
    ) -> Drawn
    where
        B::ErrorType: 'static,
    {
        if spans.is_empty() {
            return Ok(());
        }
        let bars = self.bars(spans);
        let foot = (self.x.end - self.x.start) / 600.0;
        let has_ends = bars.len() <= MOST_WITH_ENDS;
        let strokes = bars.iter().flat_map(|bar| {
            let (at, ends) = (bar.at, [bar.low, bar.high]);
            let feet = ends.map(|y| vec![(at - foot, y), (at + foot, y)]);
            let feet = feet.into_iter().filter(move |_| has_ends);
            [vec![(at, bar.low), (at, bar.high)]]
                .into_iter()
                .chain(feet)
        });
        let width = if is_marked { 3 } else { 1 };
        chart
            .draw_series(
                strokes.map(|points| PathElement::new(points, colour.stroke_width(width))),
            )?
            .label(format!("{name} ({})", spans.len()))
            .legend(move |(x, y)| {
                PathElement::new([(x + 12, y - 7), (x + 12, y + 7)], colour.stroke_width(3))
            });
        if is_marked {
            // Colour is not all that tells them apart.
            let heads = bars.iter().map(|bar| (bar.at, bar.high));
            chart.draw_series(heads.map(|at| Cross::new(at, 5, colour.stroke_width(2))))?;
        }
        Ok(())
    }

    fn draw_points<B: DrawingBackend>(
        &self,
        chart: &mut Chart<'_, B>,
        name: &str,
        points: &[Point],
        colour: RGBColor,
    ) -> Drawn
    where
        B::ErrorType: 'static,
    {
        if points.is_empty() {
            return Ok(());
        }
        let spans: Vec<Span> = points.iter().map(as_span).collect();
        let bars = self.bars(&spans);
        chart
            .draw_series(
                bars.iter()
                    .map(|bar| Circle::new((bar.at, bar.low), 2, colour.filled())),
            )?
            .label(format!("{name} ({})", points.len()))
            .legend(move |(x, y)| Circle::new((x + 12, y), 3, colour.filled()));
        Ok(())
    }
}

fn as_span(point: &Point) -> Span {
    Span {
        time_ns: point.time_ns,
        start: point.value,
        end: point.value,
    }
}

pub(super) fn seconds(time_ns: i64, origin_ns: i64) -> f64 {
    time_ns.saturating_sub(origin_ns) as f64 / 1e9
}

/// Of the segments of a kind.
pub(super) fn colour(mark: Mark) -> RGBColor {
    match mark {
        Mark::New => LINES[1],
        Mark::OutOfOrder => LINES[4],
        Mark::Copy | Mark::Probe => RGBColor(0x77, 0x77, 0x77),
        Mark::Again(Retransmission::Fast | Retransmission::AfterTimeout) => LINES[0],
        Mark::Again(Retransmission::Timeout) => INK,
        Mark::Again(Retransmission::TailLossProbe) => LINES[5],
        Mark::Again(Retransmission::Unclear) => RGBColor(0x8b, 0x45, 0x13),
    }
}

pub(super) const ACK_COLOUR: RGBColor = LINES[2];
pub(super) const EDGE_COLOUR: RGBColor = LINES[4];
pub(super) const SACK_COLOUR: RGBColor = LINES[3];

impl Figure for TimeSequence<'_> {
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
        let (unit, name) = self.unit();
        let axes = Axes {
            caption: READING,
            x_desc: "time since the first segment (s)",
            y_desc: &format!("sequence number, from the first ({name})"),
            x: self.x.clone(),
            x_ticks: round_ticks(&self.x),
            y: self.y_in(unit),
        };
        let mut chart = axes.draw(area)?;
        let way = self.way;
        self.draw_line(
            &mut chart,
            "edge of the receiver's window",
            &way.edge,
            EDGE_COLOUR,
        )?;
        self.draw_line(
            &mut chart,
            "acknowledged up to here",
            &way.acked,
            ACK_COLOUR,
        )?;
        self.draw_spans(&mut chart, "SACKed", &way.sacked, SACK_COLOUR, false)?;
        for mark in Mark::ALL {
            let is_marked = matches!(mark, Mark::Again(_));
            self.draw_spans(
                &mut chart,
                mark.name(),
                way.of(mark),
                colour(mark),
                is_marked,
            )?;
        }
        self.draw_points(&mut chart, "duplicate ACK", &way.duplicate_acks, ACK_COLOUR)?;
        self.draw_points(&mut chart, "window closed", &way.zero_windows, INK)?;
        draw_legend(&mut chart, SeriesLabelPosition::UpperLeft)
    }
}

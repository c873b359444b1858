// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the panels of a connection show: series by name, colour and way to draw.

use super::super::captured::moving_ns;
use super::super::time_sequence::{ACK_COLOUR, EDGE_COLOUR, SACK_COLOUR, colour};
use super::super::{INK, LINES};
use fatpath_capture::{Mark, Point, Way, goodput};
use plotters::style::RGBColor;
use serde::Serialize;

/// How a series is drawn.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Draw {
    /// A bar from least to greatest.
    Bar,
    /// The same, with a head: what must not be overlooked.
    MarkedBar,
    /// A line that keeps its value until the next.
    Step,
    /// A line from point to point.
    Line,
    Dot,
}

/// Points with a least and a greatest value each, in the order of time.
pub(super) struct Series {
    pub name: &'static str,
    pub colour: RGBColor,
    pub draw: Draw,
    pub times: Vec<i64>,
    pub ranges: Vec<(i64, i64)>,
}

/// Series over the same axis.
pub(super) struct Panel {
    pub title: &'static str,
    /// What one of the numbers is.
    pub unit: &'static str,
    pub series: Vec<Series>,
}

pub(super) fn panels(way: &Way, origin_ns: i64) -> Vec<Panel> {
    let [moving, total] = goodput(&way.acked, moving_ns(way));
    let line =
        |name, colour, draw, points: &[Point]| of_points(name, colour, draw, points, origin_ns);
    let panel = |title, unit, series: Vec<Series>| Panel {
        title,
        unit,
        series: series
            .into_iter()
            .filter(|one| !one.times.is_empty())
            .collect(),
    };
    vec![
        panel("time and sequence number", "B", sequence(way, origin_ns)),
        panel(
            "outstanding data and the receiver's window",
            "B",
            vec![
                line("window", EDGE_COLOUR, Draw::Step, &way.window),
                line("outstanding", LINES[1], Draw::Step, &way.outstanding),
                line(
                    "congestion window, estimated",
                    LINES[5],
                    Draw::Step,
                    &way.cwnd,
                ),
                line(
                    "congestion window, the kernel's",
                    LINES[2],
                    Draw::Step,
                    &way.kernel.cwnd,
                ),
                line(
                    "in flight, the kernel's",
                    LINES[3],
                    Draw::Dot,
                    &way.kernel.in_flight,
                ),
            ],
        ),
        panel(
            "round-trip time, capture to receiver and back",
            "ns",
            vec![
                line("measured", LINES[1], Draw::Dot, &way.rtt),
                line(
                    "smoothed, the kernel's",
                    LINES[2],
                    Draw::Step,
                    &way.kernel.srtt,
                ),
            ],
        ),
        panel(
            "goodput",
            "b/s",
            vec![
                line(
                    "moving, over a hundredth of the time",
                    LINES[5],
                    Draw::Line,
                    &moving,
                ),
                line("since the first ACK", LINES[1], Draw::Line, &total),
            ],
        ),
    ]
}

fn sequence(way: &Way, origin_ns: i64) -> Vec<Series> {
    let line =
        |name, colour, draw, points: &[Point]| of_points(name, colour, draw, points, origin_ns);
    let spans = |name, colour, draw, spans: &[fatpath_capture::Span]| {
        let of = spans.iter();
        let points = of.map(|span| (span.time_ns, (span.start, span.end)));
        series(name, colour, draw, points, origin_ns)
    };
    let mut all = vec![
        line(
            "edge of the receiver's window",
            EDGE_COLOUR,
            Draw::Step,
            &way.edge,
        ),
        line(
            "acknowledged up to here",
            ACK_COLOUR,
            Draw::Step,
            &way.acked,
        ),
        spans("SACKed", SACK_COLOUR, Draw::Bar, &way.sacked),
    ];
    all.extend(Mark::ALL.map(|mark| {
        let draw = match mark {
            Mark::Again(_) => Draw::MarkedBar,
            _ => Draw::Bar,
        };
        spans(mark.name(), colour(mark), draw, way.of(mark))
    }));
    all.push(line(
        "duplicate ACK",
        ACK_COLOUR,
        Draw::Dot,
        &way.duplicate_acks,
    ));
    all.push(line("window closed", INK, Draw::Dot, &way.zero_windows));
    all
}

fn of_points(
    name: &'static str,
    colour: RGBColor,
    draw: Draw,
    points: &[Point],
    origin_ns: i64,
) -> Series {
    let points = points
        .iter()
        .map(|point| (point.time_ns, (point.value, point.value)));
    series(name, colour, draw, points, origin_ns)
}

/// The page looks points up by their time, and a capture's clock may run back.
fn series(
    name: &'static str,
    colour: RGBColor,
    draw: Draw,
    points: impl Iterator<Item = (i64, (i64, i64))>,
    origin_ns: i64,
) -> Series {
    let mut points: Vec<(i64, (i64, i64))> = points
        .map(|(time_ns, range)| (time_ns.saturating_sub(origin_ns), range))
        .collect();
    if !points.is_sorted_by_key(|(time_ns, _)| *time_ns) {
        points.sort_by_key(|(time_ns, _)| *time_ns);
    }
    let (times, ranges) = points.into_iter().unzip();
    Series {
        name,
        colour,
        draw,
        times,
        ranges,
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Throughput over time as a PNG: a panel for every path, a line for every variant.
//!
//! Draws into memory with a font that is part of the program, so it needs no fonts on the machine.
//! It reads no files and computes nothing but axes. Start with [`throughput_png`].

use std::io;
use std::sync::Once;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::register_font;
use thiserror::Error;

use crate::iperf3::{Interval, SeenBy};
use crate::results::Run;

const WIDTH_PX: u32 = 1280;
const PANEL_HEIGHT_PX: u32 = 380;
const TITLE_HEIGHT_PX: u32 = 56;
const FONT: &str = "sans-serif";
const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
const FAINT: RGBColor = RGBColor(0xe4, 0xe4, 0xe4);
const LIMIT: RGBColor = RGBColor(0x77, 0x77, 0x77);
/// Okabe and Ito's colours, which people with any colour vision can tell apart; the first variant
/// is the one compared with.
const LINES: [RGBColor; 6] = [
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0x56, 0xb4, 0xe9),
];

/// Why a plot was not made.
#[derive(Debug, Error)]
pub enum PlotError {
    /// No run gave intervals.
    #[error("no run gave throughput over time, so there is nothing to plot")]
    Nothing,
    /// The drawing library refused.
    #[error("drawing: {0}")]
    Draw(String),
    /// The picture could not be encoded.
    #[error("encoding the PNG")]
    Encode(#[from] io::Error),
}

type Area<'a> = DrawingArea<BitMapBackend<'a>, Shift>;

/// The picture of all runs, in order, as the bytes of a PNG file.
///
/// # Errors
/// See [`PlotError`].
pub fn throughput_png(title: &str, runs: &[Run]) -> Result<Vec<u8>, PlotError> {
    let drawn: Vec<&Run> = runs
        .iter()
        .filter(|run| !intervals(run).is_empty())
        .collect();
    let paths = paths(&drawn);
    if paths.is_empty() {
        return Err(PlotError::Nothing);
    }
    let height_px = TITLE_HEIGHT_PX + PANEL_HEIGHT_PX * paths.len() as u32;
    let mut pixels = vec![0; (WIDTH_PX * height_px * 3) as usize];
    draw(&mut pixels, height_px, title, &drawn, &paths)
        .map_err(|error| PlotError::Draw(error.to_string()))?;
    Ok(encode(&pixels, height_px)?)
}

fn draw(
    pixels: &mut [u8],
    height_px: u32,
    title: &str,
    runs: &[&Run],
    paths: &[&str],
) -> Result<(), Box<dyn std::error::Error>> {
    use_own_font();
    let whole = BitMapBackend::with_buffer(pixels, (WIDTH_PX, height_px)).into_drawing_area();
    whole.fill(&WHITE)?;
    let whole = whole.margin(12, 4, 0, 0);
    let whole = whole.titled(title, (FONT, 26).into_font().color(&INK))?;
    let variants = variants(runs);
    let end_s = runs
        .iter()
        .flat_map(|run| intervals(run))
        .map(|one| one.end_s)
        .fold(1.0, f64::max);
    for (panel, path) in whole.split_evenly((paths.len(), 1)).iter().zip(paths) {
        let of_path: Vec<&Run> = runs
            .iter()
            .filter(|run| run.row.path == *path)
            .copied()
            .collect();
        draw_panel(panel, path, &of_path, &variants, end_s)?;
    }
    Ok(whole.present()?)
}

fn draw_panel(
    panel: &Area,
    path: &str,
    runs: &[&Run],
    variants: &[&str],
    end_s: f64,
) -> Result<(), Box<dyn std::error::Error>> {
    let limit_mbps = runs.iter().find_map(|run| run.row.bottleneck_mbps);
    let mut chart = ChartBuilder::on(panel)
        .caption(path, (FONT, 20).into_font().color(&INK))
        .margin_top(6)
        .margin_left(16)
        .margin_right(32)
        .margin_bottom(8)
        .x_label_area_size(46)
        .y_label_area_size(72)
        .build_cartesian_2d(0.0..end_s, 0.0..top_mbps(runs, limit_mbps))?;
    chart
        .configure_mesh()
        .x_desc("time since the start of the test (s)")
        .y_desc(y_label(runs))
        .x_labels(11)
        .y_labels(6)
        .x_label_formatter(&|s| axis_number(*s))
        .y_label_formatter(&|mbps| axis_number(*mbps))
        .light_line_style(TRANSPARENT)
        .bold_line_style(FAINT)
        .axis_style(INK)
        .label_style((FONT, 15).into_font().color(&INK))
        .axis_desc_style((FONT, 16).into_font().color(&INK))
        .draw()?;
    if let Some(mbps) = limit_mbps {
        let ends = [(0.0, mbps), (end_s, mbps)];
        chart
            .draw_series(DashedLineSeries::new(ends, 8, 5, LIMIT.stroke_width(2)))?
            .label(format!("bottleneck, {} Mb/s", axis_number(mbps)))
            .legend(|(x, y)| PathElement::new([(x, y), (x + 24, y)], LIMIT.stroke_width(2)));
    }
    for run in runs {
        let place = variants
            .iter()
            .position(|variant| *variant == run.row.variant)
            .unwrap_or(0);
        let style = LINES[place % LINES.len()].stroke_width(3);
        let mean_mbps = run.row.goodput_mbps.unwrap_or(0.0);
        chart
            .draw_series(LineSeries::new(points(run), style))?
            .label(format!("{}, mean {mean_mbps:.1} Mb/s", run.row.variant))
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 24, y)], style));
    }
    chart
        .configure_series_labels()
        .position(legend_place(runs, limit_mbps))
        .background_style(WHITE.mix(0.85))
        .border_style(FAINT)
        .label_font((FONT, 15).into_font().color(&INK))
        .legend_area_size(34)
        .margin(10)
        .draw()?;
    Ok(())
}

/// A point in the middle of each interval, whose mean it is.
fn points(run: &Run) -> impl Iterator<Item = (f64, f64)> + '_ {
    intervals(run)
        .iter()
        .map(|one| ((one.start_s + one.end_s) / 2.0, one.rate_bps / 1e6))
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

fn axis_number(value: f64) -> String {
    if value.fract().abs() < 1e-9 {
        format!("{value:.0}")
    } else {
        format!("{value:.1}")
    }
}

fn paths<'r>(runs: &[&'r Run]) -> Vec<&'r str> {
    in_order(runs.iter().map(|run| run.row.path.as_str()))
}

fn variants<'r>(runs: &[&'r Run]) -> Vec<&'r str> {
    in_order(runs.iter().map(|run| run.row.variant.as_str()))
}

fn in_order<'r>(names: impl Iterator<Item = &'r str>) -> Vec<&'r str> {
    let mut seen = vec![];
    for name in names {
        if !seen.contains(&name) {
            seen.push(name);
        }
    }
    seen
}

fn use_own_font() {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        let registered = register_font(FONT, FontStyle::Normal, dejavu::sans::regular());
        assert!(
            registered.is_ok(),
            "the font is a constant of the program and well formed"
        );
    });
}

fn encode(pixels: &[u8], height_px: u32) -> io::Result<Vec<u8>> {
    let mut bytes = vec![];
    let mut encoder = png::Encoder::new(&mut bytes, WIDTH_PX, height_px);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(pixels)?;
    writer.finish()?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iperf3::Measured;

    fn run(path: &str, variant: &str, mbps: f64) -> Run {
        let interval = |n: u32| Interval {
            start_s: n.into(),
            end_s: f64::from(n) + 1.0,
            rate_bps: mbps * 1e6,
        };
        let measured = Measured {
            goodput_bps: mbps * 1e6,
            retransmits: Some(0),
            reverse: false,
            seen_by: SeenBy::Receiver,
            intervals: (0..10).map(interval).collect(),
        };
        Run::finished(path, variant, Some(1_000_000_000), measured)
    }

    fn decode(png: &[u8]) -> (u32, u32, Vec<u8>) {
        let mut reader = png::Decoder::new(io::Cursor::new(png)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        (info.width, info.height, pixels)
    }

    #[test]
    fn every_path_has_a_panel_and_every_variant_its_colour() {
        let runs = [
            run("clean", "default", 300.0),
            run("clean", "tuned", 900.0),
            run("lossy", "tuned", 700.0),
        ];
        let (width, height, pixels) = decode(&throughput_png("demo", &runs).unwrap());
        assert_eq!(
            (width, height),
            (WIDTH_PX, TITLE_HEIGHT_PX + 2 * PANEL_HEIGHT_PX)
        );
        let count = |rows: std::ops::Range<u32>, colour: RGBColor| {
            let bytes = &pixels[(rows.start * width * 3) as usize..(rows.end * width * 3) as usize];
            bytes
                .chunks(3)
                .filter(|pixel| *pixel == [colour.0, colour.1, colour.2])
                .count()
        };
        let middle = TITLE_HEIGHT_PX + PANEL_HEIGHT_PX;
        assert!(
            count(0..middle, LINES[0]) > 1000,
            "default in the first panel"
        );
        assert!(
            count(0..middle, LINES[1]) > 1000,
            "tuned in the first panel"
        );
        assert_eq!(
            count(middle..height, LINES[0]),
            0,
            "no default in the second panel"
        );
        assert!(
            count(middle..height, LINES[1]) > 1000,
            "tuned in the second panel"
        );
    }

    #[test]
    fn a_last_interval_that_was_cut_short_is_left_out() {
        let mut run = run("clean", "default", 300.0);
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
        let failed = Run::failed("clean", "default", None, "why".into());
        assert!(matches!(
            throughput_png("demo", &[failed]),
            Err(PlotError::Nothing)
        ));
    }
}

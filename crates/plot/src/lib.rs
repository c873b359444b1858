// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures as PNG and SVG, by one drawing code.
//!
//! A PNG is drawn into memory with a font that is part of the program; an SVG's letters are left to
//! its viewer, and only measured with that font. So no fonts are needed on the machine. It reads no
//! files and computes nothing but axes. Start with [`picture`]; each [`Figure`] has a file.

mod captured;
mod dots;
mod flow;
mod interactive;
mod line_panel;
mod observed;
mod panels;
mod path;
mod rates;
mod sweep;
mod thin;
mod throughput;
mod time_sequence;
mod windows;
mod xplot;

use std::error::Error as StdError;
use std::io;
use std::ops::Range;
use std::sync::Once;

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint};
use plotters::coord::types::RangedCoordf64;
use plotters::coord::{CoordTranslate, Shift};
use plotters::prelude::*;
use plotters::style::register_font;
use thiserror::Error;

pub use captured::CapturedOverTime;
pub use dots::Dots;
pub use flow::FlowOverTime;
pub use interactive::interactive;
pub use observed::{Observed, ObservedDirection};
pub use path::{Followed, PathOverTime};
pub use rates::RatesOverLoss;
pub use sweep::{CaseGoodput, Mean, Sweep, sweeps};
pub use throughput::{Interval, Throughput, ThroughputOfRun};
pub use time_sequence::TimeSequence;
pub use windows::{Windows, WindowsOfRun};
pub use xplot::xplot;

/// Points of a line: seconds and what is measured.
pub type Curve = Vec<(f64, f64)>;

const WIDTH_PX: u32 = 1280;
const TITLE_HEIGHT_PX: u32 = 56;
const FONT: &str = "sans-serif";
const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
const FAINT: RGBColor = RGBColor(0xe4, 0xe4, 0xe4);
const LIMIT: RGBColor = RGBColor(0x77, 0x77, 0x77);
/// Okabe and Ito's colours, which people with any colour vision can tell apart; the first one is
/// for what is compared with.
const LINES: [RGBColor; 6] = [
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0x56, 0xb4, 0xe9),
];

/// What a picture is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Pixels.
    Png,
    /// Lines and text.
    Svg,
}

impl Format {
    /// Both.
    pub const ALL: [Format; 2] = [Format::Png, Format::Svg];

    /// How a file's name ends.
    pub fn ending(self) -> &'static str {
        match self {
            Format::Png => "png",
            Format::Svg => "svg",
        }
    }

    /// By how a file's name ends.
    pub fn of(file: &std::path::Path) -> Option<Format> {
        let ending = file.extension()?.to_str()?.to_ascii_lowercase();
        Format::ALL
            .into_iter()
            .find(|format| format.ending() == ending)
    }
}

/// Why a plot was not made.
#[derive(Debug, Error)]
pub enum PlotError {
    /// The drawing library refused.
    #[error("drawing: {0}")]
    Draw(String),
    /// The picture could not be encoded.
    #[error("encoding the PNG")]
    Encode(#[from] io::Error),
}

type Drawn = Result<(), Box<dyn StdError>>;
type Chart<'a, B> = ChartContext<'a, B, Cartesian2d<Ticked, RangedCoordf64>>;

/// Something to draw, below a title.
pub trait Figure {
    /// What stands above it.
    fn title(&self) -> &str;

    /// Below the title.
    fn height_px(&self) -> u32;

    /// Draws it.
    ///
    /// # Errors
    /// What the backend says.
    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Drawn
    where
        B::ErrorType: 'static;
}

/// The bytes of a figure's file.
///
/// # Errors
/// See [`PlotError`].
pub fn picture(figure: &impl Figure, format: Format) -> Result<Vec<u8>, PlotError> {
    use_own_font();
    let size_px = (WIDTH_PX, TITLE_HEIGHT_PX + figure.height_px());
    let failed = |error: Box<dyn StdError>| PlotError::Draw(error.to_string());
    match format {
        Format::Png => {
            let mut pixels = vec![0; (size_px.0 * size_px.1 * 3) as usize];
            let backend = BitMapBackend::with_buffer(&mut pixels, size_px);
            draw(figure, backend.into_drawing_area()).map_err(failed)?;
            Ok(encode(&pixels, size_px)?)
        }
        Format::Svg => {
            let mut text = String::new();
            let backend = SVGBackend::with_string(&mut text, size_px);
            draw(figure, backend.into_drawing_area()).map_err(failed)?;
            Ok(text.into_bytes())
        }
    }
}

fn draw<B: DrawingBackend>(figure: &impl Figure, whole: DrawingArea<B, Shift>) -> Drawn
where
    B::ErrorType: 'static,
{
    whole.fill(&WHITE)?;
    let below = whole.margin(12, 4, 0, 0);
    let below = below.titled(figure.title(), (FONT, 26).into_font().color(&INK))?;
    figure.draw(&below)?;
    Ok(whole.present()?)
}

/// A chart's words and ranges.
struct Axes<'t> {
    caption: &'t str,
    x_desc: &'t str,
    y_desc: &'t str,
    x: Range<f64>,
    x_ticks: Vec<Tick>,
    y: Range<f64>,
}

/// A place on the horizontal axis, and what is written there.
#[derive(Clone, Debug, PartialEq)]
struct Tick {
    at: f64,
    label: String,
}

/// A horizontal axis that has its ticks where it is told to.
struct Ticked {
    range: RangedCoordf64,
    ticks: Vec<f64>,
}

impl Ranged for Ticked {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        self.range.map(value, limit)
    }

    fn key_points<Hint: KeyPointHint>(&self, _hint: Hint) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.range.range()
    }
}

impl Axes<'_> {
    fn draw<'a, B: DrawingBackend + 'a>(
        &self,
        panel: &DrawingArea<B, Shift>,
    ) -> Result<Chart<'a, B>, Box<dyn StdError>>
    where
        B::ErrorType: 'static,
    {
        let x = Ticked {
            range: self.x.clone().into(),
            ticks: self.x_ticks.iter().map(|tick| tick.at).collect(),
        };
        let label = |x: &f64| {
            let tick = self.x_ticks.iter().find(|tick| tick.at == *x);
            tick.map_or(String::new(), |tick| tick.label.clone())
        };
        let mut chart = ChartBuilder::on(panel)
            .caption(self.caption, (FONT, 20).into_font().color(&INK))
            .margin_top(6)
            .margin_left(16)
            .margin_right(32)
            .margin_bottom(8)
            .x_label_area_size(46)
            .y_label_area_size(72)
            .build_cartesian_2d(x, self.y.clone())?;
        chart
            .configure_mesh()
            .x_desc(self.x_desc)
            .y_desc(self.y_desc)
            .x_labels(self.x_ticks.len())
            .y_labels(6)
            .x_label_formatter(&label)
            .y_label_formatter(&|y| axis_number(*y))
            .light_line_style(TRANSPARENT)
            .bold_line_style(FAINT)
            .axis_style(INK)
            .label_style((FONT, 15).into_font().color(&INK))
            .axis_desc_style((FONT, 16).into_font().color(&INK))
            .draw()?;
        Ok(chart)
    }
}

fn draw_legend<'a, B: DrawingBackend + 'a, C: CoordTranslate>(
    chart: &mut ChartContext<'a, B, C>,
    place: SeriesLabelPosition,
) -> Drawn
where
    B::ErrorType: 'static,
{
    chart
        .configure_series_labels()
        .position(place)
        .background_style(WHITE.mix(0.85))
        .border_style(FAINT)
        .label_font((FONT, 15).into_font().color(&INK))
        .legend_area_size(34)
        .margin(10)
        .draw()?;
    Ok(())
}

/// About ten round places of a range.
fn round_ticks(range: &Range<f64>) -> Vec<Tick> {
    let rough = ((range.end - range.start) / 10.0).max(1e-9);
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|times| times * power);
    let step = step.into_iter().find(|step| *step >= rough * 0.999);
    let step = step.unwrap_or(10.0 * power);
    let first = (range.start / step).ceil() as i64;
    let last = (range.end / step * (1.0 + 1e-9)).floor() as i64;
    (first..=last)
        .map(|n| Tick {
            at: n as f64 * step,
            label: axis_number(n as f64 * step),
        })
        .collect()
}

/// As many digits as tell neighbours on an axis apart.
fn axis_number(value: f64) -> String {
    let rounded = (value * 1e6).round() / 1e6;
    format!("{rounded}")
}

/// Names in the order in which they first come, each once.
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

fn encode(pixels: &[u8], (width_px, height_px): (u32, u32)) -> io::Result<Vec<u8>> {
    let mut bytes = vec![];
    let mut encoder = png::Encoder::new(&mut bytes, width_px, height_px);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(pixels)?;
    writer.finish()?;
    Ok(bytes)
}

/// What tests see of a picture.
#[cfg(test)]
mod seen {
    use super::*;

    pub(super) struct Pixels {
        pub(super) width_px: u32,
        pub(super) height_px: u32,
        bytes: Vec<u8>,
    }

    impl Pixels {
        pub(super) fn of(figure: &impl Figure) -> Pixels {
            let png = picture(figure, Format::Png).unwrap();
            let mut reader = png::Decoder::new(io::Cursor::new(png)).read_info().unwrap();
            let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
            let info = reader.next_frame(&mut bytes).unwrap();
            Pixels {
                width_px: info.width,
                height_px: info.height,
                bytes,
            }
        }

        /// Pixels of a colour in some rows.
        pub(super) fn count(&self, rows: Range<u32>, colour: RGBColor) -> usize {
            let at = |row: u32| (row * self.width_px * 3) as usize;
            let pixels = self.bytes[at(rows.start)..at(rows.end)].chunks(3);
            pixels
                .filter(|pixel| *pixel == [colour.0, colour.1, colour.2])
                .count()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_within_the_range() {
        let at = |range| {
            round_ticks(&range)
                .iter()
                .map(|tick| tick.at)
                .collect::<Vec<_>>()
        };
        assert_eq!(at(0.0..10.0), (0..=10).map(f64::from).collect::<Vec<_>>());
        assert_eq!(at(0.0..0.4).len(), 9);
        assert_eq!(round_ticks(&(0.0..0.4))[1].label, "0.05");
        assert!(at(3.0..4.9).iter().all(|at| (3.0..=4.9).contains(at)));
    }

    #[test]
    fn the_ending_says_the_format() {
        assert_eq!(Format::of("a/b.PNG".as_ref()), Some(Format::Png));
        assert_eq!(Format::of("a.svg".as_ref()), Some(Format::Svg));
        assert_eq!(Format::of("png".as_ref()), None);
    }
}

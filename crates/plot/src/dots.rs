// SPDX-License-Identifier: MIT OR Apache-2.0
//! A line for each of several things, and on it what each of several others reached.

use plotters::coord::Shift;
use plotters::prelude::*;

use super::{Drawn, FAINT, FONT, Figure, INK, LIMIT, LINES, Ticked, axis_number, draw_legend};

const ROW_PX: u32 = 26;
/// Axis, caption and margins.
const AROUND_PX: u32 = 130;
const LABELS_PX: u32 = 260;

/// Values on one scale, by row and series.
#[derive(Clone, Debug)]
pub struct Dots {
    /// What stands above it.
    pub title: String,
    /// What the values are.
    pub x_desc: String,
    /// A value that is marked on the scale.
    pub mark: f64,
    /// Names of what is compared.
    pub series: Vec<String>,
    /// A name, and a value of each series.
    pub rows: Vec<(String, Vec<Option<f64>>)>,
}

impl Dots {
    fn range(&self) -> (f64, f64) {
        let values = self
            .rows
            .iter()
            .flat_map(|(_, values)| values.iter().flatten());
        let (low, high) = values.fold((0.0, self.mark), |(low, high): (f64, f64), value| {
            (low.min(*value), high.max(*value))
        });
        (low, low + 1.05 * (high - low))
    }

    /// The place of a row, from above.
    fn place(&self, row: usize) -> f64 {
        (self.rows.len() - 1 - row) as f64
    }

    fn label(&self, place: f64) -> String {
        let row = (self.rows.len() - 1).checked_sub(place as usize);
        row.map_or(String::new(), |row| self.rows[row].0.clone())
    }
}

impl Figure for Dots {
    fn title(&self) -> &str {
        &self.title
    }

    fn height_px(&self) -> u32 {
        self.rows.len() as u32 * ROW_PX + AROUND_PX
    }

    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Drawn
    where
        B::ErrorType: 'static,
    {
        let (low, high) = self.range();
        let places = 0..self.rows.len();
        let y = Ticked {
            range: (-0.7..self.rows.len() as f64 - 0.3).into(),
            ticks: places.clone().map(|place| place as f64).collect(),
        };
        let mut chart = ChartBuilder::on(area)
            .margin(16)
            .x_label_area_size(46)
            .y_label_area_size(LABELS_PX)
            .build_cartesian_2d(low..high, y)?;
        chart
            .configure_mesh()
            .x_desc(&self.x_desc)
            .x_label_formatter(&|x| axis_number(*x))
            .y_labels(self.rows.len())
            .y_label_formatter(&|place| self.label(*place))
            .light_line_style(TRANSPARENT)
            .bold_line_style(FAINT)
            .axis_style(INK)
            .label_style((FONT, 15).into_font().color(&INK))
            .axis_desc_style((FONT, 16).into_font().color(&INK))
            .draw()?;
        let ends = [-0.7, self.rows.len() as f64 - 0.3].map(|y| (self.mark, y));
        chart.draw_series(LineSeries::new(ends, LIMIT.stroke_width(1)))?;
        for (at, (name, colour)) in self.series.iter().zip(LINES.iter().cycle()).enumerate() {
            let style = colour.filled();
            let points = places.clone().filter_map(|row| {
                let value = *self.rows[row].1.get(at)?;
                Some(Circle::new((value?, self.place(row)), 5, style))
            });
            chart
                .draw_series(points)?
                .label(name)
                .legend(move |(x, y)| Circle::new((x + 12, y), 5, style));
        }
        draw_legend(&mut chart, SeriesLabelPosition::LowerLeft)
    }
}

#[cfg(test)]
mod tests {
    use super::super::seen::Pixels;
    use super::super::{Format, picture};
    use super::*;

    #[test]
    fn each_row_has_its_name_and_a_dot_of_each_series_that_has_a_value() {
        let dots = Dots {
            title: "reached".into(),
            x_desc: "of the oracle".into(),
            mark: 1.0,
            series: vec!["default".into(), "auto".into()],
            rows: vec![
                ("far".into(), vec![Some(0.1), Some(0.9)]),
                ("near".into(), vec![Some(1.0), None]),
            ],
        };
        let svg = String::from_utf8(picture(&dots, Format::Svg).unwrap()).unwrap();
        assert!(svg.contains("far") && svg.contains("near"), "{svg}");
        let colour = |place: usize| {
            let RGBColor(r, g, b) = LINES[place];
            format!("#{r:02X}{g:02X}{b:02X}")
        };
        let of = |place| {
            let circles = svg.lines().filter(|line| line.starts_with("<circle"));
            circles.filter(|line| line.contains(&colour(place))).count()
        };
        assert_eq!((of(0), of(1)), (3, 2), "one of each is the legend's");
        let pixels = Pixels::of(&dots);
        assert!(pixels.count(0..pixels.height_px, LINES[1]) > 50);
    }
}

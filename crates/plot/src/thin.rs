// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fewer points than were measured, and the same picture: it has only so many pixels.

use std::collections::BTreeMap;
use std::ops::Range;

use super::Curve;

/// Of a line; more are thinned to the least and the greatest of each slice: a picture is 1280 pixels wide.
const MOST_POINTS: usize = 2400;

/// Columns and rows of the bars of a picture, which has fewer pixels.
const COLUMNS: f64 = 1280.0;
const ROWS: f64 = 1000.0;

/// The same line with fewer points: of each slice its least and its greatest, in their order.
pub(super) fn thinned(line: Curve) -> Curve {
    if line.len() <= MOST_POINTS {
        return line;
    }
    let slice = line.len().div_ceil(MOST_POINTS / 2);
    let by_value = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
    let ends = line.chunks(slice).flat_map(|slice| {
        let (least, most) = (slice.iter().min_by(by_value), slice.iter().max_by(by_value));
        let mut both: Vec<(f64, f64)> = [least, most].into_iter().flatten().copied().collect();
        both.sort_by(|a, b| a.0.total_cmp(&b.0));
        both
    });
    ends.collect()
}

/// A vertical bar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bar {
    pub(super) at: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

/// Bars that cover the same pixels: in each column those that touch are one.
pub(super) fn by_pixel(
    bars: impl Iterator<Item = Bar>,
    x: &Range<f64>,
    y: &Range<f64>,
) -> Vec<Bar> {
    let width = (x.end - x.start) / COLUMNS;
    let height = (y.end - y.start) / ROWS;
    // By column and row, the greatest row of the bars that begin there, and the first of them.
    let mut kept: BTreeMap<(i64, i64), (i64, Bar)> = BTreeMap::new();
    for bar in bars {
        let column = ((bar.at - x.start) / width) as i64;
        let [low, high] = [bar.low, bar.high].map(|value| ((value - y.start) / height) as i64);
        let entry = kept.entry((column, low)).or_insert((high, bar));
        if high > entry.0 {
            entry.0 = high;
            entry.1.high = bar.high;
        }
    }
    let mut merged: Vec<(i64, i64, Bar)> = Vec::new();
    for ((column, low), (high, bar)) in kept {
        match merged.last_mut() {
            Some((last, top, into)) if *last == column && low <= *top + 1 => {
                *top = high.max(*top);
                into.high = into.high.max(bar.high);
            }
            _ => merged.push((column, high, bar)),
        }
    }
    merged.into_iter().map(|(_, _, bar)| bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_what_stands_out() {
        let mut line: Curve = (0..100_000).map(|n| (f64::from(n), 1.0)).collect();
        line[50_000].1 = 9.0;
        line[70_000].1 = 0.5;
        let thin = thinned(line);
        assert!(thin.len() <= MOST_POINTS, "{}", thin.len());
        assert!(thin.contains(&(50_000.0, 9.0)) && thin.contains(&(70_000.0, 0.5)));
        assert!(thin.is_sorted_by(|a, b| a.0 <= b.0));
    }

    #[test]
    fn bars_of_a_pixel_are_one_and_a_gap_stays() {
        let bar = |at: f64, low: f64| Bar {
            at,
            low,
            high: low + 1.0,
        };
        let range = 0.0..1_000_000.0;
        // A rising line of a million segments, and one far below it.
        let many = (0..1_000_000).map(|n| bar(f64::from(n), f64::from(n)));
        let bars = by_pixel(many.chain([bar(500_000.0, 10.0)]), &range, &range);
        assert!((1280..4000).contains(&bars.len()), "{}", bars.len());
        let column = bars.iter().filter(|bar| (bar.at - 500_000.0).abs() < 700.0);
        assert!(column.clone().any(|bar| bar.high < 20.0));
        assert!(column.clone().any(|bar| bar.low > 499_000.0));
        assert_eq!(
            by_pixel([bar(3.0, 4.0)].into_iter(), &range, &range),
            [bar(3.0, 4.0)]
        );
    }
}

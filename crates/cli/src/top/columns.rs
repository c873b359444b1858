// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which columns a screen of some width has, and how wide each is.

use fatpath_api::FlowView;
use fatpath_estats::listing::{COLUMNS, Column};

/// What goes first where not all fit; addresses, rate and findings stay.
const DROPPED: [&str; 7] = [
    "average",
    "rule",
    "held_by",
    "retransmitted",
    "law",
    "cwnd",
    "rtt",
];

/// The most that a column takes, however long its texts are: an IPv6 address and port.
const WIDEST: usize = 47;

/// What findings have at least; the rest of the line is theirs.
const FINDINGS_LEAST: usize = 10;
const FINDINGS: &str = "findings";

/// The columns of a line of `width` characters, with their widths.
pub fn fitting(width: u16, views: &[FlowView]) -> Vec<(&'static Column, u16)> {
    let columns = COLUMNS.iter();
    let columns = columns.map(|column| (column, wanted(column, views)));
    fit(width.into(), columns.collect())
}

fn fit(width: usize, mut columns: Vec<(&Column, usize)>) -> Vec<(&Column, u16)> {
    for name in DROPPED {
        if taken(&columns) > width {
            columns.retain(|(column, _)| column.name != name);
        }
    }
    let rest = width.saturating_sub(taken(&columns));
    let widths = columns.into_iter().map(|(column, width)| {
        let more = if column.name == FINDINGS { rest } else { 0 };
        (column, (width + more) as u16)
    });
    widths.collect()
}

fn wanted(column: &Column, views: &[FlowView]) -> usize {
    if column.name == FINDINGS {
        return FINDINGS_LEAST;
    }
    let texts = views.iter().map(|view| (column.text)(view).chars().count());
    let longest = texts.max().unwrap_or_default().min(WIDEST);
    longest.max(column.heading.chars().count())
}

/// With a space between two columns.
fn taken(columns: &[(&Column, usize)]) -> usize {
    let widths: usize = columns.iter().map(|(_, width)| width + 1).sum();
    widths.saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The columns of a screen whose addresses have so many characters.
    fn names(width: usize, address: usize) -> Vec<&'static str> {
        let wide = |column: &'static Column| match column.name {
            "local" | "remote" => (column, address),
            _ => (column, wanted(column, &[])),
        };
        let columns = fit(width, COLUMNS.iter().map(wide).collect());
        columns.iter().map(|(column, _)| column.name).collect()
    }

    #[test]
    fn a_wide_screen_has_all_columns_and_a_narrow_one_both_addresses() {
        assert_eq!(names(160, 21).len(), COLUMNS.len());
        let narrow = names(80, 21);
        for name in ["local", "remote", "rate", "rtt", "findings"] {
            assert!(narrow.contains(&name), "{narrow:?}");
        }
        assert!(!narrow.contains(&"average"));
        assert_eq!(names(80, WIDEST)[..2], ["local", "remote"]);
    }

    #[test]
    fn every_column_that_can_go_is_one() {
        for name in DROPPED {
            assert!(Column::named(name).is_some(), "{name}");
        }
    }
}

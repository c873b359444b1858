// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the runs gave: rows for machines, a table for people.
//!
//! Pure. Start with [`Run`].

use serde::Serialize;

use crate::iperf3::Measured;

/// One row of `results.json`. Rates in Mb/s of application data, decimal.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The case of the network.
    pub path: String,
    /// The case of the tuning.
    pub variant: String,
    /// What the receiver got; `None` (null) if the run failed.
    pub goodput_mbps: Option<f64>,
    /// The rate of the bottleneck in bits on the wire; `None` (null) if there is no limit.
    pub bottleneck_mbps: Option<f64>,
    /// Segments sent again; `None` (null) if the run failed or the sender does not count them.
    pub retransmits: Option<u64>,
    /// Why the run failed; the key is absent if it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// One run: a variant on a path.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Its row.
    pub row: Row,
    /// The figures behind it; `None` if it failed.
    pub measured: Option<Measured>,
}

impl Run {
    /// A run that gave figures.
    pub fn finished(
        path: &str,
        variant: &str,
        bottleneck_bps: Option<u64>,
        measured: Measured,
    ) -> Run {
        let row = Row {
            goodput_mbps: Some(round3(measured.goodput_bps / 1e6)),
            retransmits: measured.retransmits,
            ..Row::empty(path, variant, bottleneck_bps)
        };
        Run {
            row,
            measured: Some(measured),
        }
    }

    /// A run that failed.
    pub fn failed(path: &str, variant: &str, bottleneck_bps: Option<u64>, error: String) -> Run {
        let row = Row {
            error: Some(error),
            ..Row::empty(path, variant, bottleneck_bps)
        };
        Run {
            row,
            measured: None,
        }
    }
}

impl Row {
    fn empty(path: &str, variant: &str, bottleneck_bps: Option<u64>) -> Row {
        Row {
            path: path.to_owned(),
            variant: variant.to_owned(),
            goodput_mbps: None,
            bottleneck_mbps: bottleneck_bps.map(|bps| bps as f64 / 1e6),
            retransmits: None,
            error: None,
        }
    }
}

fn round3(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

/// The table for people: per path every variant with its goodput, its ratio to the path's first
/// variant, its share of the bottleneck, and its retransmissions.
pub fn table(rows: &[Row]) -> String {
    let heads = [
        "path",
        "variant",
        "goodput",
        "ratio",
        "of bottleneck",
        "retransmits",
    ];
    let mut lines = vec![heads.map(str::to_owned)];
    for (index, row) in rows.iter().enumerate() {
        let first_of_path = rows.iter().position(|other| other.path == row.path);
        let base = first_of_path.and_then(|first| rows[first].goodput_mbps);
        let is_first = first_of_path == Some(index);
        lines.push(cells(row, is_first, base));
    }
    aligned(&lines)
}

fn cells(row: &Row, is_first_of_path: bool, base_mbps: Option<f64>) -> [String; 6] {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let over = |base: Option<f64>| Some(row.goodput_mbps? / base.filter(|base| *base > 0.0)?);
    [
        if is_first_of_path {
            row.path.clone()
        } else {
            String::new()
        },
        row.variant.clone(),
        row.goodput_mbps
            .map_or("failed".to_owned(), |mbps| format!("{mbps:.1} Mb/s")),
        or_dash(over(base_mbps).map(|ratio| format!("{ratio:.1} x"))),
        or_dash(over(row.bottleneck_mbps).map(|share| format!("{:.1} %", share * 100.0))),
        or_dash(row.retransmits.map(|count| count.to_string())),
    ]
}

/// The first two columns to the left, figures to the right.
fn aligned(lines: &[[String; 6]]) -> String {
    let width = |column: usize| {
        lines
            .iter()
            .map(|line| line[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: [usize; 6] = std::array::from_fn(width);
    let mut table = String::new();
    for line in lines {
        let cells =
            line.iter()
                .zip(widths)
                .enumerate()
                .map(|(column, (text, width))| match column {
                    0 | 1 => format!("{text:<width$}"),
                    _ => format!("{text:>width$}"),
                });
        table.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        table.push('\n');
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iperf3::SeenBy;

    fn finished(path: &str, variant: &str, goodput_bps: f64, retransmits: u64) -> Row {
        let measured = Measured {
            goodput_bps,
            retransmits: Some(retransmits),
            reverse: false,
            seen_by: SeenBy::Receiver,
            intervals: vec![],
        };
        Run::finished(path, variant, Some(1_000_000_000), measured).row
    }

    #[test]
    fn a_row_begins_with_the_five_keys_and_an_error_comes_last() {
        let row = finished("clean", "default", 312_345_678.9, 7);
        assert_eq!(
            serde_json::to_string(&row).unwrap(),
            r#"{"path":"clean","variant":"default","goodput_mbps":312.346,"bottleneck_mbps":1000.0,"retransmits":7}"#
        );
        let failed = Run::failed("clean", "tuned", None, "why".into()).row;
        assert_eq!(
            serde_json::to_string(&failed).unwrap(),
            r#"{"path":"clean","variant":"tuned","goodput_mbps":null,"bottleneck_mbps":null,"retransmits":null,"error":"why"}"#
        );
    }

    #[test]
    fn the_table_compares_with_the_first_variant_of_each_path() {
        let rows = [
            finished("clean", "default", 300e6, 0),
            finished("clean", "tuned", 930e6, 12),
            Run::failed("lossy", "default", Some(1_000_000_000), "why".into()).row,
            finished("lossy", "tuned", 700e6, 1234),
        ];
        insta::assert_snapshot!(table(&rows), @r"
        path   variant     goodput  ratio  of bottleneck  retransmits
        clean  default  300.0 Mb/s  1.0 x         30.0 %            0
               tuned    930.0 Mb/s  3.1 x         93.0 %           12
        lossy  default      failed      -              -            -
               tuned    700.0 Mb/s      -         70.0 %         1234
        ");
    }
}

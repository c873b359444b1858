// SPDX-License-Identifier: MIT OR Apache-2.0
//! A table of words for the terminal.

use std::io::{self, Write};

/// Writes the header and the rows, in columns as wide as they need to be. Text may come from an imported file: nothing
/// of it may steer the terminal.
pub fn write_table<const N: usize>(
    out: &mut impl Write,
    header: [String; N],
    rows: impl Iterator<Item = [String; N]>,
) -> io::Result<()> {
    let safe = |cell: String| cell.replace(char::is_control, "?");
    let rows: Vec<[String; N]> = std::iter::once(header)
        .chain(rows)
        .map(|row| row.map(safe))
        .collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..N).filter_map(width).collect();
    for row in &rows {
        let cells = row.iter().zip(&widths);
        let cells: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        writeln!(out, "{}", cells.join("  ").trim_end())?;
    }
    Ok(())
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A table of words for the terminal, in columns as wide as they need to be.

use std::io::{self, Write};

/// Writes the header and the rows. Text may come from an imported file: nothing of it may steer the terminal.
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
    out.write_all(aligned(&rows, N).as_bytes())
}

/// The rows, all with as many cells as the first: the first `left` columns begin at their left, the others, which are
/// numbers, end at their right.
pub fn aligned<R: AsRef<[String]>>(rows: &[R], left: usize) -> String {
    let columns = rows.first().map_or(0, |row| row.as_ref().len());
    let width = |column: usize| {
        let cells = rows.iter().map(|row| &row.as_ref()[column]);
        cells.map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..columns).filter_map(width).collect();
    let mut table = String::new();
    for row in rows {
        let cells = row.as_ref().iter().zip(&widths).enumerate();
        let cells = cells.map(|(column, (text, width))| match column < left {
            true => format!("{text:<width$}"),
            false => format!("{text:>width$}"),
        });
        table.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        table.push('\n');
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: [&str; 2]) -> [String; 2] {
        cells.map(str::to_owned)
    }

    #[test]
    fn words_begin_at_the_left_and_numbers_end_at_the_right() {
        let rows = [row(["path", "Mb/s"]), row(["weit über", "7"])];
        let text = "path       Mb/s\nweit über     7\n";
        assert_eq!(aligned(&rows, 1), text);
        assert_eq!(aligned(&[] as &[Vec<String>], 1), "");
    }

    #[test]
    fn nothing_of_a_cell_steers_the_terminal() {
        let mut text = Vec::new();
        let rows = [row(["a\x1b[2J", "b\n"])].into_iter();
        write_table(&mut text, row(["one", "two"]), rows).unwrap();
        assert_eq!(text, b"one    two\na?[2J  b?\n");
    }
}

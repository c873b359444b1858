// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables for tbl(1).

use crate::inline::roff_of;

/// What a table may take of 80 columns: man(1) leaves two free, and indents the text by seven.
const WIDTH: usize = 71;

/// What tbl(1) puts between two columns.
const GAP: usize = 3;

/// The head in bold, every cell in a text block, so that long ones wrap in their column.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let widths = widths(rows);
    let format: Vec<String> = widths.iter().map(|width| format!("lw({width}n)")).collect();
    let head: Vec<String> = widths
        .iter()
        .map(|width| format!("lBw({width}n)"))
        .collect();
    let mut roff = format!(
        ".PP\n.ad l\n.TS\n{}\n{}.\n",
        head.join(" "),
        format.join(" ")
    );
    for row in rows {
        let cells = (0..widths.len()).map(|column| row.get(column).map_or("", String::as_str));
        let cells: Vec<String> = cells.map(cell).collect();
        roff.push_str(&cells.join("\t"));
        roff.push('\n');
    }
    roff + ".TE\n.ad b\n"
}

fn cell(text: &str) -> String {
    match text.is_empty() {
        true => String::new(),
        false => format!("T{{\n{}\nT}}", roff_of(text)),
    }
}

/// Each column at least as wide as its longest word, so that none sticks out; the rest by what the cells want.
fn widths(rows: &[Vec<String>]) -> Vec<usize> {
    let columns = rows.first().map_or(1, Vec::len);
    let all = WIDTH.saturating_sub(GAP * (columns - 1));
    let of_cells = |column: usize, length: fn(&str) -> usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| length(cell)).max().unwrap_or(1).max(1)
    };
    let wanted: Vec<usize> = (0..columns).map(|it| of_cells(it, length)).collect();
    if wanted.iter().sum::<usize>() <= all {
        return wanted;
    }
    let least: Vec<usize> = (0..columns).map(|it| of_cells(it, longest_word)).collect();
    let least = least.into_iter().map(|width| width.min(all / columns));
    let least: Vec<usize> = least.collect();
    let rest = all - least.iter().sum::<usize>();
    let more: Vec<usize> = wanted
        .iter()
        .zip(&least)
        .map(|(it, least)| it - least)
        .collect();
    let all_more: usize = more.iter().sum();
    let share = |(least, more): (&usize, &usize)| least + rest * more / all_more.max(1);
    least.iter().zip(&more).map(share).collect()
}

fn length(cell: &str) -> usize {
    cell.chars().filter(|c| *c != '`').count()
}

fn longest_word(cell: &str) -> usize {
    cell.split_whitespace().map(length).max().unwrap_or(0)
}

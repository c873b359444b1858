// SPDX-License-Identifier: MIT OR Apache-2.0
//! The blocks of a text in Markdown.

use std::iter::Peekable;
use std::str::Lines;

/// One block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Block<'t> {
    /// Its level, from 2, and its text.
    Heading(usize, &'t str),
    /// The lines, joined.
    Paragraph(String),
    /// An item of a list: its mark, its text.
    Item(&'t str, String),
    /// Lines as they are.
    Code(Vec<&'t str>),
    /// The rows, the head first; cells without what surrounds them.
    Table(Vec<Vec<String>>),
}

/// The heading of level 1 is left out: a man page has a name in its place. So are comments.
pub(crate) fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut lines = text.lines().peekable();
    let mut blocks = Vec::new();
    while let Some(line) = lines.next() {
        match heading(line) {
            Some((1, _)) => {}
            Some((level, text)) => blocks.push(Block::Heading(level, text)),
            None if line.trim().is_empty() || line.starts_with("<!--") => {}
            None if line.starts_with("```") => blocks.push(code(&mut lines)),
            None if line.starts_with('|') => blocks.push(rows(line, &mut lines)),
            None => blocks.push(match item(line) {
                Some((mark, text)) => Block::Item(mark, joined(text, &mut lines)),
                None => Block::Paragraph(joined(line, &mut lines)),
            }),
        }
    }
    blocks
}

fn heading(line: &str) -> Option<(usize, &str)> {
    let text = line.trim_start_matches('#');
    let level = line.len() - text.len();
    (level > 0 && text.starts_with(' ')).then(|| (level, text.trim()))
}

/// `- text`, `* text`, `1. text`.
fn item(line: &str) -> Option<(&str, &str)> {
    let (mark, text) = line.trim_start().split_once(' ')?;
    let is_number = mark
        .strip_suffix('.')
        .is_some_and(|digits| !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit()));
    (is_number || mark == "-" || mark == "*").then_some((mark, text))
}

/// With the lines that follow, up to an empty one or another block.
fn joined(first: &str, lines: &mut Peekable<Lines<'_>>) -> String {
    let mut text = first.trim().to_owned();
    let goes_on = |line: &&str| {
        let begins_another =
            heading(line).is_some() || item(line).is_some() || line.starts_with(['|', '<']);
        !line.trim().is_empty() && !begins_another && !line.starts_with("```")
    };
    while let Some(line) = lines.next_if(goes_on) {
        text.push(' ');
        text.push_str(line.trim());
    }
    text
}

fn code<'t>(lines: &mut Peekable<Lines<'t>>) -> Block<'t> {
    Block::Code(lines.take_while(|line| !line.starts_with("```")).collect())
}

fn rows<'t>(first: &'t str, lines: &mut Peekable<Lines<'t>>) -> Block<'t> {
    let mut rows = vec![cells(first)];
    while let Some(line) = lines.next_if(|line| line.starts_with('|')) {
        let is_rule = line.chars().all(|c| "|-: ".contains(c));
        if !is_rule {
            rows.push(cells(line));
        }
    }
    Block::Table(rows)
}

/// A bar with a backslash before it is part of its cell.
fn cells(row: &str) -> Vec<String> {
    const BAR: &str = "\u{1}";
    let row = row.replace("\\|", BAR);
    let row = row.trim().trim_start_matches('|');
    let row = row.strip_suffix('|').unwrap_or(row);
    row.split('|')
        .map(|cell| cell.trim().replace(BAR, "|"))
        .collect()
}

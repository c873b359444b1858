// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is wrong with a file: where, what was found, and what is allowed instead.
//!
//! A [`Problem`] does not know its file's name, for this crate opens no file: [`Problem::in_file`]
//! adds it for print. Start at [`Problem`]; [`Lines`] turns byte offsets into places.

use serde::Serialize;
use std::fmt;

/// One error or warning about a policy file or a WAD file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{line}:{column}: {message}; {allowed}")]
pub struct Problem {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// What was found.
    pub message: String,
    /// What is allowed, or the remedy.
    pub allowed: String,
}

impl Problem {
    /// The problem as compilers print one: `FILE:LINE:COLUMN: message; allowed`.
    pub fn in_file<'a>(&'a self, file_name: &'a str) -> impl fmt::Display + 'a {
        struct InFile<'a>(&'a Problem, &'a str);
        impl fmt::Display for InFile<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}:{}", self.1, self.0)
            }
        }
        InFile(self, file_name)
    }
}

/// What a value's reader objects to, before it is known where the value stands.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub message: String,
    pub allowed: String,
}

impl Refusal {
    pub fn new(message: impl Into<String>, allowed: impl Into<String>) -> Self {
        Refusal {
            message: message.into(),
            allowed: allowed.into(),
        }
    }
}

/// The most problems that are told of one file; the rest is counted.
const MAX_TOLD: usize = 100;

/// The most problems of which the text is kept until they are sorted; it bounds the memory.
const MAX_KEPT: usize = 10_000;

/// The problems of a text as they are found, in any order.
pub(crate) struct Report<'t> {
    lines: Lines<'t>,
    found: Vec<(usize, Refusal)>,
    not_kept: usize,
}

impl<'t> Report<'t> {
    pub fn on(text: &'t str) -> Self {
        Report {
            lines: Lines::of(text),
            found: Vec::new(),
            not_kept: 0,
        }
    }

    /// Notes a problem at a byte offset.
    pub fn add(&mut self, offset: usize, refusal: Refusal) {
        match self.found.len() < MAX_KEPT {
            true => self.found.push((offset, refusal)),
            false => self.not_kept += 1,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// The line of a byte offset, from 1.
    pub fn line(&self, offset: usize) -> u32 {
        self.lines.line(offset)
    }

    /// The problems in file order. Only those that are told get a column, which costs a walk along the line.
    pub fn into_problems(mut self) -> Vec<Problem> {
        self.found.sort_by_key(|(offset, _)| *offset);
        let rest = self.found.len().saturating_sub(MAX_TOLD) + self.not_kept;
        self.found.truncate(MAX_TOLD);
        if rest > 0 {
            let message = format!("and {rest} more problems from here on");
            let last = self.found[MAX_TOLD - 1].0;
            self.add(last, Refusal::new(message, "mend these first"));
        }
        self.found
            .into_iter()
            .map(|(offset, refusal)| self.lines.problem(offset, refusal))
            .collect()
    }
}

impl Problem {
    /// The only problem of a text, at a byte offset.
    pub(crate) fn alone(text: &str, offset: usize, refusal: Refusal) -> Vec<Problem> {
        vec![Lines::of(text).problem(offset, refusal)]
    }
}

/// The beginnings of a text's lines, to find places without reading the text again.
struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    fn of(text: &'t str) -> Self {
        let after_newline = text.match_indices('\n').map(|(at, _)| at + 1);
        Lines {
            text,
            starts: std::iter::once(0).chain(after_newline).collect(),
        }
    }

    fn line(&self, offset: usize) -> u32 {
        let offset = offset.min(self.text.len());
        self.starts.partition_point(|&start| start <= offset) as u32
    }

    /// Line and column, both from 1, of a byte offset. An offset past the end means the end.
    fn place(&self, offset: usize) -> (u32, u32) {
        let line = self.line(offset);
        let before =
            &self.text.as_bytes()[self.starts[line as usize - 1]..offset.min(self.text.len())];
        let begins_a_character = |byte: &&u8| **byte & 0b1100_0000 != 0b1000_0000;
        (
            line,
            before.iter().filter(begins_a_character).count() as u32 + 1,
        )
    }

    fn problem(&self, offset: usize, refusal: Refusal) -> Problem {
        let (line, column) = self.place(offset);
        Problem {
            line,
            column,
            message: refusal.message,
            allowed: refusal.allowed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_characters_and_lines_from_one() {
        let lines = Lines::of("a\nµb\n");
        let places = [0, 1, 2, 4, 5, 6, 99].map(|offset| lines.place(offset));
        assert_eq!(
            places,
            [(1, 1), (1, 2), (2, 1), (2, 2), (2, 3), (3, 1), (3, 1)]
        );
    }
}

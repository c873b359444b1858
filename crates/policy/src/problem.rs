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

/// The beginnings of a text's lines, to find places without reading the text again.
pub(crate) struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    pub fn of(text: &'t str) -> Self {
        let after_newline = text.match_indices('\n').map(|(at, _)| at + 1);
        Lines {
            text,
            starts: std::iter::once(0).chain(after_newline).collect(),
        }
    }

    /// Line and column, both from 1, of a byte offset. An offset past the end means the end.
    pub fn place(&self, offset: usize) -> (u32, u32) {
        let offset = (0..=offset.min(self.text.len()))
            .rev()
            .find(|at| self.text.is_char_boundary(*at))
            .unwrap_or(0);
        let line = self.starts.partition_point(|&start| start <= offset);
        let column = self.text[self.starts[line - 1]..offset].chars().count() + 1;
        (line as u32, column as u32)
    }

    pub fn problem(&self, offset: usize, refusal: Refusal) -> Problem {
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

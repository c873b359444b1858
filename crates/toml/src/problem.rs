// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is wrong with a text: where, what was found, and what is allowed instead.
//!
//! A [`Problem`] does not know its file's name, for this crate opens no file: [`Problem::in_file`]
//! adds it for print. Start at [`Report`].

use serde::Serialize;
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::fmt;

/// One error or warning about a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{line}:{column}: {}", Sentence(message, allowed))]
pub struct Problem {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// What was found.
    pub message: String,
    /// What is allowed, or the remedy; empty where the message says it.
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

    /// Without its place: `message; allowed`.
    pub fn sentence(&self) -> String {
        Sentence(&self.message, &self.allowed).to_string()
    }

    /// The problem as a warning: `FILE:LINE:COLUMN: warning: message; allowed`.
    pub fn warning_in(&self, file_name: &str) -> String {
        self.line_in(file_name, "warning")
    }

    fn line_in(&self, file_name: &str, severity: &str) -> String {
        let (line, column) = (self.line, self.column);
        let sentence = self.sentence();
        format!("{file_name}:{line}:{column}: {severity}: {sentence}")
    }
}

/// A file that is not taken, with everything that is wrong with it; printed as compilers do, a line for each:
/// `FILE:LINE:COLUMN: error: message; allowed`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{}", self.lines().join("\n"))]
pub struct Refused {
    /// The file, as the user named it.
    pub file: String,
    /// In file order, at least one.
    pub problems: Vec<Problem>,
}

impl Refused {
    /// A line for each problem.
    pub fn lines(&self) -> Vec<String> {
        let problems = self.problems.iter();
        problems
            .map(|problem| problem.line_in(&self.file, "error"))
            .collect()
    }
}

/// The same with a byte offset, which is not yet a line and a column.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", Sentence(message, allowed))]
pub struct Refusal {
    at: usize,
    message: String,
    allowed: String,
}

impl Refusal {
    /// What was found at a byte offset.
    pub fn new(at: usize, message: impl Into<String>) -> Self {
        Refusal {
            at,
            message: message.into(),
            allowed: String::new(),
        }
    }

    /// With what is allowed, or the remedy.
    pub fn allowed(mut self, allowed: impl Into<String>) -> Self {
        self.allowed = allowed.into();
        self
    }
}

/// `message; allowed`.
struct Sentence<'s>(&'s str, &'s str);

impl fmt::Display for Sentence<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let semicolon = if self.1.is_empty() { "" } else { "; " };
        write!(f, "{}{semicolon}{}", self.0, self.1)
    }
}

/// The most problems that are told of one file; the rest is counted.
const MAX_TOLD: usize = 100;

/// The most problems of which the text is kept until they are sorted; it bounds the memory.
const MAX_KEPT: usize = 10_000;

/// The problems of a text as they are found, in any order.
pub struct Report<'t> {
    lines: Lines<'t>,
    found: RefCell<Vec<Refusal>>,
    /// What was found, to note nothing twice where a table is read several times.
    known: RefCell<HashSet<(usize, String)>>,
    not_kept: Cell<usize>,
}

impl<'t> Report<'t> {
    /// Of a text, with nothing found yet.
    pub fn on(text: &'t str) -> Self {
        Report {
            lines: Lines::of(text),
            found: RefCell::default(),
            known: RefCell::default(),
            not_kept: Cell::new(0),
        }
    }

    /// Notes a problem, once.
    pub fn add(&self, refusal: Refusal) {
        let mut known = self.known.borrow_mut();
        let is_known = known.contains(&(refusal.at, refusal.message.clone()));
        if is_known {
            return;
        }
        let mut found = self.found.borrow_mut();
        if found.len() < MAX_KEPT {
            known.insert((refusal.at, refusal.message.clone()));
        }
        match found.len() < MAX_KEPT {
            true => found.push(refusal),
            false => self.not_kept.set(self.not_kept.get() + 1),
        }
    }

    /// Whether nothing was noted.
    pub fn is_empty(&self) -> bool {
        self.found.borrow().is_empty()
    }

    /// The line of a byte offset, from 1.
    pub fn line(&self, at: usize) -> u32 {
        self.lines.line(at)
    }

    /// A refusal with its line and column.
    pub fn problem(&self, refusal: Refusal) -> Problem {
        let (line, column) = self.lines.place(refusal.at);
        Problem {
            line,
            column,
            message: refusal.message,
            allowed: refusal.allowed,
        }
    }

    /// The problems in file order. Only those that are told get a column, which costs a walk along the line.
    pub fn into_problems(self) -> Vec<Problem> {
        let mut found = self.found.take();
        found.sort_by_key(|refusal| refusal.at);
        let rest = found.len().saturating_sub(MAX_TOLD) + self.not_kept.get();
        found.truncate(MAX_TOLD);
        if let (Some(last), 1..) = (found.last(), rest) {
            let message = format!("and {rest} more problems from here on");
            found.push(Refusal::new(last.at, message).allowed("correct these first"));
        }
        found
            .into_iter()
            .map(|refusal| self.problem(refusal))
            .collect()
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

    fn line(&self, at: usize) -> u32 {
        let at = at.min(self.text.len());
        self.starts.partition_point(|&start| start <= at) as u32
    }

    /// Line and column, both from 1, of a byte offset. An offset past the end means the end.
    fn place(&self, at: usize) -> (u32, u32) {
        let line = self.line(at);
        let before = &self.text.as_bytes()[self.starts[line as usize - 1]..at.min(self.text.len())];
        let begins_a_character = |byte: &&u8| **byte & 0b1100_0000 != 0b1000_0000;
        (
            line,
            before.iter().filter(begins_a_character).count() as u32 + 1,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_characters_and_lines_from_one() {
        let lines = Lines::of("a\nµb\n");
        let places = [0, 1, 2, 4, 5, 6, 99].map(|at| lines.place(at));
        assert_eq!(
            places,
            [(1, 1), (1, 2), (2, 1), (2, 2), (2, 3), (3, 1), (3, 1)]
        );
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A whole file. Start at [`Document::parse`].

use crate::problem::{Problem, Refusal, Report};
use crate::section::{Placeholders, Section};
use toml::de::{DeTable, Error};

/// The longest text of which all syntax errors are told. They take up to 300 times the text's length
/// in memory; of a longer text only the first is told.
const MAX_RECOVERED_BYTES: usize = 256 << 10;

/// A file's text as TOML, with what was noted while it was read.
pub struct Document<'t> {
    title: &'static str,
    report: Report<'t>,
    table: DeTable<'t>,
}

impl<'t> Document<'t> {
    /// Reads a text; `title` is what the file is, such as `a policy file`.
    ///
    /// # Errors
    /// The syntax errors of a text that is no TOML, at least one.
    pub fn parse(title: &'static str, text: &'t str) -> Result<Self, Vec<Problem>> {
        let report = Report::on(text);
        let first = match DeTable::parse(text) {
            Ok(table) => {
                let table = table.into_inner();
                return Ok(Document {
                    title,
                    report,
                    table,
                });
            }
            Err(first) => first,
        };
        let errors = match text.len() <= MAX_RECOVERED_BYTES {
            true => DeTable::parse_recoverable(text).1,
            false => vec![first],
        };
        for error in errors {
            report.add(syntax(&error, title));
        }
        Err(report.into_problems())
    }

    /// The table of the whole file.
    pub fn root<P: Placeholders>(&self, placeholders: P) -> Section<'_, P> {
        Section::root(self.title, &self.report, &self.table, placeholders)
    }

    /// Whether nothing was noted.
    ///
    /// # Errors
    /// All that was noted, in file order; about 100 at most.
    pub fn finish(self) -> Result<(), Vec<Problem>> {
        match self.report.is_empty() {
            true => Ok(()),
            false => Err(self.report.into_problems()),
        }
    }

    /// A refusal with its line and column.
    pub fn problem(&self, refusal: Refusal) -> Problem {
        self.report.problem(refusal)
    }
}

fn syntax(error: &Error, title: &str) -> Refusal {
    let is_toml = || format!("{title} is TOML (https://toml.io)");
    let (message, allowed) = match error.message().split_once(", expected ") {
        Some((message, "nothing")) => (message, is_toml()),
        Some((message, expected)) => (message, format!("expected {expected}")),
        None if error.message() == "duplicate key" => (
            "the key occurs twice",
            "each key once in its table".to_owned(),
        ),
        None => (error.message(), is_toml()),
    };
    Refusal::new(error.span().unwrap_or_default().start, message).allowed(allowed)
}

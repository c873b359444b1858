// SPDX-License-Identifier: MIT OR Apache-2.0
//! The report for people.

use crate::{Check, Level};
use serde::Serialize;
use std::fmt::{self, Display, Formatter};

/// Columns of a terminal that nobody has made wider.
const WIDTH: usize = 80;

/// What stands before the text of a check: level, name, and the spaces between them.
const INDENT: usize = 8 + NAME_WIDTH;
const NAME_WIDTH: usize = 20;

/// What was found.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Every check.
    pub checks: Vec<Check>,
}

impl Report {
    /// How many checks are of that level.
    pub fn count(&self, level: Level) -> usize {
        self.checks.iter().filter(|it| it.level == level).count()
    }
}

/// A line a check, in 80 columns, its remedy below it; the counts at the end.
impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for check in &self.checks {
            let head = format!("{:<8}{:<NAME_WIDTH$}", check.level.name(), check.check);
            write_wrapped(f, &head, &check.found)?;
            if let Some(remedy) = &check.remedy {
                write_wrapped(f, &format!("{:INDENT$}-> ", ""), remedy)?;
            }
        }
        let levels = [Level::Bad, Level::Warn, Level::Unseen, Level::Ok];
        let counts = levels.map(|level| format!("{} {}", self.count(level), level.name()));
        writeln!(f, "\n{}", counts.join(", "))
    }
}

/// The text behind `head`, in lines that begin below its end. A word that is longer than a line stays whole.
pub fn write_wrapped(f: &mut Formatter<'_>, head: &str, text: &str) -> fmt::Result {
    let indent = head.chars().count();
    let mut line = head.to_owned();
    let mut is_empty = true;
    let safe = text.replace(|c: char| c.is_control() && c != '\n', "?");
    for word in safe.split_whitespace() {
        let is_full = line.chars().count() + 1 + word.chars().count() > WIDTH;
        if is_full && !is_empty {
            writeln!(f, "{}", line.trim_end())?;
            line = " ".repeat(indent);
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    writeln!(f, "{}", line.trim_end())
}

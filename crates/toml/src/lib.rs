// SPDX-License-Identifier: MIT OR Apache-2.0
//! A TOML file, read table by table and key by key; whatever is wrong is told with line, column and
//! what is allowed.
//!
//! Pure: text in, values out. Start at [`Document::parse`]. A [`Section`] is one of its tables, and knows
//! which of its keys were asked for: what is left is unknown. A [`Value`] knows its key and place; it is read
//! as one type, or refused. A reader either stops at the first [`Refusal`] (`?`, and [`Section::finish`]), or notes
//! each and goes on ([`Section::read`], [`Section::note_unknown`]), so that one pass finds all of them.

mod document;
mod problem;
mod section;
mod spelling;
#[cfg(test)]
mod tests;

pub use document::Document;
pub use problem::{Problem, Refusal, Refused, Report};
pub use section::{Placeholders, Section, Value};
pub use spelling::{nearest, shortened};
pub use toml::de::{DeTable, DeValue};

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads a TOML table key by key and notes every problem with its place.
//!
//! A key that nobody asked for is unknown; its nearest known neighbour is named. A value that is not
//! taken leaves `None` behind, so that one pass finds all problems. Start at [`Section`].

use crate::problem::{Refusal, Report};
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value with its place in the file.
pub(crate) type Value<'t> = Spanned<DeValue<'t>>;

/// One table of the file.
pub(crate) struct Section<'r, 't, 'v> {
    pub report: &'r mut Report<'t>,
    table: &'v DeTable<'v>,
}

impl<'r, 't, 'v> Section<'r, 't, 'v> {
    /// Opens a table of which only the keys of `known` are allowed; `title` names it to people.
    pub fn open(
        report: &'r mut Report<'t>,
        table: &'v DeTable<'v>,
        title: &str,
        known: &[&str],
    ) -> Self {
        for key in table
            .keys()
            .filter(|key| !known.contains(&key.get_ref().as_ref()))
        {
            report.add(key.span().start, unknown_key(key.get_ref(), title, known));
        }
        Section { report, table }
    }

    /// The value of a key as it stands.
    pub fn value(&self, key: &str) -> Option<&'v Value<'v>> {
        self.table.get(key)
    }

    /// The value of a key, read; `None` when it is absent, or refused and noted.
    pub fn read<T>(
        &mut self,
        key: &str,
        read: impl Fn(&DeValue) -> Result<T, Refusal>,
    ) -> Option<T> {
        self.value(key)
            .and_then(|value| self.take(key, value, &read))
    }

    /// The values of a key's list, those that are not refused; empty when the key is absent.
    pub fn read_list<T>(
        &mut self,
        key: &str,
        read: impl Fn(&DeValue) -> Result<T, Refusal>,
    ) -> Vec<(T, Range<usize>)> {
        let Some(value) = self.value(key) else {
            return Vec::new();
        };
        let example =
            "a list in square brackets with at least one entry; leave the key out for any";
        match value.get_ref().as_array() {
            Some(items) if !items.is_empty() => items
                .iter()
                .filter_map(|item| {
                    self.take(key, item, &read)
                        .map(|taken| (taken, item.span()))
                })
                .collect(),
            _ => {
                self.report
                    .add(value.span().start, refused(key, value.get_ref(), example));
                Vec::new()
            }
        }
    }

    fn take<T>(
        &mut self,
        key: &str,
        value: &Value,
        read: &impl Fn(&DeValue) -> Result<T, Refusal>,
    ) -> Option<T> {
        read(value.get_ref())
            .map_err(|refusal| self.report.add(value.span().start, under_key(key, refusal)))
            .ok()
    }
}

/// `key: message`, as every problem with a value begins.
pub(crate) fn under_key(key: &str, refusal: Refusal) -> Refusal {
    Refusal::new(format!("{key}: {}", refusal.message), refusal.allowed)
}

/// The refusal of a value that is not of the kind that is allowed.
pub(crate) fn found(value: &DeValue, allowed: impl Into<String>) -> Refusal {
    Refusal::new(
        format!("found {}", show(value)),
        format!("allowed: {}", allowed.into()),
    )
}

fn refused(key: &str, value: &DeValue, allowed: &str) -> Refusal {
    under_key(key, found(value, allowed))
}

/// A value as people know it: `the text "abc"`, `5`, `a table`.
fn show(value: &DeValue) -> String {
    match value {
        DeValue::String(text) => format!("the text {:?}", shortened(text)),
        DeValue::Integer(number) => shortened(&number.to_string()),
        DeValue::Float(number) => shortened(&number.to_string()),
        DeValue::Boolean(truth) => truth.to_string(),
        DeValue::Datetime(_) => "a date or time".to_owned(),
        DeValue::Array(items) if items.is_empty() => "an empty list".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

/// At most 64 characters of a text that a file gave.
pub(crate) fn shortened(text: &str) -> String {
    match text.char_indices().nth(64) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn unknown_key(key: &str, title: &str, known: &[&str]) -> Refusal {
    let message = format!("unknown key `{}` in {title}", shortened(key));
    let nearest = known
        .iter()
        .map(|candidate| (distance(key, candidate), candidate))
        .min();
    match nearest {
        // Two slips of the pen, in a word long enough to know it by; more is another word.
        Some((edits, candidate)) if edits <= 2 && edits * 3 <= candidate.len() => {
            Refusal::new(message, format!("did you mean `{candidate}`?"))
        }
        _ => Refusal::new(message, format!("allowed: {}", known.join(", "))),
    }
}

/// The Levenshtein distance, with hyphens and capitals forgiven.
fn distance(written: &str, known: &str) -> usize {
    let written: Vec<char> = shortened(written)
        .to_lowercase()
        .replace('-', "_")
        .chars()
        .collect();
    let mut row: Vec<usize> = (0..=known.len()).collect();
    for (i, letter) in written.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, wanted) in known.chars().enumerate() {
            let replaced = diagonal + usize::from(*letter != wanted);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[known.len()]
}

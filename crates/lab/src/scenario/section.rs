// SPDX-License-Identifier: MIT OR Apache-2.0
//! A table of a TOML file that knows its place: what is wrong is told with file, line and column,
//! the key's full name, and what is allowed.
//!
//! Pure. A [`Section`] is emptied key by key; [`Section::finish`] refuses what is left, so the
//! keys that are taken are the only list of the keys that exist. It knows nothing of scenarios.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// One thing that is wrong with a scenario file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {message}")]
pub struct Problem {
    /// The file, as the user named it.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What was found and what is allowed.
    pub message: String,
}

/// The text of a file, for turning byte offsets into lines.
pub(super) struct Source<'s> {
    pub(super) file: &'s str,
    pub(super) text: &'s str,
}

impl<'s> Source<'s> {
    pub(super) fn problem(&self, span: &Range<usize>, message: impl Into<String>) -> Problem {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Problem {
            file: self.file.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message: message.into(),
        }
    }

    /// The whole file as a section.
    pub(super) fn root(&'s self) -> Result<Section<'s>, Problem> {
        let table = DeTable::parse(self.text).map_err(|error| {
            self.problem(
                &error.span().unwrap_or(0..0),
                format!("not TOML: {}", error.message()),
            )
        })?;
        let span = table.span();
        Ok(Section {
            source: self,
            name: String::new(),
            span,
            table: table.into_inner(),
            known: vec![],
        })
    }
}

/// A table that is being read.
pub(super) struct Section<'s> {
    source: &'s Source<'s>,
    name: String,
    span: Range<usize>,
    table: DeTable<'s>,
    known: Vec<&'static str>,
}

impl<'s> Section<'s> {
    /// The value of `key`, if it is there; either way the key is one that exists.
    pub(super) fn take(&mut self, key: &'static str) -> Option<Value<'s>> {
        self.known.push(key);
        let value = self.table.remove(key)?;
        Some(Value {
            source: self.source,
            name: dotted(&self.name, key),
            value,
        })
    }

    /// The value of `key`, which must be there.
    pub(super) fn need(&mut self, key: &'static str, allowed: &str) -> Result<Value<'s>, Problem> {
        self.take(key).ok_or_else(|| {
            self.problem(format!(
                "{}: is missing; it is {allowed}",
                dotted(&self.name, key)
            ))
        })
    }

    /// The tables under `key` (`[key.NAME]`), in file order; none if the key is absent.
    pub(super) fn take_named(
        &mut self,
        key: &'static str,
    ) -> Result<Vec<(String, Section<'s>)>, Problem> {
        let Some(value) = self.take(key) else {
            return Ok(vec![]);
        };
        value
            .section()?
            .into_entries()
            .map(|(name, value)| Ok((name, value.section()?)))
            .collect()
    }

    /// The text values under `key`, by name; none if the key is absent.
    pub(super) fn take_texts(
        &mut self,
        key: &'static str,
    ) -> Result<Vec<(String, Value<'s>)>, Problem> {
        let Some(value) = self.take(key) else {
            return Ok(vec![]);
        };
        let entries: Vec<_> = value.section()?.into_entries().collect();
        entries
            .iter()
            .try_for_each(|(_, value)| value.text().map(drop))?;
        Ok(entries)
    }

    /// The sections of an array of tables (`[[key]]`); none if the key is absent.
    pub(super) fn take_list(&mut self, key: &'static str) -> Result<Vec<Section<'s>>, Problem> {
        let Some(list) = self.take(key) else {
            return Ok(vec![]);
        };
        let DeValue::Array(items) = list.value.get_ref() else {
            return Err(list.problem(format!("must be written as [[{key}]]")));
        };
        let item = |(index, value): (usize, &Spanned<DeValue<'s>>)| Value {
            source: self.source,
            name: format!("{key}[{}]", index + 1),
            value: value.clone(),
        };
        items
            .iter()
            .enumerate()
            .map(item)
            .map(Value::section)
            .collect()
    }

    /// This section with the keys of `over` put over its own, tables merged.
    pub(super) fn overlaid(&self, over: Section<'s>) -> Section<'s> {
        let mut table = self.table.clone();
        overlay(&mut table, over.table);
        Section {
            source: self.source,
            name: over.name,
            span: over.span,
            table,
            known: vec![],
        }
    }

    /// An independent copy, to be read again.
    pub(super) fn copy(&self) -> Section<'s> {
        Section {
            source: self.source,
            name: self.name.clone(),
            span: self.span.clone(),
            table: self.table.clone(),
            known: vec![],
        }
    }

    /// Refuses keys that nobody has taken.
    pub(super) fn finish(self) -> Result<(), Problem> {
        let Some((key, _)) = self.table.iter().min_by_key(|(key, _)| key.span().start) else {
            return Ok(());
        };
        let message = format!(
            "{}: unknown key; allowed here: {}",
            dotted(&self.name, key.get_ref()),
            if self.known.is_empty() {
                "none".to_owned()
            } else {
                self.known.join(", ")
            }
        );
        Err(self.source.problem(&key.span(), message))
    }

    pub(super) fn problem(&self, message: impl Into<String>) -> Problem {
        self.source.problem(&self.span, message)
    }

    fn into_entries(self) -> impl Iterator<Item = (String, Value<'s>)> {
        let Section {
            source,
            name,
            table,
            ..
        } = self;
        let mut entries: Vec<_> = table.into_iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        entries.into_iter().map(move |(key, value)| {
            let name = dotted(&name, key.get_ref());
            (
                key.into_inner().into_owned(),
                Value {
                    source,
                    name,
                    value,
                },
            )
        })
    }
}

/// A value that knows its key and its place.
pub(super) struct Value<'s> {
    source: &'s Source<'s>,
    name: String,
    value: Spanned<DeValue<'s>>,
}

impl<'s> Value<'s> {
    pub(super) fn text(&self) -> Result<&str, Problem> {
        self.value
            .get_ref()
            .as_str()
            .ok_or_else(|| self.wrong_type("text in quotes"))
    }

    /// The text, read by `parse`, whose error says what is allowed.
    pub(super) fn parsed<T>(
        &self,
        parse: fn(&str) -> Result<T, &'static str>,
    ) -> Result<T, Problem> {
        let not_text = || {
            parse("")
                .err()
                .map(|allowed| self.wrong_type(&format!("text: {allowed}")))
        };
        let text = self
            .text()
            .map_err(|problem| not_text().unwrap_or(problem))?;
        parse(text).map_err(|allowed| self.problem(format!("\"{text}\" is not {allowed}")))
    }

    /// A whole number within `range`.
    pub(super) fn integer(&self, range: std::ops::RangeInclusive<u64>) -> Result<u64, Problem> {
        let allowed = format!("a whole number from {} to {}", range.start(), range.end());
        let DeValue::Integer(digits) = self.value.get_ref() else {
            return Err(self.wrong_type(&allowed));
        };
        u64::from_str_radix(digits.as_str(), digits.radix())
            .ok()
            .filter(|number| range.contains(number))
            .ok_or_else(|| self.problem(format!("{digits} is not {allowed}")))
    }

    /// A list of exactly two texts.
    pub(super) fn pair(&self, allowed: &str) -> Result<[String; 2], Problem> {
        let texts = self.value.get_ref().as_array().map(|list| {
            list.iter()
                .filter_map(|item| item.get_ref().as_str())
                .map(str::to_owned)
                .collect::<Vec<_>>()
        });
        texts
            .and_then(|texts| texts.try_into().ok())
            .ok_or_else(|| self.wrong_type(allowed))
    }

    pub(super) fn section(self) -> Result<Section<'s>, Problem> {
        let error = self.wrong_type("a table");
        let Value {
            source,
            name,
            value,
        } = self;
        let span = value.span();
        match value.into_inner() {
            DeValue::Table(table) => Ok(Section {
                source,
                name,
                span,
                table,
                known: vec![],
            }),
            _ => Err(error),
        }
    }

    pub(super) fn problem(&self, message: impl AsRef<str>) -> Problem {
        self.source.problem(
            &self.value.span(),
            format!("{}: {}", self.name, message.as_ref()),
        )
    }

    fn wrong_type(&self, allowed: &str) -> Problem {
        self.problem(format!(
            "must be {allowed}, not a TOML {}",
            self.value.get_ref().type_str()
        ))
    }
}

fn overlay<'s>(base: &mut DeTable<'s>, over: DeTable<'s>) {
    for (key, value) in over {
        match (
            base.get_mut(key.get_ref().as_ref()),
            value.get_ref().is_table(),
        ) {
            (Some(below), true) if below.get_ref().is_table() => {
                if let (DeValue::Table(below), DeValue::Table(above)) =
                    (below.get_mut(), value.into_inner())
                {
                    overlay(below, above);
                }
            }
            _ => {
                base.insert(key, value);
            }
        }
    }
}

fn dotted(prefix: &str, key: &str) -> String {
    if prefix.is_empty() {
        key.to_owned()
    } else {
        format!("{prefix}.{key}")
    }
}

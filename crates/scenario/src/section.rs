// SPDX-License-Identifier: MIT OR Apache-2.0
//! A table of a TOML file that knows its place: what is wrong is told with file, line and column,
//! the key's full name, and what is allowed.
//!
//! Pure. A [`Section`] is emptied key by key; [`Section::finish`] refuses what is left, so the
//! keys that are taken are the only list of the keys that exist. It knows nothing of scenarios.

use std::ops::{Range, RangeInclusive};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::values::Values;

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
            values: Values::default(),
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
    values: Values<'s>,
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
            values: self.values,
            value,
        })
    }

    /// Its full name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The line of the file where it begins, from 1.
    pub(super) fn line(&self) -> usize {
        self.problem("").line
    }

    /// The line of the value of `key`, if it is there.
    pub(super) fn line_of(&self, key: &str) -> Option<usize> {
        let value = self.table.get(key)?;
        Some(self.source.problem(&value.span(), "").line)
    }

    /// Whether no key is left.
    pub(super) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Whether `key` is there, without taking it.
    pub(super) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
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

    /// The value of a key, if it is there, read by `parse`.
    pub(super) fn optional<T>(
        &mut self,
        key: &'static str,
        parse: fn(&str) -> Result<T, &'static str>,
    ) -> Result<Option<T>, Problem> {
        self.take(key).map(|value| value.parsed(parse)).transpose()
    }

    /// The value of a key, which must be there.
    pub(super) fn needed<T>(
        &mut self,
        key: &'static str,
        parse: fn(&str) -> Result<T, &'static str>,
    ) -> Result<T, Problem> {
        let allowed = parse("").err().unwrap_or("given");
        self.need(key, allowed)?.parsed(parse)
    }

    /// A whole number within `range`, if it is there.
    pub(super) fn whole(
        &mut self,
        key: &'static str,
        range: RangeInclusive<u64>,
    ) -> Result<Option<u64>, Problem> {
        self.take(key).map(|value| value.integer(range)).transpose()
    }

    /// `true` or `false`, if it is there.
    pub(super) fn flag(&mut self, key: &'static str) -> Result<Option<bool>, Problem> {
        self.take(key).map(|value| value.boolean()).transpose()
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

    /// The values under `key`, by name, in file order; none if the key is absent.
    pub(super) fn take_entries(
        &mut self,
        key: &'static str,
    ) -> Result<Vec<(String, Value<'s>)>, Problem> {
        match self.take(key) {
            None => Ok(vec![]),
            Some(value) => Ok(value.section()?.into_entries().collect()),
        }
    }

    /// The sections of an array of tables (`[[key]]`); none if the key is absent.
    pub(super) fn take_list(&mut self, key: &'static str) -> Result<Vec<Section<'s>>, Problem> {
        let Some(list) = self.take(key) else {
            return Ok(vec![]);
        };
        match list.value.get_ref() {
            DeValue::Array(_) => list.items("")?.into_iter().map(Value::section).collect(),
            _ => Err(list.problem(format!("must be written as [[{key}]]"))),
        }
    }

    /// This section with the keys of `over` put over its own. The tables `merged` are merged, others
    /// replaced. Of `alternatives`, a new one drives out those that were there.
    pub(super) fn overlaid(
        &self,
        over: &Section<'s>,
        merged: &[&str],
        alternatives: &[&str],
    ) -> Section<'s> {
        let mut table = self.table.clone();
        overlay(&mut table, over.table.clone(), merged, alternatives);
        Section {
            name: over.name.clone(),
            span: over.span.clone(),
            table,
            ..self.with(self.values)
        }
    }

    /// An independent copy, to be read with these values of placeholders.
    pub(super) fn with<'c>(&self, values: Values<'c>) -> Section<'c>
    where
        's: 'c,
    {
        Section {
            source: self.source,
            name: self.name.clone(),
            span: self.span.clone(),
            table: self.table.clone(),
            values,
            known: vec![],
        }
    }

    /// What placeholders are worth here.
    pub(super) fn values(&self) -> Values<'s> {
        self.values
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

    /// What is wrong, told where the table begins; the message names the key.
    pub(super) fn problem(&self, message: impl Into<String>) -> Problem {
        self.source.problem(&self.span, message)
    }

    /// What is wrong, told at a place of the same file.
    pub(super) fn problem_at(&self, place: &Range<usize>, message: impl Into<String>) -> Problem {
        self.source.problem(place, message)
    }

    /// A table of nothing.
    pub(super) fn empty(&self) -> Section<'s> {
        Section {
            source: self.source,
            name: String::new(),
            span: self.span.clone(),
            table: DeTable::new(),
            values: self.values,
            known: vec![],
        }
    }

    /// What is wrong with the table itself.
    pub(super) fn problem_here(&self, message: impl AsRef<str>) -> Problem {
        match self.name.as_str() {
            "" => self.problem(message.as_ref()),
            name => self.problem(format!("{name}: {}", message.as_ref())),
        }
    }

    /// What is left of it, in file order.
    pub(super) fn into_entries(self) -> impl Iterator<Item = (String, Value<'s>)> {
        let Section {
            source,
            name,
            table,
            values,
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
                    values,
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
    values: Values<'s>,
    value: Spanned<DeValue<'s>>,
}

impl<'s> Value<'s> {
    /// The text as it is written, placeholders and all.
    pub(super) fn raw(&self) -> Result<&str, Problem> {
        self.value
            .get_ref()
            .as_str()
            .ok_or_else(|| self.wrong_type("text in quotes"))
    }

    /// The text, with its placeholders filled in.
    pub(super) fn text(&self) -> Result<String, Problem> {
        let filled = self.values.fill(self.raw()?);
        filled.map_err(|message| self.problem(message))
    }

    /// A text or a number, as it is written.
    pub(super) fn plain(&self) -> Result<String, Problem> {
        match self.value.get_ref() {
            DeValue::Integer(digits) => Ok(digits.to_string()),
            DeValue::Float(digits) => Ok(digits.to_string()),
            DeValue::String(text) => Ok(text.clone().into_owned()),
            _ => Err(self.wrong_type("text in quotes, or a number")),
        }
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
        if !self.is_text() {
            self.raw()
                .map_err(|problem| not_text().unwrap_or(problem))?;
        }
        let text = self.text()?;
        parse(&text).map_err(|allowed| self.problem(format!("\"{text}\" is not {allowed}")))
    }

    /// A whole number within `range`; also as a text with a placeholder.
    pub(super) fn integer(&self, range: RangeInclusive<u64>) -> Result<u64, Problem> {
        let allowed = format!("a whole number from {} to {}", range.start(), range.end());
        let (text, radix) = match self.value.get_ref() {
            DeValue::Integer(digits) => (digits.as_str().to_owned(), digits.radix()),
            DeValue::String(text) if text.contains('{') => (self.text()?, 10),
            _ => return Err(self.wrong_type(&allowed)),
        };
        u64::from_str_radix(&text, radix)
            .ok()
            .filter(|number| range.contains(number))
            .ok_or_else(|| self.problem(format!("{text} is not {allowed}")))
    }

    /// `true` or `false`; also as a text with a placeholder.
    pub(super) fn boolean(&self) -> Result<bool, Problem> {
        match self.value.get_ref() {
            DeValue::Boolean(value) => return Ok(*value),
            DeValue::String(text) if text.contains('{') => {}
            _ => return Err(self.wrong_type("true or false")),
        }
        let text = self.text()?;
        text.parse()
            .map_err(|_| self.problem(format!("\"{text}\" is not true or false")))
    }

    /// A number from `least` to `most`.
    pub(super) fn number(&self, least: f64, most: f64) -> Result<f64, Problem> {
        let text = self.plain()?;
        let text = self
            .values
            .fill(&text)
            .map_err(|message| self.problem(message))?;
        let number = text.parse().ok();
        number
            .filter(|number| (least..=most).contains(number))
            .ok_or_else(|| self.problem(format!("{text} is not a number from {least} to {most}")))
    }

    /// A list of exactly two texts.
    pub(super) fn pair(&self, allowed: &str) -> Result<[String; 2], Problem> {
        let items = self.items(allowed)?;
        match &items[..] {
            [one, other] => Ok([one.text()?, other.text()?]),
            _ => Err(self.problem(format!("must be {allowed}, not {} items", items.len()))),
        }
    }

    /// The items of a list.
    pub(super) fn items(&self, allowed: &str) -> Result<Vec<Value<'s>>, Problem> {
        let DeValue::Array(items) = self.value.get_ref() else {
            return Err(self.wrong_type(allowed));
        };
        let item = |(index, value): (usize, &Spanned<DeValue<'s>>)| Value {
            source: self.source,
            name: format!("{}[{}]", self.name, index + 1),
            values: self.values,
            value: value.clone(),
        };
        Ok(items.iter().enumerate().map(item).collect())
    }

    pub(super) fn is_text(&self) -> bool {
        self.value.get_ref().is_str()
    }

    pub(super) fn is_table(&self) -> bool {
        self.value.get_ref().is_table()
    }

    /// Another of the same, for telling what is wrong after this one has been taken apart.
    pub(super) fn copy(&self) -> Value<'s> {
        Value {
            source: self.source,
            name: self.name.clone(),
            values: self.values,
            value: self.value.clone(),
        }
    }

    pub(super) fn is_list(&self) -> bool {
        self.value.get_ref().is_array()
    }

    pub(super) fn is_boolean(&self) -> bool {
        self.value.get_ref().is_bool()
    }

    /// Where it is written.
    pub(super) fn span(&self) -> Range<usize> {
        self.value.span()
    }

    pub(super) fn section(self) -> Result<Section<'s>, Problem> {
        if !self.is_table() {
            return Err(self.wrong_type("a table"));
        }
        let Value {
            source,
            name,
            values,
            value,
        } = self;
        let span = value.span();
        let table = match value.into_inner() {
            DeValue::Table(table) => table,
            _ => DeTable::new(),
        };
        Ok(Section {
            source,
            name,
            span,
            table,
            values,
            known: vec![],
        })
    }

    /// What is wrong with it, told where it is written: for a text that is one placeholder, where its
    /// value is.
    pub(super) fn problem(&self, message: impl AsRef<str>) -> Problem {
        let text = self.value.get_ref().as_str();
        let origin = text.and_then(|text| self.values.origin(text));
        let place = origin.unwrap_or_else(|| self.value.span());
        let message = format!("{}: {}", self.name, message.as_ref());
        self.source.problem(&place, message)
    }

    pub(super) fn wrong_type(&self, allowed: &str) -> Problem {
        self.problem(format!(
            "must be {allowed}, not a TOML {}",
            self.value.get_ref().type_str()
        ))
    }
}

fn overlay<'s>(base: &mut DeTable<'s>, over: DeTable<'s>, merged: &[&str], alternatives: &[&str]) {
    let is_new = |key: &&str| over.contains_key(*key);
    if alternatives.iter().any(is_new) {
        alternatives.iter().for_each(|key| {
            base.remove(*key);
        });
    }
    for (key, value) in over {
        let below = base.get_mut(key.get_ref().as_ref());
        let below = below.filter(|_| merged.contains(&key.get_ref().as_ref()));
        match (below.map(Spanned::get_mut), value.get_ref().is_table()) {
            (Some(DeValue::Table(below)), true) => {
                if let DeValue::Table(above) = value.into_inner() {
                    overlay(below, above, merged, alternatives);
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

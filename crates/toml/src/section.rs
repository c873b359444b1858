// SPDX-License-Identifier: MIT OR Apache-2.0
//! A table of a file. Start at [`Section::take`].

mod value;

pub use value::{Placeholders, Value};

use crate::problem::{Refusal, Report};
use crate::spelling::{instead, shortened};
use std::ops::RangeInclusive;
use toml::Spanned;
use toml::de::{DeString, DeTable};

/// A table that is being read. The keys that are asked for are the only list of the keys that exist.
#[derive(Clone)]
pub struct Section<'v, P = ()> {
    report: &'v Report<'v>,
    /// What it is, for people.
    title: String,
    /// What stands before the names of its keys.
    name: String,
    at: usize,
    table: &'v DeTable<'v>,
    placeholders: P,
    known: Vec<&'static str>,
}

impl<'v, P: Placeholders> Section<'v, P> {
    pub(crate) fn root(
        title: &str,
        report: &'v Report<'v>,
        table: &'v DeTable<'v>,
        placeholders: P,
    ) -> Self {
        Section {
            report,
            title: title.to_owned(),
            name: String::new(),
            at: 0,
            table,
            placeholders,
            known: vec![],
        }
    }

    pub(crate) fn of(value: &Value<'v, P>, table: &'v DeTable<'v>) -> Self {
        Section {
            name: value.name.clone(),
            at: value.at(),
            ..Section::root(&value.name, value.report, table, value.placeholders)
        }
    }

    /// The same, called `title`; its keys are called by their own names alone.
    pub fn titled(self, title: impl Into<String>) -> Self {
        Section {
            title: title.into(),
            name: String::new(),
            ..self
        }
    }

    /// The same, to be read anew with other placeholders.
    pub fn with<Q: Placeholders>(&self, placeholders: Q) -> Section<'v, Q> {
        self.over(self.table, placeholders)
    }

    /// Another table in its place.
    pub fn over<'c, Q: Placeholders>(
        &self,
        table: &'c DeTable<'c>,
        placeholders: Q,
    ) -> Section<'c, Q>
    where
        'v: 'c,
    {
        Section {
            name: self.name.clone(),
            at: self.at,
            ..Section::root(&self.title, self.report, table, placeholders)
        }
    }

    /// The value of `key`, if it is there; either way the key is one that exists.
    pub fn take(&mut self, key: &'static str) -> Option<Value<'v, P>> {
        self.allow([key]);
        self.value(key)
    }

    /// The value of `key`, if it is there, without a word on whether the key exists.
    pub fn value(&self, key: &str) -> Option<Value<'v, P>> {
        self.table
            .get(key)
            .map(|value| self.named(self.name_of(key), value))
    }

    /// Whether `key` is there.
    pub fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// Lets keys exist that are looked at without [`Section::take`].
    pub fn allow(&mut self, keys: impl IntoIterator<Item = &'static str>) {
        for key in keys {
            if !self.known.contains(&key) {
                self.known.push(key);
            }
        }
    }

    /// The value of `key`, which must be there.
    pub fn need(&mut self, key: &'static str, allowed: &str) -> Result<Value<'v, P>, Refusal> {
        self.take(key).ok_or_else(|| self.missing(key, allowed))
    }

    /// The refusal of a table without a key that it needs.
    pub fn missing(&self, key: &str, allowed: &str) -> Refusal {
        self.refusal(format!("{}: is missing", self.name_of(key)))
            .allowed(format!("it is {allowed}"))
    }

    /// The text under a key, read by `parse`; `None` when it is absent, or refused and noted.
    pub fn optional<T>(
        &mut self,
        key: &'static str,
        parse: fn(&str) -> Result<T, &'static str>,
    ) -> Option<T> {
        self.read(key, |value| value.parsed(parse))
    }

    /// The text under a key, which must be there; the default when that is noted to be wrong or missing.
    pub fn needed<T: Default>(
        &mut self,
        key: &'static str,
        parse: fn(&str) -> Result<T, &'static str>,
    ) -> T {
        let allowed = parse("").err().unwrap_or("given");
        let value = self.need(key, allowed);
        let read = value.and_then(|value| value.parsed(parse));
        self.noted(read).unwrap_or_default()
    }

    /// A whole number within `range`; `None` when it is absent, or refused and noted.
    pub fn whole(&mut self, key: &'static str, range: RangeInclusive<u64>) -> Option<u64> {
        self.read(key, |value| value.integer(range.clone()))
    }

    /// `true` or `false`; `None` when it is absent, or refused and noted.
    pub fn flag(&mut self, key: &'static str) -> Option<bool> {
        self.read(key, Value::boolean)
    }

    /// The tables of `[[key]]`; none if the key is absent.
    pub fn take_list(&mut self, key: &'static str) -> Result<Vec<Section<'v, P>>, Refusal> {
        let Some(list) = self.take(key) else {
            return Ok(vec![]);
        };
        let allowed = format!("tables, each under a line `[[{key}]]`");
        let items = list.items(&allowed)?;
        items.iter().map(|item| item.section_or(&allowed)).collect()
    }

    /// The keys and values of the table `key`, in file order; none if it is absent.
    pub fn take_entries(
        &mut self,
        key: &'static str,
    ) -> Result<Vec<(String, Value<'v, P>)>, Refusal> {
        let Some(table) = self.take(key) else {
            return Ok(vec![]);
        };
        let entries = table.section()?.entries().into_iter();
        Ok(entries
            .map(|(key, value)| (key.get_ref().to_string(), value))
            .collect())
    }

    /// The tables `[key.NAME]`, in file order; none if the key is absent.
    pub fn take_named(
        &mut self,
        key: &'static str,
    ) -> Result<Vec<(String, Section<'v, P>)>, Refusal> {
        let entries = self.take_entries(key)?.into_iter();
        entries
            .map(|(name, value)| Ok((name, value.section()?)))
            .collect()
    }

    /// What nobody has asked for yet, in file order.
    pub fn entries(&self) -> Vec<(&'v Spanned<DeString<'v>>, Value<'v, P>)> {
        let named = |key: &'v Spanned<DeString<'v>>| {
            let value = &self.table[key];
            (key, self.named(self.name_of(key.get_ref()), value))
        };
        self.unknown().into_iter().map(named).collect()
    }

    /// The value of a key, read; `None` when it is absent, or refused and noted.
    pub fn read<T>(
        &mut self,
        key: &'static str,
        read: impl Fn(&Value<'v, P>) -> Result<T, Refusal>,
    ) -> Option<T> {
        self.take(key).and_then(|value| self.noted(read(&value)))
    }

    /// The values of a key's list, those that are not refused; empty when the key is absent.
    pub fn read_list<T>(
        &mut self,
        key: &'static str,
        read: impl Fn(&Value<'v, P>) -> Result<T, Refusal>,
    ) -> Vec<(T, Value<'v, P>)> {
        const ALLOWED: &str =
            "a list in square brackets with at least one entry; leave the key out for any";
        let Some(value) = self.take(key) else {
            return Vec::new();
        };
        let items = value.items(ALLOWED).and_then(|items| match items.len() {
            0 => Err(value.found(ALLOWED)),
            _ => Ok(items),
        });
        let items = self.noted(items).unwrap_or_default().into_iter();
        let items = items.map(|item| item.called(&value.name));
        items
            .filter_map(|item| Some((self.noted(read(&item))?, item)))
            .collect()
    }

    /// Notes a refusal and goes on.
    pub fn note(&self, refusal: Refusal) {
        self.report.add(refusal);
    }

    /// A value, or nothing and its refusal noted.
    pub fn noted<T>(&self, read: Result<T, Refusal>) -> Option<T> {
        read.map_err(|refusal| self.note(refusal)).ok()
    }

    /// Notes each key that nobody has asked for.
    pub fn note_unknown(&self) {
        self.note_unknown_but("");
    }

    /// The same, but for one of which something better was said.
    pub fn note_unknown_but(&self, told: &str) {
        for key in self.unknown() {
            if key.get_ref() != told {
                self.note(self.refused_key(key));
            }
        }
    }

    /// Refuses the first key that nobody has asked for, and notes the others.
    pub fn finish(&self) -> Result<(), Refusal> {
        let mut refused = self.unknown().into_iter().map(|key| self.refused_key(key));
        let first = refused.next();
        refused.for_each(|refusal| self.note(refusal));
        first.map_or(Ok(()), Err)
    }

    /// Whether anything was noted of the file so far.
    pub fn is_noted(&self) -> bool {
        !self.report.is_empty()
    }

    /// What is wrong, told where the table begins.
    pub fn refusal(&self, message: impl Into<String>) -> Refusal {
        Refusal::new(self.at, message)
    }

    /// What is wrong with the table itself, with its name.
    pub fn refusal_here(&self, message: impl AsRef<str>) -> Refusal {
        match self.name.as_str() {
            "" => self.refusal(message.as_ref()),
            name => self.refusal(format!("{name}: {}", message.as_ref())),
        }
    }

    /// Its full name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The line of the file where it begins, from 1.
    pub fn line(&self) -> u32 {
        self.report.line(self.at)
    }

    /// What it is made of.
    pub fn table(&self) -> &'v DeTable<'v> {
        self.table
    }

    /// What placeholders are worth here.
    pub fn placeholders(&self) -> P {
        self.placeholders
    }

    fn unknown(&self) -> Vec<&'v Spanned<DeString<'v>>> {
        let keys = self.table.keys();
        let is_unknown = |key: &&Spanned<DeString>| !self.known.contains(&key.get_ref().as_ref());
        let mut unknown: Vec<_> = keys.filter(is_unknown).collect();
        unknown.sort_by_key(|key| key.span().start);
        unknown
    }

    fn refused_key(&self, key: &Spanned<DeString>) -> Refusal {
        let (written, title) = (shortened(key.get_ref()), &self.title);
        Refusal::new(
            key.span().start,
            format!("unknown key `{written}` in {title}"),
        )
        .allowed(instead(key.get_ref(), &self.known))
    }

    fn named(&self, name: String, value: &'v Spanned<toml::de::DeValue<'v>>) -> Value<'v, P> {
        Value {
            report: self.report,
            name,
            placeholders: self.placeholders,
            value,
        }
    }

    fn name_of(&self, key: &str) -> String {
        match self.name.as_str() {
            "" => key.to_owned(),
            name => format!("{name}.{key}"),
        }
    }
}

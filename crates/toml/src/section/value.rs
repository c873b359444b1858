// SPDX-License-Identifier: MIT OR Apache-2.0
//! A value of a file, read as one type or refused. Start at [`Value`].

use super::Section;
use crate::problem::{Refusal, Report};
use crate::spelling::shortened;
use std::ops::RangeInclusive;
use toml::Spanned;
use toml::de::DeValue;

/// What stands in texts for something else, such as `{rtt}`; `()` where there is no such thing.
pub trait Placeholders: Copy {
    /// A text with its placeholders filled in, or what is wrong with them.
    fn fill(self, text: &str) -> Result<String, String> {
        Ok(text.to_owned())
    }

    /// Where the value of a text that is one placeholder was written, as a byte offset.
    fn origin(self, _text: &str) -> Option<usize> {
        None
    }
}

impl Placeholders for () {}

/// A value that knows its key and its place.
#[derive(Clone)]
pub struct Value<'v, P = ()> {
    pub(crate) report: &'v Report<'v>,
    pub(crate) name: String,
    pub(crate) placeholders: P,
    pub(crate) value: &'v Spanned<DeValue<'v>>,
}

impl<'v, P: Placeholders> Value<'v, P> {
    /// The same under another name.
    pub fn called(self, name: &str) -> Self {
        let name = name.to_owned();
        Value { name, ..self }
    }

    /// As it is written.
    pub fn as_toml(&self) -> &'v DeValue<'v> {
        self.value.get_ref()
    }

    /// A text as it is written, placeholders and all.
    pub fn as_str(&self) -> Option<&'v str> {
        self.as_toml().as_str()
    }

    /// An integer from 0.
    pub fn as_u64(&self) -> Option<u64> {
        let digits = self.as_toml().as_integer()?;
        u64::from_str_radix(digits.as_str(), digits.radix()).ok()
    }

    /// The text as it is written, placeholders and all.
    pub fn raw(&self) -> Result<&'v str, Refusal> {
        self.as_str().ok_or_else(|| self.found("text in quotes"))
    }

    /// The text, with its placeholders filled in.
    pub fn text(&self) -> Result<String, Refusal> {
        self.filled(self.raw()?)
    }

    /// A text of this value with its placeholders filled in.
    pub fn filled(&self, text: &str) -> Result<String, Refusal> {
        let filled = self.placeholders.fill(text);
        filled.map_err(|message| self.refusal(message))
    }

    /// A text or a number, as it is written.
    pub fn plain(&self) -> Result<String, Refusal> {
        match self.as_toml() {
            DeValue::Integer(digits) => Ok(digits.to_string()),
            DeValue::Float(digits) => Ok(digits.to_string()),
            DeValue::String(text) => Ok(text.clone().into_owned()),
            _ => Err(self.found("text in quotes, or a number")),
        }
    }

    /// The text, read by `parse`, whose error says what is allowed.
    pub fn parsed<T>(&self, parse: fn(&str) -> Result<T, &'static str>) -> Result<T, Refusal> {
        let Some(text) = self.as_str() else {
            let allowed = parse("").err();
            let allowed = allowed.map(|allowed| format!("{allowed}, as text in quotes"));
            return Err(self.found(allowed.as_deref().unwrap_or("text in quotes")));
        };
        let text = self.filled(text)?;
        parse(&text).map_err(|allowed| self.found_text(&text, allowed))
    }

    /// A whole number within `range`; also as a text with a placeholder.
    pub fn integer(&self, range: RangeInclusive<u64>) -> Result<u64, Refusal> {
        let allowed = format!("a whole number from {} to {}", range.start(), range.end());
        let parse = |text: &str| text.parse().ok();
        self.or_filled(self.as_u64(), parse, |n| range.contains(n), &allowed)
    }

    /// `true` or `false`; also as a text with a placeholder.
    pub fn boolean(&self) -> Result<bool, Refusal> {
        let parse = |text: &str| text.parse().ok();
        self.or_filled(self.as_toml().as_bool(), parse, |_| true, "true or false")
    }

    /// A number from `least` to `most`, also as a text.
    pub fn number(&self, least: f64, most: f64) -> Result<f64, Refusal> {
        let text = self.filled(&self.plain()?)?;
        let number = text.parse().ok();
        number
            .filter(|number| (least..=most).contains(number))
            .ok_or_else(|| {
                self.found_as(
                    &shortened(&text),
                    &format!("a number from {least} to {most}"),
                )
            })
    }

    /// The items of a list.
    pub fn items(&self, allowed: &str) -> Result<Vec<Value<'v, P>>, Refusal> {
        let items = self.as_toml().as_array();
        let items = items.ok_or_else(|| self.found(allowed))?.iter();
        let item = |(index, value)| Value {
            name: format!("{}[{}]", self.name, index + 1),
            value,
            ..self.clone()
        };
        Ok(items.enumerate().map(item).collect())
    }

    /// The table.
    pub fn section(&self) -> Result<Section<'v, P>, Refusal> {
        self.section_or("a table")
    }

    /// The table, where more is to be said of one than that it is a table.
    pub fn section_or(&self, allowed: &str) -> Result<Section<'v, P>, Refusal> {
        match self.as_toml().as_table() {
            Some(table) => Ok(Section::of(self, table)),
            None => Err(self.found(allowed)),
        }
    }

    /// Whether anything was noted of the file so far.
    pub fn is_noted(&self) -> bool {
        !self.report.is_empty()
    }

    /// What is wrong with it, told where it is written: for a text that is one placeholder, where its
    /// value is.
    pub fn refusal(&self, message: impl AsRef<str>) -> Refusal {
        let origin = self
            .as_str()
            .and_then(|text| self.placeholders.origin(text));
        let message = format!("{}: {}", self.name, message.as_ref());
        Refusal::new(origin.unwrap_or_else(|| self.at()), message)
    }

    /// The refusal of a value that is not what is allowed.
    pub fn found(&self, allowed: &str) -> Refusal {
        match self.as_str() {
            Some(text) => self.found_text(text, allowed),
            None => self.found_as(&show(self.as_toml()), allowed),
        }
    }

    /// Where it is written, as a byte offset.
    pub fn at(&self) -> usize {
        self.value.span().start
    }

    /// The line of the file where it is written, from 1.
    pub fn line(&self) -> u32 {
        self.report.line(self.at())
    }

    fn found_text(&self, text: &str, allowed: &str) -> Refusal {
        match fatpath_units::meant_by_bps(text) {
            None => self.found_as(&show_text(text), allowed),
            Some(meant) => self
                .refusal(format!("{text:?} is ambiguous (tc reads bytes)"))
                .allowed(format!("write {meant:?}")),
        }
    }

    fn found_as(&self, shown: &str, allowed: &str) -> Refusal {
        self.refusal(format!("found {shown}"))
            .allowed(format!("allowed: {allowed}"))
    }

    /// What is written itself, or what a text with placeholders stands for.
    fn or_filled<T>(
        &self,
        written: Option<T>,
        parse: impl Fn(&str) -> Option<T>,
        is_allowed: impl Fn(&T) -> bool,
        allowed: &str,
    ) -> Result<T, Refusal> {
        match self.as_str().filter(|text| text.contains('{')) {
            None => {
                let written = written.filter(is_allowed);
                written.ok_or_else(|| self.found(allowed))
            }
            Some(text) => {
                let text = self.filled(text)?;
                let parsed = parse(&text).filter(is_allowed);
                parsed.ok_or_else(|| self.found_text(&text, allowed))
            }
        }
    }
}

/// A value as people know it: `the text "abc"`, `5`, `a table`.
fn show(value: &DeValue) -> String {
    match value {
        DeValue::String(text) => show_text(text),
        DeValue::Integer(number) => shortened(&number.to_string()),
        DeValue::Float(number) => shortened(&number.to_string()),
        DeValue::Boolean(truth) => truth.to_string(),
        DeValue::Datetime(_) => "a date or time".to_owned(),
        DeValue::Array(items) if items.is_empty() => "an empty list".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

fn show_text(text: &str) -> String {
    format!("the text {:?}", shortened(text))
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Derived events: the administrator's own numbers, by formula over the variables.
//!
//! `AveBW = "DataBytesOut * 8 / (now - StartTime)"`. A formula has numbers, variables by the RFC's or the
//! WAD's names, `+ - * / ^`, parentheses, and functions of one number. It is checked here word by word, so
//! that an error has its place; exmex evaluates it.

use crate::variables::{self, Variable};
use exmex::{Express, FlatEx};
use fatpath_api::Sample;
use std::collections::BTreeMap;

/// Formulas in a policy.
const MAX_FORMULAS: usize = 64;
/// Characters of a formula.
const MAX_CHARACTERS: usize = 1000;
/// Parentheses within each other.
const MAX_DEPTH: usize = 32;

const FUNCTIONS: [&str; 10] = [
    "abs", "ceil", "exp", "floor", "ln", "log10", "log2", "round", "signum", "sqrt",
];

/// Formulas by name.
#[derive(Clone, Debug, Default)]
pub struct Derived(Vec<Formula>);

#[derive(Clone, Debug)]
struct Formula {
    name: String,
    expression: FlatEx<f64>,
    /// In the order in which exmex wants their values.
    variables: Vec<&'static Variable>,
}

/// Why a formula is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name}: {what}, at character {position} of the formula")]
pub struct BadFormula {
    /// The event's name.
    pub name: String,
    /// Counts characters from 1.
    pub position: usize,
    /// What is wrong, and what is allowed.
    pub what: String,
}

/// A position and what is wrong there.
type Wrong = (usize, String);

impl Derived {
    /// Reads names and formulas.
    ///
    /// # Errors
    /// The first formula that is none, or that names an unknown variable.
    pub fn parse<'a>(
        formulas: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Derived, BadFormula> {
        let mut read = Vec::new();
        for (name, text) in formulas {
            let bad = |(position, what)| BadFormula {
                name: name.to_owned(),
                position,
                what,
            };
            if read.len() >= MAX_FORMULAS {
                return Err(bad((
                    1,
                    format!("at most {MAX_FORMULAS} derived events are allowed"),
                )));
            }
            check_name(name).map_err(bad)?;
            read.push(formula(name, text).map_err(bad)?);
        }
        Ok(Derived(read))
    }

    /// Names and values; one without a finite value, as a division by 0 has none, is left out.
    pub fn values(&self, sample: &Sample) -> BTreeMap<String, f64> {
        let pair = |formula: &Formula| Some((formula.name.clone(), formula.value(sample)?));
        self.0.iter().filter_map(pair).collect()
    }
}

impl Formula {
    fn value(&self, sample: &Sample) -> Option<f64> {
        let values = self.variables.iter().map(|variable| variable.of(sample));
        let values: Option<Vec<f64>> = values.collect();
        let value = self.expression.eval(&values?).ok()?;
        value.is_finite().then_some(value)
    }
}

fn check_name(name: &str) -> Result<(), Wrong> {
    let is_word = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let begins_well = name.starts_with(|c: char| c.is_ascii_alphabetic());
    match is_word && begins_well && name.len() <= 64 {
        true => Ok(()),
        false => Err((
            1,
            "a name is a letter, then letters, digits and _, 64 at most".into(),
        )),
    }
}

fn formula(name: &str, text: &str) -> Result<Formula, Wrong> {
    if text.chars().count() > MAX_CHARACTERS {
        return Err((
            MAX_CHARACTERS,
            format!("a formula may have at most {MAX_CHARACTERS} characters"),
        ));
    }
    let words = words(text)?;
    check_order(&words, text)?;
    let spelled: String = words.iter().map(|word| word.spelled()).collect();
    let expression = exmex::parse::<f64>(&spelled).map_err(|e| (1, e.to_string()))?;
    let names = expression.var_names().iter();
    let variables = names.filter_map(|name| variables::named(name));
    Ok(Formula {
        name: name.to_owned(),
        variables: variables.collect(),
        expression,
    })
}

#[derive(Debug, PartialEq)]
enum Kind<'t> {
    Number(&'t str),
    Variable(&'static str),
    Function(&'t str),
    Operator(char),
    Open,
    Close,
}

struct Word<'t> {
    kind: Kind<'t>,
    position: usize,
}

impl Word<'_> {
    /// For exmex: braces keep a variable's name from being taken for an operator.
    fn spelled(&self) -> String {
        match &self.kind {
            Kind::Number(digits) => (*digits).to_owned(),
            Kind::Variable(name) => format!("{{{name}}}"),
            Kind::Function(name) => (*name).to_owned(),
            Kind::Operator(sign) => sign.to_string(),
            Kind::Open => "(".to_owned(),
            Kind::Close => ")".to_owned(),
        }
    }
}

fn words(text: &str) -> Result<Vec<Word<'_>>, Wrong> {
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let position = text.len() - rest.len() + 1;
        let is_of_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        let length = match is_of_word(first) {
            true => rest.find(|c| !is_of_word(c)).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        let (word, after) = rest.split_at(length);
        rest = after;
        if first != ' ' {
            let kind = kind(word, first).map_err(|what| (position, what))?;
            words.push(Word { kind, position });
        }
    }
    Ok(words)
}

fn kind(word: &str, first: char) -> Result<Kind<'_>, String> {
    match first {
        '(' => Ok(Kind::Open),
        ')' => Ok(Kind::Close),
        '+' | '-' | '*' | '/' | '^' => Ok(Kind::Operator(first)),
        '0'..='9' if is_number(word) => Ok(Kind::Number(word)),
        '0'..='9' => Err(format!("{word} is not a number; write it as 8 or 0.5")),
        _ if FUNCTIONS.contains(&word) => Ok(Kind::Function(word)),
        _ if first.is_ascii_alphabetic() => variable(word),
        _ => Err(format!("{first:?} is not allowed in a formula")),
    }
}

fn is_number(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_digit() || c == '.') && word.parse::<f64>().is_ok()
}

fn variable(word: &str) -> Result<Kind<'_>, String> {
    let Some(variable) = variables::named(word) else {
        return Err(format!(
            "no such variable: {word}; give a name of RFC 4898, or now"
        ));
    };
    match variable.source {
        variables::Source::Sample { .. } => Ok(Kind::Variable(variable.name)),
        variables::Source::Absent(reason) => Err(format!("Linux has no {word}: {reason}")),
    }
}

/// Values and operators take turns, and parentheses close.
fn check_order(words: &[Word], text: &str) -> Result<(), Wrong> {
    let mut wants_value = true;
    let mut open = Vec::new();
    let mut before: Option<&Kind> = None;
    for word in words {
        let wrong = |what: &str| Err((word.position, what.to_owned()));
        let after_function = matches!(before, Some(Kind::Function(_)));
        match &word.kind {
            Kind::Open if wants_value => open.push(word.position),
            _ if after_function => return wrong("a function needs ( after its name"),
            Kind::Number(_) | Kind::Variable(_) if wants_value => wants_value = false,
            Kind::Function(_) if wants_value => {}
            Kind::Operator('+' | '-')
                if wants_value && !matches!(before, Some(Kind::Operator(_))) => {}
            Kind::Operator(_) if !wants_value => wants_value = true,
            Kind::Close if !wants_value && open.pop().is_some() => {}
            Kind::Close if !wants_value => return wrong("this ) closes no ("),
            _ if wants_value => return wrong("expected a number, a variable, a function or ("),
            _ => return wrong("expected an operator: + - * / ^"),
        }
        if open.len() > MAX_DEPTH {
            return Err((
                word.position,
                format!("at most {MAX_DEPTH} parentheses may be nested"),
            ));
        }
        before = Some(&word.kind);
    }
    match open.pop() {
        Some(position) => Err((position, "this ( is never closed".to_owned())),
        None if wants_value => Err((text.len().max(1), "the formula ends too early".to_owned())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
